//! The copies of all replicas of a read, as far as they are known.

use super::copy::{BodyState, CopyState, FoundCopy};
use crate::coordination::Replica;
use ombak_types::time::UnixMicros;
use smallvec::SmallVec;

/// The replicas of one read, and what is known of the copy of each.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) replicas: SmallVec<[Replica; 3]>,
    /// One for each replica, in the same order.
    pub(super) states: SmallVec<[CopyState; 3]>,
    /// The index of this node among the replicas, if it is one.
    pub(super) local: Option<usize>,
}

impl Copies {
    pub(super) fn new(replicas: &[Replica], local: Option<usize>) -> Self {
        let states = replicas.iter().map(|_| CopyState::Waiting).collect();
        Self { replicas: SmallVec::from_slice(replicas), states, local }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// The state of a replica's copy, and the weight of its answer.
    pub(super) fn of_replica(&mut self, replica: usize) -> Option<(&mut CopyState, Replica)> {
        Some((self.states.get_mut(replica)?, *self.replicas.get(replica)?))
    }

    /// The copy of a replica, if the replica has found one.
    pub(super) fn found(&self, replica: usize) -> Option<&FoundCopy> {
        match self.states.get(replica) {
            Some(CopyState::Found(copy)) => Some(copy),
            Some(CopyState::Same { of }) => match self.states.get(*of) {
                Some(CopyState::Found(copy)) => Some(copy),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether every replica has found the same version, and none is known to be unable to read it.
    /// Then none is behind.
    pub(super) fn all_agree(&self) -> bool {
        let mut copies = (0..self.len()).map(|replica| self.found(replica));
        let Some(Some(first)) = copies.next() else { return false };
        let is_readable = |copy: &FoundCopy| matches!(copy.body, BodyState::Here | BodyState::NotAsked);
        is_readable(first) && copies.all(|copy| copy.is_some_and(|c| c.digest == first.digest && is_readable(c)))
    }

    /// Notes that a replica is asked for its values. Returns whether it has found a copy.
    pub(super) fn ask_values(&mut self, replica: usize) -> bool {
        let Some(CopyState::Found(copy)) = self.states.get_mut(replica) else { return false };
        copy.body = BodyState::Asked;
        true
    }

    /// Lets the "not found" of stand-ins count, once every owner has answered or is late.
    pub(super) fn release_held(&mut self, mut count: impl FnMut(Replica)) {
        let waits = |(copy, weight): (&CopyState, &Replica)| matches!(copy, CopyState::Waiting) && weight.primaries > 0;
        if self.states.iter().zip(&self.replicas).any(waits) {
            return;
        }
        for (copy, weight) in self.states.iter_mut().zip(&self.replicas) {
            if matches!(copy, CopyState::HeldNotFound) {
                *copy = CopyState::NotFound;
                count(*weight);
            }
        }
    }

    /// The time is over: what has not come is late.
    pub(super) fn time_out(&mut self) {
        for copy in &mut self.states {
            match copy {
                CopyState::Waiting => *copy = CopyState::Late,
                CopyState::Found(found) if found.body == BodyState::Asked => found.body = BodyState::Late,
                _ => {}
            }
        }
    }

    /// Whether every replica has answered the first question, or is late.
    pub(super) fn all_answered(&self) -> bool {
        !self.states.iter().any(|copy| matches!(copy, CopyState::Waiting))
    }

    pub(super) fn is_anything_late(&self) -> bool {
        self.states.iter().any(|copy| matches!(copy, CopyState::Late)) || self.has_body(BodyState::Late)
    }

    /// Whether a replica was too busy to give the values of the newest version.
    pub(super) fn is_body_busy(&self) -> bool {
        self.has_body(BodyState::Busy)
    }

    /// Whether a replica has found something that is neither deleted nor expired.
    pub(super) fn has_live(&self, now: UnixMicros) -> bool {
        self.found_copies().any(|copy| !copy.object.is_absent(now))
    }

    fn has_body(&self, body: BodyState) -> bool {
        self.found_copies().any(|copy| copy.body == body)
    }

    fn found_copies(&self) -> impl Iterator<Item = &FoundCopy> {
        (0..self.len()).filter_map(|replica| self.found(replica))
    }
}
