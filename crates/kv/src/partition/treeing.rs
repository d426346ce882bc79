//! The kept trees of the classes of a partition.

use super::appends::Clocks;
use super::partition::Partition;
use crate::kept_trees::{BuildEnd, KEPT_HASH, KeptLeaves, KnownClock, PartitionTrees, TreeBuild};
use crate::sums::SumsSetup;
use ombak_storage::StorageError;
use ombak_types::VectorClock;

impl Partition {
    /// Can keep trees of the classes from now on. Called before the first write, and before
    /// [`Self::with_sums`], which tells the trees what the store removes by itself. Blocks.
    pub(crate) fn with_trees(self, setup: &SumsSetup) -> Self {
        let trees = PartitionTrees::open(self.number(), &**self.store(), setup);
        self.growing_trees(trees)
    }

    /// Whether the clocks of changes have to be known at this moment. It begins while all keys are
    /// locked.
    pub(super) fn is_keeping_trees(&self) -> bool {
        self.trees().is_some_and(|trees| trees.is_keeping())
    }

    /// What kept trees need to know of a write.
    pub(super) fn clocks(&self, old: Option<KnownClock>, new: &VectorClock) -> Clocks {
        Clocks { old, new: self.is_keeping_trees().then(|| KEPT_HASH.of(new)) }
    }

    /// Whether it may have trees: its store removes nothing by itself.
    pub(crate) const fn may_keep_trees(&self) -> bool {
        self.trees().is_some()
    }

    /// Reads from the kept tree of the class with this n, at one moment. None if there is none, and
    /// while versions of the class expire.
    ///
    /// Locks all keys meanwhile. The caller holds no key's lock. Blocks.
    pub(crate) fn read_kept_tree<T>(&self, n: u32, read: impl FnOnce(&KeptLeaves) -> T) -> Option<T> {
        let trees = self.trees().filter(|trees| trees.has_tree(n))?;
        let _all = self.lock_all_keys();
        trees.read(n, read)
    }

    /// Whether the class with this n has a complete tree.
    pub(crate) fn has_kept_tree(&self, n: u32) -> bool {
        self.trees().is_some_and(|trees| trees.has_tree(n))
    }

    /// Whether the class with this n has a complete tree that is not answered, because versions of
    /// the class expire.
    pub(crate) fn has_expiring_in_tree(&self, n: u32) -> bool {
        self.trees().is_some_and(|trees| trees.has_expiring(n))
    }

    /// Begins to build the tree of the class with this n. None if the partition keeps no trees, or
    /// if a build is under way.
    ///
    /// Locks all keys while the snapshot is taken. The caller holds no key's lock. Blocks.
    pub(crate) fn begin_tree(&self, n: u32) -> Result<Option<TreeBuild>, StorageError> {
        let Some(trees) = self.trees() else { return Ok(None) };
        let _all = self.lock_all_keys();
        trees.begin_build(n, || self.snapshot())
    }

    /// Ends a build that has visited everything. None if it was in vain.
    ///
    /// Locks all keys meanwhile. The caller holds no key's lock. Blocks.
    pub(crate) fn end_tree(&self, build: TreeBuild) -> Option<BuildEnd> {
        let _all = self.lock_all_keys();
        build.end()
    }

    /// Gives up the trees of the classes with other n.
    pub(crate) fn keep_only_trees_of(&self, is_kept: impl Fn(u32) -> bool) {
        if let Some(trees) = self.trees() {
            trees.keep_only(is_kept);
        }
    }

    /// How many complete trees there are, and what all take in memory.
    pub(crate) fn kept_tree_totals(&self) -> (usize, usize) {
        self.trees().map_or((0, 0), |trees| (trees.count(), trees.memory_bytes()))
    }

    /// Saves the trees for the next start. The store was closed cleanly. Blocks.
    pub(super) fn save_trees(&self) {
        if let Some(trees) = self.trees() {
            // A write whose append came before the close is told when its key is free.
            let _all = self.lock_all_keys();
            trees.save(&**self.store());
        }
    }

    /// What is set aside has changed.
    pub(super) fn set_aside_in_trees(&self, seq: u64) {
        if let Some(trees) = self.trees() {
            trees.set_aside(seq);
        }
    }
}
