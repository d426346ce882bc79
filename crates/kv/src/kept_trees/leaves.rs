//! The leaves and the root of a tree to which many threads add.

#[cfg(test)]
use ombak_tictac::Tree;
use ombak_tictac::{ClockHash, LEAVES, TreeSize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The size of kept trees, as in Riak.
pub(crate) const KEPT_SIZE: TreeSize = TreeSize::Large;
/// Their hash of clocks, as in Riak.
pub(crate) const KEPT_HASH: ClockHash = ClockHash::Plain;
const BRANCHES: usize = KEPT_SIZE.branches() as usize;
/// What a branch takes in memory.
const BRANCH_BYTES: usize = LEAVES * size_of::<u32>();
/// What the root and the places of the branches take.
const BASE_BYTES: usize = BRANCHES * (size_of::<AtomicU32>() + size_of::<OnceLock<Box<Branch>>>());
/// The most memory that a tree takes.
pub(crate) const TREE_BYTES_MAX: usize = BASE_BYTES + BRANCHES * BRANCH_BYTES;

type Branch = [AtomicU32; LEAVES];

/// The leaves of a tree of [`KEPT_SIZE`], and its root. A branch is in memory from its first key
/// on.
///
/// A leaf and its entry of the root do not change together: whoever reads makes sure that nobody
/// adds.
pub(crate) struct KeptLeaves {
    root: Box<[AtomicU32]>,
    branches: Box<[OnceLock<Box<Branch>>]>,
    allocated: AtomicUsize,
}

impl KeptLeaves {
    /// A tree without keys.
    pub(super) fn new() -> Self {
        let root = (0..BRANCHES).map(|_| AtomicU32::new(0)).collect();
        let branches = (0..BRANCHES).map(|_| OnceLock::new()).collect();
        Self { root, branches, allocated: AtomicUsize::new(0) }
    }

    /// XORs a number to the leaf of a segment. Takes no lock.
    pub(super) fn add(&self, segment: u32, number: u32) {
        let leaf = KEPT_SIZE.leaf_of(segment) as usize;
        self.add_at(leaf / LEAVES, leaf % LEAVES, number);
    }

    fn add_at(&self, branch: usize, place: usize, number: u32) {
        let (Some(of_branch), Some(root)) = (self.branches.get(branch), self.root.get(branch)) else { return };
        let leaves = of_branch.get_or_init(|| {
            self.allocated.fetch_add(1, Ordering::Relaxed);
            Box::new([const { AtomicU32::new(0) }; LEAVES])
        });
        leaves[place].fetch_xor(number, Ordering::Relaxed);
        root.fetch_xor(number, Ordering::Relaxed);
    }

    /// Adds the leaves of a branch, as [`Self::branch`] returns them. Returns whether they are
    /// such.
    pub(super) fn add_branch(&self, branch: u32, bytes: &[u8]) -> bool {
        let (leaves, rest) = bytes.as_chunks::<4>();
        if branch >= KEPT_SIZE.branches() || leaves.len() != LEAVES || !rest.is_empty() {
            return false;
        }
        for (place, leaf) in leaves.iter().enumerate().filter(|(_, leaf)| **leaf != [0; 4]) {
            self.add_at(branch as usize, place, u32::from_be_bytes(*leaf));
        }
        true
    }

    /// The root: one hash for each branch, 4 bytes each, big-endian.
    pub(crate) fn root(&self) -> Vec<u8> {
        self.root.iter().flat_map(|hash| hash.load(Ordering::Relaxed).to_be_bytes()).collect()
    }

    /// The leaves of a branch that meet a condition, 4 bytes each, big-endian; the others are 0.
    /// None if all are 0.
    pub(crate) fn branch(&self, branch: u32, is_wanted: impl Fn(u32) -> bool) -> Option<Vec<u8>> {
        let leaves = self.branches.get(branch as usize)?.get()?;
        let mut bytes = Vec::with_capacity(BRANCH_BYTES);
        for (place, leaf) in leaves.iter().enumerate() {
            let is_in = is_wanted(branch * LEAVES as u32 + place as u32);
            let leaf = if is_in { leaf.load(Ordering::Relaxed) } else { 0 };
            bytes.extend_from_slice(&leaf.to_be_bytes());
        }
        bytes.iter().any(|byte| *byte != 0).then_some(bytes)
    }

    /// The branches that are not all 0, ascending.
    pub(crate) fn branches(&self) -> impl Iterator<Item = (u32, Vec<u8>)> + '_ {
        (0..KEPT_SIZE.branches()).filter_map(|branch| Some((branch, self.branch(branch, |_| true)?)))
    }

    /// How many leaves are not those of another tree.
    pub(super) fn differences(&self, other: &Self) -> u32 {
        let leaf =
            |of: Option<&Box<Branch>>, place: usize| of.map_or(0, |leaves| leaves[place].load(Ordering::Relaxed));
        let mut differences = 0;
        for (one, other) in self.branches.iter().zip(&other.branches) {
            let (one, other) = (one.get(), other.get());
            if one.is_some() || other.is_some() {
                differences += (0..LEAVES).filter(|place| leaf(one, *place) != leaf(other, *place)).count();
            }
        }
        u32::try_from(differences).unwrap_or(u32::MAX)
    }

    /// What the tree takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        BASE_BYTES + self.allocated.load(Ordering::Relaxed) * BRANCH_BYTES
    }

    /// The same as a plain tree.
    #[cfg(test)]
    fn to_tree(&self) -> Tree {
        let mut tree = Tree::new(KEPT_SIZE);
        for (branch, leaves) in self.branches() {
            tree.add_branch(branch, &leaves);
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_tictac::Segment;

    #[test]
    fn the_leaves_and_the_root_are_those_of_a_plain_tree() {
        let (kept, mut plain) = (KeptLeaves::new(), Tree::new(KEPT_SIZE));
        for number in 0..2_000u32 {
            let segment = Segment { number: number.wrapping_mul(0x9E37_79B9), alternative: number ^ 0x55AA };
            kept.add(segment.number, segment.alternative ^ (number * 7));
            plain.add(segment, number * 7);
        }
        assert_eq!(kept.root(), plain.root());
        assert_eq!(kept.to_tree().root(), plain.root());
        for branch in 0..KEPT_SIZE.branches() {
            let leaves = kept.branch(branch, |_| true);
            assert_eq!(leaves.is_some(), plain.has_branch(branch));
            assert_eq!(leaves.unwrap_or_else(|| vec![0; BRANCH_BYTES]), plain.branch(branch));
        }
        let copy = KeptLeaves::new();
        kept.branches().for_each(|(branch, leaves)| assert!(copy.add_branch(branch, &leaves)));
        assert_eq!((copy.differences(&kept), copy.root()), (0, kept.root()));
        copy.add(7, 1);
        copy.add(8, 1);
        copy.add(9, 0);
        assert_eq!((copy.differences(&kept), kept.differences(&copy)), (2, 2));
    }

    #[test]
    fn only_wanted_leaves_are_given_and_an_empty_branch_is_none() {
        let kept = KeptLeaves::new();
        assert_eq!(kept.branch(0, |_| true), None);
        kept.add(3, 5);
        kept.add(4, 6);
        let only = kept.branch(0, |leaf| leaf == 4).unwrap();
        assert_eq!((&only[12..16], &only[16..20]), (&[0; 4][..], &[0, 0, 0, 6][..]));
        assert_eq!(kept.branch(0, |leaf| leaf == 5), None);
        kept.add(3, 5);
        kept.add(4, 6);
        assert_eq!(kept.branch(0, |_| true), None, "what was added twice is gone");
        assert_eq!(kept.memory_bytes(), BASE_BYTES + BRANCH_BYTES);
    }

    #[test]
    fn foreign_branches_are_refused() {
        let kept = KeptLeaves::new();
        assert!(!kept.add_branch(KEPT_SIZE.branches(), &[0; BRANCH_BYTES]));
        assert!(!kept.add_branch(0, &[1; BRANCH_BYTES - 1]) && !kept.add_branch(0, &[1; BRANCH_BYTES + 4]));
        assert_eq!(kept.memory_bytes(), BASE_BYTES);
    }
}
