//! A fold over the heads of a class that makes its tree.

use super::class_tree::{ClassTree, Part};
use super::leaves::KEPT_HASH;
use super::partition_trees::{PartitionTrees, part_of_new, segment_of};
use crate::buckets::Snapshot as Buckets;
use crate::routing::tree_class_of_key;
use ombak_storage::{Detail, FoldEntry, IndexedVersion, Scope, Snapshot, StorageError};
use ombak_types::stored_object::{Corrupt, decode_head};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many keys of other classes a step passes over for each version that it may visit.
const OTHERS_PER_VERSION: usize = 8;

/// A build of the tree of a class, over what the class held at one moment. Changes after that
/// moment go on being added to the tree meanwhile.
///
/// It holds a snapshot of the store. A store takes a snapshot away that lives too long; then a step
/// fails, and a new build begins from the start. A build that is dropped leaves nothing.
pub(crate) struct TreeBuild {
    trees: Arc<PartitionTrees>,
    tree: Arc<ClassTree>,
    /// The state of the registry by which keys are in the class.
    buckets: Arc<Buckets>,
    /// Only versions with a larger seq are added.
    since_seq: u64,
    /// None when all was visited: it is not dropped while keys are locked.
    snapshot: Option<Box<dyn Snapshot>>,
    versions: u64,
    is_over: bool,
}

/// What a step of a build came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildStep {
    /// There is more: this many index entries were visited.
    More(usize),
    /// All was visited, and [`TreeBuild::end`] comes next.
    Visited,
}

/// What a build came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuildEnd {
    /// How many versions the class had when the build began.
    pub(crate) versions: u64,
    /// In how many leaves the tree differs from the one that it replaces; 0 if there was none.
    pub(crate) differences: u32,
}

/// Why a step of a build has failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildFailure {
    #[error(transparent)]
    Store(#[from] StorageError),
    #[error("the head of a version cannot be read: {0}")]
    Corrupt(#[from] Corrupt),
}

impl TreeBuild {
    pub(super) fn new(
        trees: Arc<PartitionTrees>,
        tree: Arc<ClassTree>,
        (buckets, since_seq): (Arc<Buckets>, u64),
        snapshot: Box<dyn Snapshot>,
    ) -> Self {
        Self { trees, tree, buckets, since_seq, snapshot: Some(snapshot), versions: 0, is_over: false }
    }

    /// Visits about this many versions of the partition, at least one. Blocks. The caller pauses
    /// between steps as long as its pace asks for.
    pub(crate) fn step(&mut self, versions_max: usize) -> Result<BuildStep, BuildFailure> {
        let (buckets, n) = (self.buckets.clone(), self.tree.n);
        let versions_max = versions_max.max(1);
        let is_of_class = |key: &[u8]| tree_class_of_key(&buckets, key) == Some(n);
        // Heads of other classes are not read, until so many were passed over that the step ends
        // with some of them. Otherwise a step over a class with few keys would visit everything.
        let others = AtomicUsize::new(0);
        let is_wanted = |key: &[u8]| {
            is_of_class(key) || others.fetch_add(1, Ordering::Relaxed) >= OTHERS_PER_VERSION * versions_max
        };
        let scope = Scope { since_seq: self.since_seq, class: Some(&is_wanted), ..Scope::EVERYTHING };
        let Some(snapshot) = &mut self.snapshot else { return Ok(BuildStep::Visited) };
        let entries = snapshot.next(&scope, Detail::Heads, versions_max)?;
        if entries.is_empty() {
            self.snapshot = None;
            return Ok(BuildStep::Visited);
        }
        for entry in entries.iter().filter(|entry| is_of_class(&entry.key)) {
            self.visit(entry)?;
            self.versions += 1;
        }
        Ok(BuildStep::More(entries.len()))
    }

    fn visit(&self, entry: &FoldEntry) -> Result<(), Corrupt> {
        let (digest, seq, expires_secs) = (entry.digest, entry.seq, entry.expires_secs);
        let hash = match &entry.stored {
            Some(stored) => Some(KEPT_HASH.of(&decode_head(&stored.head)?.0.clock)),
            None => None,
        };
        let part = part_of_new(Some((IndexedVersion { digest, seq, expires_secs }, hash)));
        match part.zip(segment_of(&entry.key)) {
            Some((part, segment)) => self.tree.change(segment, Part::Nothing, part),
            None => self.tree.lose(),
        }
        Ok(())
    }

    /// Lets the tree take its place. None if the class or a change that nobody could tell has made
    /// the build vain; then another one begins. The caller makes sure that nobody holds a key's
    /// lock, and that all was [visited](BuildStep::Visited).
    pub(crate) fn end(mut self) -> Option<BuildEnd> {
        self.is_over = true;
        let differences = self.trees.complete(&self.tree)?;
        Some(BuildEnd { versions: self.versions, differences })
    }
}

impl Drop for TreeBuild {
    fn drop(&mut self) {
        if !self.is_over {
            self.trees.give_up(&self.tree);
        }
    }
}
