//! A tree of two levels over keys and their clocks.

use crate::segment::Segment;
use crate::tree_size::TreeSize;
use std::collections::BTreeMap;

/// The number of leaves of a branch.
pub const LEAVES: usize = 256;

/// The leaves of one branch.
type Leaves = [u32; LEAVES];

/// A tree: each leaf is the XOR of what the keys of its segment add, and each entry of the root is
/// the XOR of the leaves of one branch. Branches without keys take no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    size: TreeSize,
    /// The branches, by their number.
    branches: BTreeMap<u32, Box<Leaves>>,
}

impl Tree {
    /// A tree without keys.
    pub const fn new(size: TreeSize) -> Self {
        Self { size, branches: BTreeMap::new() }
    }

    /// The size of the tree.
    pub const fn size(&self) -> TreeSize {
        self.size
    }

    /// Adds a key with the [hash of its clock](crate::ClockHash), or takes it away if it was added.
    pub fn add(&mut self, segment: Segment, clock_hash: u32) {
        let leaf = self.size.leaf_of(segment.number);
        let (branch, place) = (leaf / LEAVES as u32, leaf as usize % LEAVES);
        let leaves = self.branches.entry(branch).or_insert_with(|| Box::new([0; LEAVES]));
        leaves[place] ^= segment.alternative ^ clock_hash;
    }

    /// Adds the keys of a branch of another tree of the same size. Returns false, and adds nothing,
    /// if the tree has no such branch, or the bytes are not those of [`Tree::branch`].
    pub fn add_branch(&mut self, branch: u32, bytes: &[u8]) -> bool {
        if branch >= self.size.branches() || bytes.len() != LEAVES * 4 {
            return false;
        }
        let leaves = self.branches.entry(branch).or_insert_with(|| Box::new([0; LEAVES]));
        for (leaf, added) in leaves.iter_mut().zip(bytes.as_chunks().0) {
            *leaf ^= u32::from_be_bytes(*added);
        }
        true
    }

    /// The first level: one hash for each branch, 4 bytes each, big-endian.
    pub fn root(&self) -> Vec<u8> {
        let mut root = vec![0; self.size.branches() as usize * 4];
        let (hashes, _) = root.as_chunks_mut();
        for (branch, leaves) in &self.branches {
            let hash = leaves.iter().fold(0u32, |hash, leaf| hash ^ leaf);
            hashes[*branch as usize] = hash.to_be_bytes();
        }
        root
    }

    /// The leaves of a branch, 4 bytes each, big-endian. A branch that the tree does not have has
    /// no keys.
    pub fn branch(&self, branch: u32) -> [u8; LEAVES * 4] {
        let mut bytes = [0; LEAVES * 4];
        if let Some(leaves) = self.branches.get(&branch) {
            let (places, _) = bytes.as_chunks_mut();
            for (place, leaf) in places.iter_mut().zip(leaves.iter()) {
                *place = leaf.to_be_bytes();
            }
        }
        bytes
    }

    /// Whether keys were added to a branch.
    pub fn has_branch(&self, branch: u32) -> bool {
        self.branches.contains_key(&branch)
    }

    /// The numbers of the branches with keys, ascending.
    pub fn branches(&self) -> impl Iterator<Item = u32> {
        self.branches.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_key() -> impl Strategy<Value = (Segment, u32)> {
        let segment = (any::<u32>(), any::<u32>());
        (segment.prop_map(|(number, alternative)| Segment { number, alternative }), any::<u32>())
    }

    fn tree_of(keys: &[(Segment, u32)], size: TreeSize) -> Tree {
        let mut tree = Tree::new(size);
        keys.iter().for_each(|(segment, hash)| tree.add(*segment, *hash));
        tree
    }

    proptest! {
        #[test]
        fn branches_of_parts_make_the_tree_of_the_whole(
            keys in prop::collection::vec(any_key(), 0..50), cut in 0..50usize, size in 0..6usize,
        ) {
            let size = TreeSize::ALL[size];
            let (first, second) = keys.split_at(cut.min(keys.len()));
            let (mut merged, second) = (tree_of(first, size), tree_of(second, size));
            for branch in second.branches() {
                prop_assert!(merged.add_branch(branch, &second.branch(branch)));
            }
            prop_assert_eq!(&merged, &tree_of(&keys, size));
            prop_assert_eq!(merged.root().len(), size.branches() as usize * 4);
        }

        #[test]
        fn what_is_added_twice_leaves_no_hash(keys in prop::collection::vec(any_key(), 0..50)) {
            let twice: Vec<_> = keys.iter().chain(&keys).copied().collect();
            let tree = tree_of(&twice, TreeSize::Small);
            prop_assert!(tree.root().iter().all(|byte| *byte == 0));
        }
    }

    /// docs/riak/semantics.md §18: the key bucket/key1 with the clock of that section.
    #[test]
    fn a_key_lies_where_riak_puts_it() {
        let segment = Segment { number: 537_214_062, alternative: 2_555_632_655 };
        let tree = tree_of(&[(segment, 43_197_903)], TreeSize::Large);
        let leaf = 537_214_062 & 0xF_FFFF;
        let [only] = tree.branches().collect::<Vec<_>>()[..] else { panic!("one branch") };
        assert_eq!(only, leaf / 256);
        let at = leaf as usize % 256 * 4;
        assert_eq!(tree.branch(only)[at..at + 4], 2_596_338_112u32.to_be_bytes());
        assert_eq!(tree.root()[only as usize * 4..][..4], 2_596_338_112u32.to_be_bytes());
    }

    #[test]
    fn foreign_branches_are_refused() {
        let mut tree = Tree::new(TreeSize::XxSmall);
        assert!(!tree.add_branch(16, &[0; LEAVES * 4]));
        assert!(!tree.add_branch(0, &[0; 3]));
        assert_eq!(tree, Tree::new(TreeSize::XxSmall));
    }
}
