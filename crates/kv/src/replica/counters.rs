//! The counters of fences that this node knows of others (docs/design/replication.md §6).

use arc_swap::ArcSwap;
use ombak_types::NodeId;
use std::collections::BTreeMap;

/// The boot number of a node, and its counter of fences, which starts at 0 with the process. A pair
/// with a larger boot number, or with the same and a larger counter, is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeCounter {
    /// The boot number: the number of the node's starts.
    pub boot: u64,
    /// The number of fences that the process has raised.
    pub counter: u64,
}

/// The newest counter that each peer has told. Work that may bring a copy to a peer notes its
/// counter before it reads the copy.
///
/// Every answer tells a counter, and nearly none tells a new one. So readers take no lock, and a
/// writer replaces the whole map.
#[derive(Debug, Default)]
pub struct KnownCounters(ArcSwap<BTreeMap<NodeId, NodeCounter>>);

impl KnownCounters {
    /// The newest counter that a node has told.
    pub fn of(&self, node: NodeId) -> Option<NodeCounter> {
        self.0.load().get(&node).copied()
    }

    /// Notes what a node has told. An older counter, which came late, changes nothing.
    pub fn note(&self, node: NodeId, told: NodeCounter) {
        if self.of(node).is_some_and(|known| known >= told) {
            return;
        }
        self.0.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            let newest = known.entry(node).or_insert(told);
            *newest = told.max(*newest);
            known
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newer_counters_replace_older_ones() {
        let (known, node) = (KnownCounters::default(), NodeId::new(7));
        let pair = |boot, counter| NodeCounter { boot, counter };
        assert_eq!(known.of(node), None);
        for (told, then) in [((2, 5), (2, 5)), ((2, 4), (2, 5)), ((1, 9), (2, 5)), ((2, 6), (2, 6)), ((3, 0), (3, 0))] {
            known.note(node, pair(told.0, told.1));
            assert_eq!(known.of(node), Some(pair(then.0, then.1)), "{told:?}");
        }
    }
}
