//! The nodes that one request asks.

use super::peers::Peers;
use crate::coordination::{CountedSets, Replica, Weight};
use crate::deliberate_faults::{BrokenRule, is_broken};
use ombak_ring::placement::HomePlacement;
use ombak_ring::{Positions, Ring};
use ombak_types::NodeId;
use smallvec::{SmallVec, smallvec};

/// The nodes for the positions of a key, each once, in the order of the preference list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestReplicas {
    /// The nodes, with the weight of their answers. Those that are only in the other set of a home
    /// that changes come last.
    pub(crate) list: SmallVec<[Replica; 3]>,
    /// The index of this node in the list, if it has a position.
    pub(crate) local: Option<usize>,
    /// The sets in which the answers count.
    pub(crate) sets: CountedSets,
}

/// What a node needs to find replicas: who it is, and what it knows of the others.
#[derive(Clone, Copy)]
pub(crate) struct Viewer<'a> {
    pub(crate) here: NodeId,
    pub(crate) peers: &'a dyn Peers,
}

impl Viewer<'_> {
    fn is_up(self, id: NodeId) -> bool {
        id == self.here || self.peers.is_up(id)
    }

    /// The nodes for the `n` positions of a home in one of its rings. With `sloppy`, fallbacks
    /// stand in for owners that are down.
    fn positions(self, home: HomePlacement<'_>, ring: &Ring, n: u32, sloppy: bool) -> Positions {
        let is_up = |node| self.is_up(ring.id(node));
        let may_stand_in = |node| {
            let node = ring.id(node);
            let leaves = !self.peers.may_stand_in(node) && !is_broken(BrokenRule::LeaversStandInForNobody);
            !leaves && (home.is_known_to_all(node) || is_broken(BrokenRule::NewcomersStandInForNobody))
        };
        let number = home.home();
        if sloppy { ring.positions_with(number, n, is_up, may_stand_in) } else { ring.primaries(number, n, is_up) }
    }

    /// The positions in the ring in force of a home, the primaries first.
    pub(crate) fn preflist(self, home: HomePlacement<'_>, n: u32) -> Positions {
        let mut rows = self.positions(home, home.in_force(), n, true);
        rows.sort_by_key(|position| !position.is_primary());
        rows
    }
}

impl RequestReplicas {
    /// The nodes in which a get counts: those of the `n` positions in the ring in force.
    pub(crate) fn of_get(viewer: Viewer<'_>, home: HomePlacement<'_>, n: u32, sloppy: bool) -> Self {
        let (ring, here) = (home.in_force(), viewer.here);
        if ring.node_count() == 1 && ring.id(ring.owner(home.home())) == here {
            return Self { list: smallvec![Replica::primary(here, n)], local: Some(0), sets: CountedSets::One };
        }
        let positions = viewer.positions(home, ring, n, sloppy);
        let mut list: SmallVec<[Replica; 3]> = SmallVec::new();
        for position in &positions {
            let (node, owned) = (ring.id(position.node), u32::from(position.is_primary()));
            match list.iter_mut().find(|replica| replica.node == node) {
                Some(replica) => {
                    replica.positions += 1;
                    replica.primaries += owned;
                }
                None => list.push(Replica::in_force(node, 1, owned)),
            }
        }
        let local = list.iter().position(|replica| replica.node == here);
        Self { list, local, sets: CountedSets::One }
    }

    /// The nodes in which a put counts: while the home changes, also those of the other ring. Each
    /// ring has its own fallbacks.
    pub(crate) fn of_put(viewer: Viewer<'_>, home: HomePlacement<'_>, n: u32, sloppy: bool) -> Self {
        let in_force = Self::of_get(viewer, home, n, sloppy);
        match home.other().filter(|_| !is_broken(BrokenRule::PutsReachBothSets)) {
            None => in_force,
            Some(other) => in_force.with_other(viewer, home, other, n, sloppy),
        }
    }

    #[cold]
    fn with_other(mut self, viewer: Viewer<'_>, home: HomePlacement<'_>, ring: &Ring, n: u32, sloppy: bool) -> Self {
        for position in &viewer.positions(home, ring, n, sloppy) {
            let (node, primaries) = (ring.id(position.node), u32::from(position.is_primary()));
            match self.list.iter_mut().find(|replica| replica.node == node) {
                Some(replica) => {
                    replica.other.positions += 1;
                    replica.other.primaries += primaries;
                }
                None => {
                    let other = Weight { positions: 1, primaries };
                    self.list.push(Replica { other, ..Replica::in_force(node, 0, 0) });
                }
            }
        }
        self.local = self.list.iter().position(|replica| replica.node == viewer.here);
        self.sets = if is_broken(BrokenRule::BothSetsCount) { CountedSets::One } else { CountedSets::Both };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::{NoPeers, ReplicaClient, UnreachableNode};
    use ombak_ring::placement::{Placement, Step, StepOf};
    use ombak_ring::{RingSize, RingVersion};
    use std::collections::BTreeSet;
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

    fn find(ring: Ring, here: NodeId, peers: &dyn Peers, home: u32, n: u32, sloppy: bool) -> RequestReplicas {
        let placement = Placement::of_ring(Arc::new(ring));
        let viewer = Viewer { here, peers };
        let found = RequestReplicas::of_put(viewer, placement.home(home), n, sloppy);
        assert_eq!(found, RequestReplicas::of_get(viewer, placement.home(home), n, sloppy), "it is settled");
        found
    }

    fn nodes(found: &RequestReplicas) -> Vec<(NodeId, u32, u32)> {
        found.list.iter().map(|r| (r.node, r.positions, r.primaries)).collect()
    }

    /// D takes partition 3 from A. Until all members have confirmed that, nobody else may know that
    /// D can hold anything.
    #[test]
    fn a_node_that_is_new_in_a_goal_stands_in_for_nobody_before_the_first_step() {
        const D: NodeId = NodeId::new(4);
        let goal = Ring::from_owners(&[A, B, C, D, B, C, A, B], RingVersion { lineage: 7, number: 2 }).unwrap();
        let before = Placement::of_ring(Arc::new(ring()));
        let with_goal = before.with_goal(Arc::new(goal), &BTreeSet::from([2])).unwrap();
        // Home 0 has the goal at once, because A and B stay its first owners.
        assert!(with_goal.has_goal(0) && !with_goal.has_goal(3));
        let seen = with_goal.home(3).version().number;
        let begun = with_goal.after(&[StepOf { home: 3, seen, step: Step::Begin }]).unwrap();
        let up = Up(vec![B, D]);
        let viewer = Viewer { here: B, peers: &up };
        let of = |placement: &Placement| nodes(&RequestReplicas::of_put(viewer, placement.home(0), 2, true));
        assert_eq!(of(&with_goal), [(B, 2, 1)]);
        assert_eq!(of(&begun), [(D, 1, 0), (B, 1, 1)]);
    }

    #[test]
    fn a_node_that_is_alone_has_all_positions() {
        let ring = Ring::of_one_node(A, RingSize::new(8).unwrap(), RingVersion::first(7));
        let found = find(ring, A, &NoPeers, 5, 3, true);
        assert_eq!((nodes(&found), found.local), (vec![(A, 3, 3)], Some(0)));
    }

    #[test]
    fn fallbacks_stand_in_for_owners_that_are_down() {
        let all = find(ring(), B, &Up(vec![A, C]), 0, 2, true);
        assert_eq!((nodes(&all), all.local), (vec![(A, 1, 1), (B, 1, 1)], Some(1)));
        let without_a = find(ring(), B, &Up(vec![C]), 0, 2, true);
        assert_eq!((nodes(&without_a), without_a.local), (vec![(C, 1, 0), (B, 1, 1)], Some(1)));
        let strict = find(ring(), B, &Up(vec![C]), 0, 2, false);
        assert_eq!(nodes(&strict), [(B, 1, 1)]);
    }

    #[test]
    fn positions_of_one_node_count_together() {
        let found = find(ring(), A, &Up(vec![]), 0, 3, true);
        assert_eq!((nodes(&found), found.local), (vec![(A, 3, 1)], Some(0)));
        let other = find(ring(), C, &Up(vec![A, B]), 0, 2, true);
        assert_eq!((nodes(&other), other.local), (vec![(A, 1, 1), (B, 1, 1)], None), "C has no position");
    }
    /// A node that is up and may not stand in.
    struct Leaving(Vec<NodeId>, NodeId);

    impl Peers for Leaving {
        fn is_up(&self, node: NodeId) -> bool {
            self.0.contains(&node)
        }

        fn may_stand_in(&self, node: NodeId) -> bool {
            node != self.1
        }

        fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
            Arc::new(UnreachableNode(node))
        }

        fn name(&self, _node: NodeId) -> Option<String> {
            None
        }
    }

    const D: NodeId = NodeId::new(4);

    #[test]
    fn a_node_that_leaves_stands_in_for_nobody() {
        let ring = || Ring::from_owners(&[A, B, C, D, A, B, C, D], RingVersion::first(7)).unwrap();
        let nodes_of = |peers: &dyn Peers| nodes(&find(ring(), A, peers, 0, 2, true));
        assert_eq!(nodes_of(&Up(vec![C, D])), [(A, 1, 1), (C, 1, 0)]);
        assert_eq!(nodes_of(&Leaving(vec![C, D], C)), [(A, 1, 1), (D, 1, 0)]);
        let own = nodes(&find(ring(), A, &Leaving(vec![B, C, D], B), 0, 2, true));
        assert_eq!(own, [(A, 1, 1), (B, 1, 1)], "it serves what it owns");
    }

    #[test]
    fn a_home_that_changes_has_the_positions_of_both_rings() {
        let ring = |owners: &[NodeId], number| {
            Arc::new(Ring::from_owners(owners, RingVersion { lineage: 7, number }).unwrap())
        };
        let placement = Placement::of_ring(ring(&[A, B, C, A, B, C, A, B], 1));
        let placement = placement.with_goal(ring(&[A, D, C, A, D, C, A, B], 2), &BTreeSet::from([2])).unwrap();
        let seen = placement.home(0).version().number;
        let begun = placement.after(&[StepOf { home: 0, seen, step: Step::Begin }]).unwrap();
        let of = |placement: &Placement, peers: &dyn Peers| {
            let viewer = Viewer { here: A, peers };
            let found = RequestReplicas::of_put(viewer, placement.home(0), 2, true);
            assert_eq!(found.local, Some(0));
            let weight = |r: &Replica| (r.node, (r.positions, r.primaries), (r.other.positions, r.other.primaries));
            (found.list.iter().map(weight).collect::<Vec<_>>(), found.sets)
        };
        let all = of(&begun, &Up(vec![B, C, D]));
        assert_eq!(all, (vec![(A, (1, 1), (1, 1)), (B, (1, 1), (0, 0)), (D, (0, 0), (1, 1))], CountedSets::Both));
        // Each ring has its own fallback, and a fallback of one may be a primary of the other.
        let without_b = of(&begun, &Up(vec![C, D])).0;
        assert_eq!(without_b, [(A, (1, 1), (1, 1)), (C, (1, 0), (0, 0)), (D, (0, 0), (1, 1))]);
        let seen = begun.home(0).version().number;
        let flipped = begun.after(&[StepOf { home: 0, seen, step: Step::Flip }]).unwrap();
        let all = of(&flipped, &Up(vec![B, C, D])).0;
        assert_eq!(all, [(A, (1, 1), (1, 1)), (D, (1, 1), (0, 0)), (B, (0, 0), (1, 1))]);
        let get = RequestReplicas::of_get(Viewer { here: A, peers: &Up(vec![B, C, D]) }, flipped.home(0), 2, true);
        assert_eq!(nodes(&get), [(A, 1, 1), (D, 1, 1)]);
    }
}
