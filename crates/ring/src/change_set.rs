//! What a new ring changes for the keys: the home partitions whose replicas are others than before
//! (docs/design/replication.md §3).

use crate::ring::Ring;
use ombak_types::NodeId;
use smallvec::SmallVec;

/// The nodes of a class, each once, in the order of their first positions.
pub type ReplicaSet = SmallVec<[NodeId; 8]>;

/// A home partition whose replicas a new ring changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedHome {
    /// The home partition.
    pub home: u32,
    /// The replica set in the ring in force, called O in docs/design/replication.md.
    pub old: ReplicaSet,
    /// The replica set in the new ring, called N.
    pub new: ReplicaSet,
}

impl ChangedHome {
    /// The nodes that become replicas.
    pub fn joining(&self) -> impl Iterator<Item = NodeId> {
        self.new.iter().copied().filter(|node| !self.old.contains(node))
    }

    /// The nodes that are no replicas any more.
    pub fn leaving(&self) -> impl Iterator<Item = NodeId> {
        self.old.iter().copied().filter(|node| !self.new.contains(node))
    }
}

impl Ring {
    /// The nodes of the class (home partition, n).
    pub fn replica_set(&self, home: u32, n: u32) -> ReplicaSet {
        let mut set = ReplicaSet::new();
        for position in self.owners_of(home, n) {
            let node = self.id(position.owner);
            // Positions beyond the number of nodes repeat the nodes from the first on.
            if set.contains(&node) {
                break;
            }
            set.push(node);
        }
        set
    }

    /// The home partitions whose classes with this n change from this ring to another, in order.
    /// Returns `None` when the rings have different sizes.
    ///
    /// A class changes when a node gets another number of its positions. That includes classes with
    /// equal replica sets if there are fewer nodes than n: quorums count positions
    /// (docs/design/replication.md §14), so the two rings do not agree on a majority.
    pub fn changed_homes(&self, new: &Self, n: u32) -> Option<Vec<ChangedHome>> {
        let homes = (self.size() == new.size()).then_some(0..self.size().get())?;
        let changed = homes.filter(|home| !self.has_same_shares(new, *home, n));
        let set = |home| ChangedHome { home, old: self.replica_set(home, n), new: new.replica_set(home, n) };
        Some(changed.map(set).collect())
    }

    /// Whether each node has as many positions of the class (home, n) in this ring as in another.
    pub(crate) fn has_same_shares(&self, other: &Self, home: u32, n: u32) -> bool {
        self.shares_of_class(home, n) == other.shares_of_class(home, n)
    }

    /// The node of each position, sorted.
    fn shares_of_class(&self, home: u32, n: u32) -> ReplicaSet {
        let mut nodes: ReplicaSet = self.owners_of(home, n).iter().map(|position| self.id(position.owner)).collect();
        nodes.sort_unstable();
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Claim;
    use crate::{RingSize, RingVersion};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn ring(owners: &[u64]) -> Ring {
        let ids: Vec<NodeId> = owners.iter().map(|o| NodeId::new(*o)).collect();
        Ring::from_owners(&ids, RingVersion::first(1)).unwrap()
    }

    fn claimed(before: Option<&Ring>, members: u64) -> Ring {
        let members = (0..members).map(NodeId::new).collect();
        let size = RingSize::DEFAULT;
        let claim =
            before.map_or_else(|| Claim::of_new_ring(size, &members, 4), |b| Claim::of_changed_ring(b, &members, 4));
        Ring::from_owners(&claim.unwrap().owners, RingVersion::first(1)).unwrap()
    }

    fn ids(nodes: impl Iterator<Item = NodeId>) -> Vec<u64> {
        nodes.map(NodeId::get).collect()
    }

    #[test]
    fn a_slot_that_moves_changes_the_sets_of_n_homes() {
        let old = ring(&[0, 1, 2, 3, 0, 1, 2, 3]);
        let new = ring(&[0, 1, 2, 3, 4, 1, 2, 3]);
        let changed = old.changed_homes(&new, 3).unwrap();
        assert_eq!(changed.iter().map(|change| change.home).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(ids(changed[0].old.iter().copied()), [2, 3, 0]);
        assert_eq!(ids(changed[0].new.iter().copied()), [2, 3, 4]);
        assert_eq!((ids(changed[0].joining()), ids(changed[0].leaving())), (vec![4], vec![0]));
    }

    #[test]
    fn an_order_of_the_same_nodes_is_no_change() {
        let old = ring(&[0, 1, 0, 1, 0, 1, 0, 1]);
        let turned = ring(&[1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(old.changed_homes(&turned, 2), Some(vec![]));
        // With three positions for two nodes, one of them has two.
        let changed = old.changed_homes(&turned, 3).unwrap();
        assert_eq!(changed.len(), 8);
        assert!(changed.iter().all(|change| change.joining().count() + change.leaving().count() == 0));
    }

    #[test]
    fn rings_of_different_sizes_are_not_compared() {
        assert_eq!(ring(&[0; 8]).changed_homes(&ring(&[0; 16]), 3), None);
    }

    #[test]
    fn a_sixth_node_changes_no_more_sets_than_its_partitions_reach() {
        let five = claimed(None, 5);
        let six = claimed(Some(&five), 6);
        assert_eq!(six.partitions_owned(six.node(NodeId::new(5)).unwrap()), 10);
        let changed = five.changed_homes(&six, 3).unwrap();
        assert_eq!(changed.len(), 30);
        assert!(changed.iter().all(|change| ids(change.joining()) == [5] && change.leaving().count() == 1));
    }

    /// The first n distinct nodes of a walk, and how many positions each has.
    fn model(owners: &[u64], home: usize, n: u32) -> BTreeMap<u64, usize> {
        let n = (n as usize).min(owners.len());
        let mut found: Vec<u64> = Vec::new();
        for step in 0..owners.len() {
            let owner = owners[(home + step) % owners.len()];
            if found.len() < n && !found.contains(&owner) {
                found.push(owner);
            }
        }
        let mut shares = BTreeMap::new();
        (0..n).for_each(|j| *shares.entry(found[j % found.len()]).or_default() += 1);
        shares
    }

    proptest! {
        #[test]
        fn changed_homes_are_those_of_a_model(
            bits in 3usize..=5,
            old in prop::collection::vec(0..6u64, 32),
            edits in prop::collection::vec((0..32usize, 0..8u64), 0..6),
            n in 1u32..=9,
        ) {
            let old = &old[..1 << bits];
            let mut new = old.to_vec();
            for (partition, owner) in edits {
                new[partition % old.len()] = owner;
            }
            let changed = ring(old).changed_homes(&ring(&new), n).unwrap();
            let by_home: BTreeMap<u32, ChangedHome> = changed.into_iter().map(|change| (change.home, change)).collect();
            for home in 0..old.len() {
                let (before, after) = (model(old, home, n), model(&new, home, n));
                let change = by_home.get(&(home as u32));
                prop_assert_eq!(change.is_some(), before != after, "home {}", home);
                if let Some(change) = change {
                    let set = |nodes: &ReplicaSet| nodes.iter().map(|node| node.get()).collect::<BTreeSet<_>>();
                    prop_assert_eq!(set(&change.old), before.keys().copied().collect());
                    prop_assert_eq!(set(&change.new), after.keys().copied().collect());
                    prop_assert_eq!((change.old.len(), change.new.len()), (before.len(), after.len()));
                }
            }
        }

        #[test]
        fn going_back_changes_the_same_homes(from in 1..12u64, to in 1..12u64, n in 1u32..=5) {
            let old = claimed(None, from);
            let new = claimed(Some(&old), to);
            let homes = |changed: &[ChangedHome]| changed.iter().map(|change| change.home).collect::<Vec<_>>();
            let (there, back) = (old.changed_homes(&new, n).unwrap(), new.changed_homes(&old, n).unwrap());
            prop_assert_eq!(homes(&there), homes(&back));
            for (there, back) in there.iter().zip(&back) {
                prop_assert_eq!((&there.old, &there.new), (&back.new, &back.old));
            }
            prop_assert_eq!(old.changed_homes(&old, n), Some(vec![]));
        }
    }
}
