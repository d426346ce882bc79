//! The positions of a key: the node that serves each of its n replicas (docs/design/replication.md
//! §14).

use crate::ring::{NodeIndex, Ring};
use smallvec::SmallVec;

/// One of the n replicas of a class (home partition, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The partition number under which the API shows the position. It is the partition where the
    /// walk found the owner. When the owner has an earlier position too, it is home + j for the
    /// j-th position. The key itself is stored in the home partition.
    pub partition: u32,
    /// The owner of the position, which depends only on the ring. Only the owner's answer counts as
    /// a primary's.
    pub owner: NodeIndex,
    /// The node that serves the position now: the owner, or a fallback while the owner is down.
    pub node: NodeIndex,
}

/// The positions of a key, in order. Up to eight positions need no allocation.
pub type Positions = SmallVec<[Position; 8]>;

impl Position {
    /// Whether the owner itself serves the position.
    pub fn is_primary(&self) -> bool {
        self.node == self.owner
    }
}

impl Ring {
    /// The `n` positions of a home partition, all served by their owners, whether these are up or
    /// not. As in Riak, a key has at most as many positions as the ring has partitions.
    pub fn owners_of(&self, home: u32, n: u32) -> Positions {
        let n = n.min(self.size().get());
        let mut list = Positions::new();
        let mut walk = Walk::from(self, home);
        while list.len() < n as usize
            && let Some((partition, owner)) = walk.next_node()
        {
            list.push(Position { partition, owner, node: owner });
        }
        let distinct = list.len();
        for j in distinct..n as usize {
            let Position { owner, node, .. } = list[j % distinct];
            list.push(Position { partition: self.size().after(home, j as u32), owner, node });
        }
        list
    }

    /// The `n` positions of a home partition, with fallbacks for the nodes that are down. Returns
    /// no positions when no node is up.
    ///
    /// The positions of nodes that are down go, in order, to the next up nodes of the walk that
    /// have no position yet. When no such node is left, the remaining positions are distributed in
    /// turn over the up nodes of the list. If all nodes of the list are down, they are distributed
    /// over the fallbacks.
    pub fn positions(&self, home: u32, n: u32, is_up: impl Fn(NodeIndex) -> bool) -> Positions {
        self.positions_with(home, n, is_up, |_| true)
    }

    /// [`Self::positions`], where only some nodes may be fallbacks.
    pub fn positions_with(
        &self,
        home: u32,
        n: u32,
        is_up: impl Fn(NodeIndex) -> bool,
        may_stand_in: impl Fn(NodeIndex) -> bool,
    ) -> Positions {
        let mut positions = self.owners_of(home, n);
        if positions.iter().all(|p| is_up(p.owner)) {
            return positions;
        }
        let mut up: SmallVec<[NodeIndex; 8]> = SmallVec::new();
        for position in positions.iter().filter(|p| is_up(p.owner)) {
            if !up.contains(&position.owner) {
                up.push(position.owner);
            }
        }
        let nobody_of_the_list = up.is_empty();
        let mut walk = Walk::after(self, home, &positions);
        let mut turns = 0usize;
        for position in positions.iter_mut().filter(|p| !is_up(p.owner)) {
            if let Some((_, unused)) = walk.by_ref().find(|(_, node)| is_up(*node) && may_stand_in(*node)) {
                position.node = unused;
                if nobody_of_the_list {
                    up.push(unused);
                }
            } else if !up.is_empty() {
                position.node = up[turns % up.len()];
                turns += 1;
            } else {
                return Positions::new();
            }
        }
        positions
    }

    /// The positions whose owners are up, for requests with `sloppy_quorum = false`. They can be
    /// fewer than `n`.
    pub fn primaries(&self, home: u32, n: u32, is_up: impl Fn(NodeIndex) -> bool) -> Positions {
        let mut positions = self.owners_of(home, n);
        positions.retain(|p| is_up(p.owner));
        positions
    }

    /// [`Self::positions`] in the order of Riak's preference lists: first the primaries, then the
    /// fallbacks (docs/riak/semantics.md §1).
    pub fn preflist(&self, home: u32, n: u32, is_up: impl Fn(NodeIndex) -> bool) -> Positions {
        let mut rows = self.positions(home, n, is_up);
        rows.sort_by_key(|p| !p.is_primary());
        rows
    }
}

/// Walks once around the ring from a partition and returns every owner once.
struct Walk<'a> {
    ring: &'a Ring,
    home: u32,
    steps: u32,
    found: SmallVec<[NodeIndex; 8]>,
}

impl<'a> Walk<'a> {
    fn from(ring: &'a Ring, home: u32) -> Self {
        Self { ring, home: home % ring.size().get(), steps: 0, found: SmallVec::new() }
    }

    /// Continues where the walk that found `list` stopped.
    fn after(ring: &'a Ring, home: u32, list: &[Position]) -> Self {
        let mut walk = Self::from(ring, home);
        for position in list {
            if !walk.found.contains(&position.owner) {
                walk.found.push(position.owner);
            }
        }
        walk
    }

    fn next_node(&mut self) -> Option<(u32, NodeIndex)> {
        // The walk ends when it has found all nodes; on a ring of one node it would otherwise visit
        // all partitions for every key.
        while self.steps < self.ring.size().get() && self.found.len() < self.ring.node_count() {
            let partition = self.ring.size().after(self.home, self.steps);
            self.steps += 1;
            let owner = self.ring.owner(partition);
            if !self.found.contains(&owner) {
                self.found.push(owner);
                return Some((partition, owner));
            }
        }
        None
    }
}

impl Iterator for Walk<'_> {
    type Item = (u32, NodeIndex);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_node()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RingSize, RingVersion};
    use ombak_types::NodeId;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const N: [NodeId; 5] = [NodeId::new(0), NodeId::new(1), NodeId::new(2), NodeId::new(3), NodeId::new(4)];

    fn ring(owners: &[u8]) -> Ring {
        let ids: Vec<NodeId> = owners.iter().map(|o| NodeId::new(u64::from(*o))).collect();
        Ring::from_owners(&ids, RingVersion::first(1)).unwrap()
    }

    fn striped(nodes: u8, size: u32) -> Ring {
        ring(&(0..size).map(|p| (p % u32::from(nodes)) as u8).collect::<Vec<_>>())
    }

    /// (partition, the serving node, whether that node is the primary)
    fn shown(ring: &Ring, positions: &[Position]) -> Vec<(u32, NodeId, bool)> {
        positions.iter().map(|p| (p.partition, ring.id(p.node), p.is_primary())).collect()
    }

    fn row(partition: u32, node: NodeId, primary: bool) -> (u32, NodeId, bool) {
        (partition, node, primary)
    }

    #[test]
    fn one_node_stands_in_all_positions() {
        let ring = Ring::of_one_node(N[0], RingSize::DEFAULT, RingVersion::first(1));
        let rows = shown(&ring, &ring.positions(63, 3, |_| true));
        assert_eq!(rows, [row(63, N[0], true), row(0, N[0], true), row(1, N[0], true)]);
        assert!(ring.positions(63, 3, |_| false).is_empty());
        assert!(!ring.positions(0, 8, |_| true).spilled(), "no allocation");
    }

    #[test]
    fn two_nodes_share_three_positions_by_the_ring() {
        let ring = striped(2, 8);
        let b = ring.node(N[1]).unwrap();
        assert_eq!(
            shown(&ring, &ring.positions(1, 3, |_| true)),
            [row(1, N[1], true), row(2, N[0], true), row(3, N[1], true)]
        );
        assert_eq!(
            shown(&ring, &ring.positions(1, 3, |n| n != b)),
            [row(1, N[0], false), row(2, N[0], true), row(3, N[0], false)]
        );
    }

    #[test]
    fn nodes_that_own_neighbouring_partitions_are_met_once() {
        let ring = ring(&[0, 0, 0, 1, 1, 2, 0, 0]);
        assert_eq!(
            shown(&ring, &ring.positions(0, 4, |_| true)),
            [row(0, N[0], true), row(3, N[1], true), row(5, N[2], true), row(3, N[0], true)]
        );
    }

    /// The case of docs/design/replication.md §14: three nodes, n = 3, and two nodes down.
    #[test]
    fn the_last_node_up_answers_for_all() {
        let ring = striped(3, 8);
        let a = ring.node(N[0]).unwrap();
        let rows = shown(&ring, &ring.positions(0, 3, |n| n == a));
        assert_eq!(rows, [row(0, N[0], true), row(1, N[0], false), row(2, N[0], false)]);
        assert_eq!(ring.primaries(0, 3, |n| n == a).len(), 1);
    }

    #[test]
    fn stand_ins_that_run_out_leave_the_rest_to_the_list() {
        let ring = striped(5, 8);
        let down: Vec<_> = N[..4].iter().map(|n| ring.node(*n).unwrap()).collect();
        let two_down = ring.positions(0, 4, |n| !down[..2].contains(&n));
        assert_eq!(
            shown(&ring, &two_down),
            [row(0, N[4], false), row(1, N[2], false), row(2, N[2], true), row(3, N[3], true)]
        );
        let all_of_the_list_down = ring.positions(0, 4, |n| !down.contains(&n));
        assert!(all_of_the_list_down.iter().all(|p| ring.id(p.node) == N[4] && !p.is_primary()));
    }

    #[test]
    fn the_preference_list_shows_primaries_first() {
        let ring = striped(4, 8);
        let a = ring.node(N[0]).unwrap();
        assert_eq!(
            shown(&ring, &ring.preflist(0, 3, |n| n != a)),
            [row(1, N[1], true), row(2, N[2], true), row(0, N[3], false)]
        );
    }

    fn any_ring() -> impl Strategy<Value = Ring> {
        (3u32..=6, 1u8..=9)
            .prop_flat_map(|(bits, nodes)| prop::collection::vec(0..nodes, 1 << bits))
            .prop_map(|owners| ring(&owners))
    }

    /// Riak's own list: the next n partitions. Each partition whose node is down goes to the next
    /// up node; every partition of the walk is used at most once (docs/riak/semantics.md §1).
    fn riaks(ring: &Ring, home: u32, n: u32, up: &BTreeSet<NodeIndex>) -> Vec<(u32, NodeIndex)> {
        let mut rest = n..ring.size().get();
        let mut primaries = Vec::new();
        let mut fallbacks = Vec::new();
        for j in 0..n {
            let (partition, owner) = (ring.size().after(home, j), ring.owner(home + j));
            if up.contains(&owner) {
                primaries.push((partition, owner));
            } else if let Some(k) = rest.find(|k| up.contains(&ring.owner(home + k))) {
                // The fallback runs under the failed partition's index.
                fallbacks.push((partition, ring.owner(home + k)));
            }
        }
        primaries.extend(fallbacks);
        primaries
    }

    proptest! {
        #[test]
        fn a_striped_ring_of_enough_nodes_gives_riaks_list(
            bits in 3u32..=6,
            nodes in 1u8..=8,
            n in any::<u32>(),
            home in any::<u32>(),
            up in prop::collection::vec(any::<bool>(), 8),
        ) {
            let size = 1u32 << bits;
            let n = 1 + n % u32::from(nodes);
            // Where the ring's end breaks the pattern, Riak may use a node twice. The test avoids
            // these homes.
            let home = home % (size - u32::from(nodes) + 1);
            let ring = striped(nodes, size);
            let list = |rows: &[Position]| rows.iter().map(|p| (p.partition, p.node)).collect::<Vec<_>>();
            let owners = ring.owners_of(home, n);
            let everyone = ring.nodes().map(|(node, _)| node).collect();
            prop_assert_eq!(list(&owners), riaks(&ring, home, n, &everyone));
            // Riak lets a node be a fallback twice. Ombak does so only after every other up node
            // has a position.
            let up: BTreeSet<_> = ring.nodes().map(|(node, _)| node).filter(|node| up[usize::from(node.0)]).collect();
            let down = owners.iter().filter(|p| !up.contains(&p.owner)).count();
            let spare = up.iter().filter(|node| owners.iter().all(|p| p.owner != **node)).count();
            if spare >= down {
                let rows = ring.preflist(home, n, |node| up.contains(&node));
                prop_assert_eq!(list(&rows), riaks(&ring, home, n, &up));
            }
        }

        #[test]
        fn there_are_always_n_positions(ring in any_ring(), home in any::<u16>(), n in 1u32..=12, up in any::<u16>()) {
            let home = u32::from(home);
            let is_up = |node: NodeIndex| up & 1 << node.0 != 0;
            let positions = ring.positions(home, n, is_up);
            let anybody = ring.nodes().any(|(node, _)| is_up(node));
            prop_assert_eq!(positions.len() as u32, if anybody { n.min(ring.size().get()) } else { 0 });
            for position in &positions {
                prop_assert!(is_up(position.node));
                prop_assert!(position.partition < ring.size().get());
                prop_assert!(position.is_primary() || !is_up(position.owner), "an up owner answers itself");
            }
        }

        #[test]
        fn owners_do_not_depend_on_who_is_up(ring in any_ring(), home in 0u32..8, n in 1u32..=12, up in any::<u16>()) {
            let owners = |positions: &[Position]| positions.iter().map(|p| (p.partition, p.owner)).collect::<Vec<_>>();
            let with_some = ring.positions(home, n, |node| up & 1 << node.0 != 0);
            prop_assume!(!with_some.is_empty());
            prop_assert_eq!(owners(&with_some), owners(&ring.owners_of(home, n)));
        }

        #[test]
        fn no_node_answers_twice_while_another_that_is_up_does_not_answer(
            ring in any_ring(), home in 0u32..8, n in 1u32..=8, up in any::<u16>()
        ) {
            let is_up = |node: NodeIndex| up & 1 << node.0 != 0;
            let positions = ring.positions(home, n, is_up);
            prop_assume!(!positions.is_empty());
            let used: BTreeSet<_> = positions.iter().map(|p| p.node).collect();
            let unused = ring.nodes().any(|(node, _)| is_up(node) && !used.contains(&node));
            prop_assert!(!unused || used.len() == positions.len());
        }

        #[test]
        fn positions_of_one_owner_go_round_evenly(ring in any_ring(), home in 0u32..8, n in 1u32..=12) {
            let positions = ring.owners_of(home, n);
            let distinct = ring.node_count().min(n as usize);
            for (j, position) in positions.iter().enumerate() {
                prop_assert_eq!(position.owner, positions[j % distinct].owner);
            }
            let first: BTreeSet<_> = positions.iter().take(distinct).map(|p| p.owner).collect();
            prop_assert_eq!(first.len(), distinct);
        }
    }
}
