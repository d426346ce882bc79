//! Coverage: which node answers a listing or an index query for which home partitions
//! (docs/design/replication.md §16).
//!
//! What it is: a choice of replicas, made per class (home partition, n), so that every key is asked
//! for exactly once. Equal inputs give equal plans; a seed distributes the work of different
//! requests.
//!
//! What it is not: Riak asks as few nodes as possible. This plan gives every node about as many
//! partitions as the others, so that they work at the same time.

use crate::ring::Ring;
use ombak_types::NodeId;
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The state of a node as a replica of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// The node answers requests.
    pub is_up: bool,
    /// The node's setting `participate_in_coverage`.
    pub participates: bool,
    /// The node is known to hold everything of the class (docs/design/replication.md §1).
    pub is_full: bool,
    /// Another replica of the class has an owed mark for this node: the node missed a write
    /// (docs/design/replication.md §2).
    pub missed_writes: bool,
}

impl ReplicaState {
    const fn may_answer(self) -> bool {
        self.is_up && self.participates && self.is_full
    }
}

/// The classes of one home partition for which one node answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveragePart {
    /// The home partition.
    pub home: u32,
    /// The n of each class, ascending.
    pub classes: SmallVec<[u32; 4]>,
    /// The node that answers.
    pub node: NodeId,
}

/// Who answers for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoveragePlan {
    /// The parts, in the order of their home partitions.
    pub parts: Vec<CoveragePart>,
    /// The classes for which nobody can answer: (home partition, n).
    pub not_covered: Vec<(u32, u32)>,
}

impl CoveragePlan {
    /// Whether every key is asked for.
    pub fn is_complete(&self) -> bool {
        self.not_covered.is_empty()
    }

    /// The parts of each node.
    pub fn by_node(&self) -> BTreeMap<NodeId, Vec<&CoveragePart>> {
        let mut nodes: BTreeMap<NodeId, Vec<&CoveragePart>> = BTreeMap::new();
        for part in &self.parts {
            nodes.entry(part.node).or_default().push(part);
        }
        nodes
    }
}

impl Ring {
    /// Plans a request over these classes of all home partitions. A listing of the keys of a bucket
    /// has one class, its `n_val`; a listing of buckets has all that are in use.
    ///
    /// One node answers for all classes of a home partition if there is one that may, and that
    /// missed no write of any. Each replica of the class with the smallest n is a replica of the
    /// others too. If there is no such node, the classes are planned one by one.
    pub fn coverage(
        &self,
        classes: &[u32],
        seed: u64,
        state: impl Fn(NodeId, u32, u32) -> ReplicaState,
    ) -> CoveragePlan {
        let homes = 0..self.size().get();
        self.coverage_of_homes(homes, classes, seed, state)
    }

    /// As [`Self::coverage`], for some home partitions: those of which an answer broke off are
    /// planned again with a `state` that excludes the nodes that failed.
    pub fn coverage_of_homes(
        &self,
        homes: impl IntoIterator<Item = u32>,
        classes: &[u32],
        seed: u64,
        state: impl Fn(NodeId, u32, u32) -> ReplicaState,
    ) -> CoveragePlan {
        // A ring has no more positions than partitions.
        let mut ns: SmallVec<[u32; 4]> = classes.iter().map(|n| (*n).min(self.size().get())).collect();
        ns.sort_unstable();
        ns.dedup();
        let mut choice = Choice { ring: self, seed, state, parts_of: BTreeMap::new() };
        let mut plan = CoveragePlan::default();
        for home in homes {
            choice.cover(home, &ns, &mut plan);
        }
        plan
    }
}

/// Chooses nodes, and counts how many parts each has.
struct Choice<'a, S> {
    ring: &'a Ring,
    seed: u64,
    state: S,
    parts_of: BTreeMap<NodeId, usize>,
}

impl<S: Fn(NodeId, u32, u32) -> ReplicaState> Choice<'_, S> {
    fn cover(&mut self, home: u32, ns: &[u32], plan: &mut CoveragePlan) {
        let Some(least) = ns.first() else { return };
        let for_all = |state: ReplicaState| state.may_answer() && (ns.len() == 1 || !state.missed_writes);
        if let Some(node) = self.choose(home, *least, ns, for_all) {
            return self.add(CoveragePart { home, classes: ns.into(), node }, plan);
        }
        let first_part = plan.parts.len();
        for n in ns {
            match self.choose(home, *n, &[*n], ReplicaState::may_answer) {
                None => plan.not_covered.push((home, *n)),
                Some(node) => match plan.parts[first_part..].iter_mut().find(|part| part.node == node) {
                    Some(part) => part.classes.push(*n),
                    None => self.add(CoveragePart { home, classes: SmallVec::from_slice(&[*n]), node }, plan),
                },
            }
        }
    }

    /// The best replica of the class (home, n) that is suitable for all the classes `ns`: one that
    /// missed no write, then one with few parts, then any.
    fn choose(&self, home: u32, n: u32, ns: &[u32], suits: impl Fn(ReplicaState) -> bool) -> Option<NodeId> {
        let candidates = self.ring.replica_set(home, n).into_iter();
        let suitable = candidates.filter(|node| ns.iter().all(|n| suits((self.state)(*node, home, *n))));
        suitable.min_by_key(|node| {
            let missed = ns.iter().any(|n| (self.state)(*node, home, *n).missed_writes);
            let parts = self.parts_of.get(node).copied().unwrap_or_default();
            (missed, parts, mix(self.seed ^ mix(node.get() ^ mix(u64::from(home)))))
        })
    }

    fn add(&mut self, part: CoveragePart, plan: &mut CoveragePlan) {
        *self.parts_of.entry(part.node).or_default() += 1;
        plan.parts.push(part);
    }
}

/// Spreads the bits of a number over all 64 bits (the finalizer of the generator SplitMix64).
const fn mix(number: u64) -> u64 {
    let n = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Claim;
    use crate::{RingSize, RingVersion};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const GOOD: ReplicaState = ReplicaState { is_up: true, participates: true, is_full: true, missed_writes: false };

    fn ring(members: u64, size: u32) -> Ring {
        let members = (0..members).map(NodeId::new).collect();
        let claim = Claim::of_new_ring(RingSize::new(size).unwrap(), &members, 4).unwrap();
        Ring::from_owners(&claim.owners, RingVersion::first(1)).unwrap()
    }

    #[test]
    fn nodes_share_the_work_of_a_listing() {
        let ring = ring(5, 64);
        let plan = ring.coverage(&[3], 1, |_, _, _| GOOD);
        assert!(plan.is_complete());
        assert_eq!(plan.parts.iter().map(|part| part.home).collect::<Vec<_>>(), (0..64).collect::<Vec<_>>());
        let loads: Vec<usize> = plan.by_node().values().map(Vec::len).collect();
        assert!(loads.iter().all(|parts| (11..=15).contains(parts)), "{loads:?}");
    }

    #[test]
    fn another_seed_asks_others_and_the_same_seed_the_same() {
        let ring = ring(5, 64);
        let of = |seed| ring.coverage(&[3], seed, |_, _, _| GOOD);
        assert_eq!(of(7), of(7));
        let asked: BTreeSet<NodeId> = (0..32).map(|seed| of(seed).parts[9].node).collect();
        assert_eq!(asked, ring.replica_set(9, 3).into_iter().collect());
    }

    #[test]
    fn without_a_replica_that_may_answer_a_class_is_not_covered() {
        let ring = ring(3, 8);
        let down = NodeId::new(1);
        let cut = [
            ReplicaState { is_up: false, ..GOOD },
            ReplicaState { participates: false, ..GOOD },
            ReplicaState { is_full: false, ..GOOD },
        ];
        for bad in cut {
            let plan = ring.coverage(&[1], 1, |node, _, _| if node == down { bad } else { GOOD });
            let own: Vec<(u32, u32)> = (0..8).filter(|p| ring.id(ring.owner(*p)) == down).map(|p| (p, 1)).collect();
            assert_eq!(plan.not_covered, own);
            assert!(ring.coverage(&[2], 1, |node, _, _| if node == down { bad } else { GOOD }).is_complete());
        }
    }

    /// The third primary does not know the classes with n = 1 and n = 2.
    #[test]
    fn one_node_answers_for_all_classes_only_if_it_knows_them_all() {
        let ring = ring(5, 64);
        let plan = ring.coverage(&[3, 1, 2, 3], 1, |_, _, _| GOOD);
        for part in &plan.parts {
            assert_eq!((part.node, &part.classes[..]), (ring.id(ring.owner(part.home)), &[1, 2, 3][..]));
        }
        let first = ring.id(ring.owner(0));
        let filling = |node, home, n| ReplicaState { is_full: (node, home, n) != (first, 0, 2), ..GOOD };
        let plan = ring.coverage_of_homes([0], &[1, 2, 3], 1, filling);
        assert!(plan.is_complete());
        let of = |n: u32| plan.parts.iter().find(|part| part.classes.contains(&n)).unwrap().node;
        assert_eq!((of(1), of(2)), (first, ring.id(ring.owner(1))));
    }

    #[test]
    fn a_part_that_broke_off_goes_to_another_replica() {
        let ring = ring(5, 64);
        let failed = ring.coverage(&[3], 1, |_, _, _| GOOD).parts[20].node;
        let left = |node, _, _| ReplicaState { is_up: node != failed, ..GOOD };
        let again = ring.coverage_of_homes([20], &[3], 1, left);
        assert!(again.parts[0].node != failed && ring.replica_set(20, 3).contains(&again.parts[0].node));
        assert_eq!((again.parts[0].home, again.parts.len()), (20, 1));
    }

    #[test]
    fn a_request_without_classes_has_no_parts() {
        assert_eq!(ring(3, 8).coverage(&[], 1, |_, _, _| GOOD), CoveragePlan::default());
    }

    proptest! {
        #[test]
        fn every_class_is_covered_once_by_the_best_replicas(
            members in 1..9u64,
            bits in 3u32..=5,
            classes in prop::collection::vec(1u32..=6, 1..4),
            seed in any::<u64>(),
            states in prop::collection::vec((0..8u8, 0..3u8), 64),
        ) {
            let ring = ring(members, 1 << bits);
            let state = |node: NodeId, home: u32, n: u32| {
                // Most are up, most are full, and many missed something.
                let (bits, missed) = states[(node.get() as usize * 7 + home as usize * 3 + n as usize) % states.len()];
                ReplicaState {
                    is_up: node.get() % 5 != 4,
                    participates: bits & 3 != 3,
                    is_full: bits & 5 != 5,
                    missed_writes: missed == 0,
                }
            };
            let plan = ring.coverage(&classes, seed, state);
            prop_assert_eq!(&plan, &ring.coverage(&classes, seed, state));
            let mut seen: Vec<(u32, u32)> = plan.not_covered.clone();
            for part in &plan.parts {
                for n in &part.classes {
                    seen.push((part.home, *n));
                    let chosen = state(part.node, part.home, *n);
                    prop_assert!(chosen.is_up && chosen.participates && chosen.is_full);
                    let replicas = ring.replica_set(part.home, *n);
                    prop_assert!(replicas.contains(&part.node));
                    let better = replicas.iter().map(|node| state(*node, part.home, *n));
                    let better = better.filter(|s| s.is_up && s.participates && s.is_full && !s.missed_writes).count();
                    prop_assert!(!chosen.missed_writes || better == 0, "a replica that missed nothing is preferred");
                }
            }
            for (home, n) in &plan.not_covered {
                let replicas = ring.replica_set(*home, *n);
                prop_assert!(!replicas.iter().map(|node| state(*node, *home, *n)).any(ReplicaState::may_answer));
            }
            seen.sort_unstable();
            let classes: BTreeSet<u32> = classes.into_iter().collect();
            let all: Vec<(u32, u32)> = (0..1 << bits).flat_map(|home| classes.iter().map(move |n| (home, *n))).collect();
            prop_assert_eq!(seen, all);
        }
    }
}
