//! How the soft states of nodes reach each other.
//!
//! A node sends its state to each member that is up until that member has acknowledged it. Nobody
//! passes on the state of another node.

use crate::process::Process;
use crate::soft_state::SoftState;
use bytes::Bytes;
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a member is known to have of this node's state.
#[derive(Debug)]
struct Receiver {
    /// The member's process when it was sent a state last.
    process: Process,
    sent: u64,
    sent_at: Duration,
    acknowledged: u64,
}

/// A state of a member.
#[derive(Debug)]
struct Received {
    process: Process,
    number: u64,
    state: Arc<SoftState>,
}

/// This node's state and those of the others.
#[derive(Debug)]
pub(crate) struct StateExchange {
    interval: Duration,
    retry: Duration,
    own: Option<Own>,
    /// A newer state that waits for its time.
    waiting: Option<SoftState>,
    receivers: BTreeMap<NodeId, Receiver>,
    received: BTreeMap<NodeId, Received>,
}

#[derive(Debug)]
struct Own {
    number: u64,
    state: SoftState,
    bytes: Bytes,
    since: Duration,
}

impl StateExchange {
    pub(crate) const fn new(interval: Duration, retry: Duration) -> Self {
        Self { interval, retry, own: None, waiting: None, receivers: BTreeMap::new(), received: BTreeMap::new() }
    }

    /// Sets this node's state. It leaves with a later call of [`Self::take_due`].
    pub(crate) fn publish(&mut self, state: SoftState) {
        self.waiting = Some(state);
    }

    /// Which members are to be sent which version of the state now.
    pub(crate) fn take_due(&mut self, now: Duration, up: impl Iterator<Item = Process>) -> Vec<(NodeId, u64, Bytes)> {
        self.renew(now);
        let Some(own) = &self.own else { return Vec::new() };
        let mut due = Vec::new();
        for process in up {
            let receiver = self.receivers.entry(process.node).or_insert(Receiver {
                process,
                sent: 0,
                sent_at: now,
                acknowledged: 0,
            });
            if !receiver.process.is_same_start(&process) {
                *receiver = Receiver { process, sent: 0, sent_at: now, acknowledged: 0 };
            }
            let waits = receiver.sent == own.number && now.saturating_sub(receiver.sent_at) < self.retry;
            if receiver.acknowledged < own.number && !waits {
                (receiver.sent, receiver.sent_at) = (own.number, now);
                due.push((process.node, own.number, own.bytes.clone()));
            }
        }
        due
    }

    fn renew(&mut self, now: Duration) {
        let (number, since) = self.own.as_ref().map_or((0, None), |own| (own.number, Some(own.since)));
        if since.is_some_and(|since| now.saturating_sub(since) < self.interval) {
            return;
        }
        let Some(state) = self.waiting.take() else { return };
        if self.own.as_ref().is_none_or(|own| own.state != state) {
            let bytes = state.encode();
            self.own = Some(Own { number: number + 1, state, bytes, since: now });
        }
    }

    pub(crate) fn acknowledged(&mut self, from: Process, number: u64) {
        if let Some(receiver) = self.receivers.get_mut(&from.node).filter(|r| r.process.is_same_start(&from)) {
            receiver.acknowledged = receiver.acknowledged.max(number);
        }
    }

    /// Takes a state of a member. Says whether it is to be acknowledged, and whether it is news.
    pub(crate) fn receive(&mut self, from: Process, number: u64, bytes: &[u8]) -> (bool, bool) {
        if let Some(old) = self.received.get(&from.node) {
            let is_old = match old.process.is_same_start(&from) {
                true => number <= old.number,
                false => from < old.process,
            };
            if is_old {
                return (true, false);
            }
        }
        let Some(state) = SoftState::decode(bytes) else { return (false, false) };
        self.received.insert(from.node, Received { process: from, number, state: Arc::new(state) });
        (true, true)
    }

    pub(crate) fn forget_all_but(&mut self, keep: impl Fn(NodeId) -> bool) {
        self.receivers.retain(|node, _| keep(*node));
        self.received.retain(|node, _| keep(*node));
    }

    /// The last state of a member.
    pub(crate) fn state(&self, of: NodeId) -> Option<&Arc<SoftState>> {
        self.received.get(&of).map(|received| &received.state)
    }
}
