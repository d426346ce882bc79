//! Where the time of a request went.

use std::time::Instant;

/// The time that the parts of a request took, in microseconds, and the replicas that it asked.
/// Parts that run at the same time overlap, so the sum can be more than the time of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Waiting for a turn: for a thread, for memory, for a conditional put of the same key, or for
    /// the end of a change of the cluster.
    pub(crate) waiting_us: u64,
    /// Pre-commit hooks.
    pub(crate) hooks_us: u64,
    /// The store of this node, with its syncs.
    pub(crate) store_us: u64,
    /// Until the last answer of another node that came before the reply, or until the time was
    /// over.
    pub(crate) replicas_us: u64,
    /// Waiting for another node that coordinates the request.
    pub(crate) forwarded_us: u64,
    /// Waiting until the client takes what was found.
    pub(crate) client_us: u64,
    /// Number of other nodes that were asked. A node that is asked twice counts twice.
    pub(crate) asked: u32,
    /// Number of their answers that came before the reply.
    pub(crate) answered: u32,
}

impl Spent {
    /// Adds what a further part of the request has spent.
    pub(crate) fn add(&mut self, other: &Self) {
        self.waiting_us += other.waiting_us;
        self.hooks_us += other.hooks_us;
        self.store_us += other.store_us;
        self.replicas_us += other.replicas_us;
        self.forwarded_us += other.forwarded_us;
        self.client_us += other.client_us;
        self.asked += other.asked;
        self.answered += other.answered;
    }

    /// What was spent elsewhere than in the store of this node, as far as it is known.
    pub(crate) const fn beside_store_us(&self) -> u64 {
        self.waiting_us + self.hooks_us + self.replicas_us + self.forwarded_us + self.client_us
    }
}

/// The time between two moments in microseconds; 0 if `to` is before `from`.
pub(crate) fn micros_between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX)
}
