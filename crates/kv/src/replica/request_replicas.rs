//! The nodes that one request asks.

use super::peers::Peers;
use crate::coordination::Replica;
use ombak_ring::Ring;
use ombak_types::NodeId;
use smallvec::{SmallVec, smallvec};

/// The nodes for the positions of a key, each once, in the order of the preference list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestReplicas {
    /// The nodes, with the weight of their answers.
    pub(crate) list: SmallVec<[Replica; 3]>,
    /// The index of this node in the list, if it has a position.
    pub(crate) local: Option<usize>,
}

impl RequestReplicas {
    /// The nodes for the `n` positions of a home partition. With `sloppy`, fallbacks stand in for
    /// owners that are down.
    pub(crate) fn find(ring: &Ring, here: NodeId, peers: &dyn Peers, home: u32, n: u32, sloppy: bool) -> Self {
        if ring.node_count() == 1 && ring.id(ring.owner(home)) == here {
            return Self { list: smallvec![Replica::primary(here, n)], local: Some(0) };
        }
        let is_up = |node| {
            let id = ring.id(node);
            id == here || peers.is_up(id)
        };
        let positions = if sloppy { ring.positions(home, n, is_up) } else { ring.primaries(home, n, is_up) };
        let mut list: SmallVec<[Replica; 3]> = SmallVec::new();
        for position in &positions {
            let (node, owned) = (ring.id(position.node), u32::from(position.is_primary()));
            match list.iter_mut().find(|replica| replica.node == node) {
                Some(replica) => {
                    replica.positions += 1;
                    replica.primaries += owned;
                }
                None => list.push(Replica { node, positions: 1, primaries: owned }),
            }
        }
        let local = list.iter().position(|replica| replica.node == here);
        Self { list, local }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::{NoPeers, ReplicaClient, UnreachableNode};
    use ombak_ring::{RingSize, RingVersion};
    use std::sync::Arc;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);
    const C: NodeId = NodeId::new(3);

    struct Up(Vec<NodeId>);

    impl Peers for Up {
        fn is_up(&self, node: NodeId) -> bool {
            self.0.contains(&node)
        }

        fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
            Arc::new(UnreachableNode(node))
        }

        fn name(&self, _node: NodeId) -> Option<String> {
            None
        }
    }

    fn ring() -> Ring {
        Ring::from_owners(&[A, B, C, A, B, C, A, B], RingVersion::first(7)).unwrap()
    }

    fn nodes(found: &RequestReplicas) -> Vec<(NodeId, u32, u32)> {
        found.list.iter().map(|r| (r.node, r.positions, r.primaries)).collect()
    }

    #[test]
    fn a_node_that_is_alone_has_all_positions() {
        let ring = Ring::of_one_node(A, RingSize::new(8).unwrap(), RingVersion::first(7));
        let found = RequestReplicas::find(&ring, A, &NoPeers, 5, 3, true);
        assert_eq!((nodes(&found), found.local), (vec![(A, 3, 3)], Some(0)));
    }

    #[test]
    fn fallbacks_stand_in_for_owners_that_are_down() {
        let all = RequestReplicas::find(&ring(), B, &Up(vec![A, C]), 0, 2, true);
        assert_eq!((nodes(&all), all.local), (vec![(A, 1, 1), (B, 1, 1)], Some(1)));
        let without_a = RequestReplicas::find(&ring(), B, &Up(vec![C]), 0, 2, true);
        assert_eq!((nodes(&without_a), without_a.local), (vec![(C, 1, 0), (B, 1, 1)], Some(1)));
        let strict = RequestReplicas::find(&ring(), B, &Up(vec![C]), 0, 2, false);
        assert_eq!(nodes(&strict), [(B, 1, 1)]);
    }

    #[test]
    fn positions_of_one_node_count_together() {
        let found = RequestReplicas::find(&ring(), A, &Up(vec![]), 0, 3, true);
        assert_eq!((nodes(&found), found.local), (vec![(A, 3, 1)], Some(0)));
        let other = RequestReplicas::find(&ring(), C, &Up(vec![A, B]), 0, 2, true);
        assert_eq!((nodes(&other), other.local), (vec![(A, 1, 1), (B, 1, 1)], None), "C has no position");
    }
}
