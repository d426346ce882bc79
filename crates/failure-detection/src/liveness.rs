//! Hot: each request asks for each replica whether its node is up. No lock, no allocation.

use crate::health::{HealthConfig, Outcome, Traffic, TrafficCounters};
use arc_swap::ArcSwap;
use ombak_types::NodeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The failure detector says that the node is up.
const DETECTED: u8 = 1;
/// The node answers requests.
const HEALTHY: u8 = 2;

#[derive(Debug)]
struct Peer {
    flags: AtomicU8,
    traffic: TrafficCounters,
}

/// Which members are up for requests: the failure detector and the health of requests both say so.
#[derive(Debug)]
pub struct LivenessTable {
    /// Sorted by node.
    peers: ArcSwap<Vec<(NodeId, Arc<Peer>)>>,
    slow_after: Duration,
}

impl LivenessTable {
    /// A table without members.
    pub fn new(config: &HealthConfig) -> Self {
        Self { peers: ArcSwap::default(), slow_after: config.slow_after }
    }

    /// Whether requests may be sent to a node. A node that is not a member is never up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.with(node, |peer| peer.flags.load(Ordering::Relaxed) == DETECTED | HEALTHY).unwrap_or(false)
    }

    /// Counts a request that is being sent.
    pub fn began(&self, node: NodeId) {
        self.with(node, |peer| peer.traffic.began());
    }

    /// Counts the end of a request that [`Self::began`] counted, and that took `took`.
    pub fn ended(&self, node: NodeId, outcome: Outcome, took: Duration) {
        self.with(node, |peer| peer.traffic.ended(outcome, took, self.slow_after));
    }

    /// The counters of a member's requests.
    pub fn traffic(&self, node: NodeId) -> Option<Traffic> {
        self.with(node, |peer| peer.traffic.totals())
    }

    /// Replaces the members. Those that stay keep what is known about them; new ones are down.
    pub(crate) fn set_members(&self, members: impl IntoIterator<Item = NodeId>) {
        let before = self.peers.load();
        let mut peers: Vec<(NodeId, Arc<Peer>)> = members
            .into_iter()
            .map(|node| match find(&before, node) {
                Some(peer) => (node, Arc::clone(peer)),
                None => (node, Arc::new(Peer { flags: AtomicU8::new(HEALTHY), traffic: TrafficCounters::default() })),
            })
            .collect();
        peers.sort_unstable_by_key(|(node, _)| *node);
        peers.dedup_by_key(|(node, _)| *node);
        self.peers.store(Arc::new(peers));
    }

    pub(crate) fn set_detected(&self, node: NodeId, is_up: bool) {
        self.set(node, DETECTED, is_up);
    }

    pub(crate) fn set_healthy(&self, node: NodeId, is_healthy: bool) {
        self.set(node, HEALTHY, is_healthy);
    }

    fn set(&self, node: NodeId, flag: u8, is_set: bool) {
        self.with(node, |peer| match is_set {
            true => peer.flags.fetch_or(flag, Ordering::Relaxed),
            false => peer.flags.fetch_and(!flag, Ordering::Relaxed),
        });
    }

    fn with<R>(&self, node: NodeId, ask: impl FnOnce(&Peer) -> R) -> Option<R> {
        find(&self.peers.load(), node).map(|peer| ask(peer))
    }
}

fn find(peers: &[(NodeId, Arc<Peer>)], node: NodeId) -> Option<&Arc<Peer>> {
    let at = peers.binary_search_by_key(&node, |(node, _)| *node).ok()?;
    Some(&peers.get(at)?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_up_if_it_is_detected_and_healthy() {
        let table = LivenessTable::new(&HealthConfig::default());
        let (a, b) = (NodeId::new(5), NodeId::new(2));
        table.set_members([a, b]);
        assert!(!table.is_up(a), "a new member is down until it answers");
        table.set_detected(a, true);
        assert!(table.is_up(a) && !table.is_up(b) && !table.is_up(NodeId::new(3)));
        table.set_healthy(a, false);
        assert!(!table.is_up(a));
        table.set_members([b, a, NodeId::new(1)]);
        table.set_healthy(a, true);
        assert!(table.is_up(a), "a member that stays keeps what is known about it");
        table.set_members([b]);
        assert!(!table.is_up(a));
        table.set_members([a, b]);
        assert!(!table.is_up(a));
    }
}
