//! The kept trees of one partition, by class.

use super::build::TreeBuild;
use super::class_tree::{ClassTree, KnownClock, Part, TreeEpoch};
use super::file::TreeFile;
use super::leaves::KeptLeaves;
use super::saved::Saved;
use crate::buckets::{BucketRegistry, Snapshot as Buckets};
use crate::routing::tree_class_of_key;
use crate::sums::{StoreRun, SumsSetup, slot_of};
use arc_swap::{ArcSwap, Guard};
use ombak_storage::{Backend, DropObserver, IndexedVersion, Previous, Snapshot, StorageError};
use ombak_tictac::Segment;
use ombak_types::names::split_storage_key;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracing::{error, warn};
use xxhash_rust::xxh3::xxh3_64;

/// The trees of a partition. A class has one from its first build on, until it is given up.
pub(crate) struct PartitionTrees {
    partition: u32,
    buckets: Arc<BucketRegistry>,
    file: TreeFile,
    /// Complete trees, and those that are being built. Changed with `waiting` held.
    trees: ArcSwap<Vec<Arc<ClassTree>>>,
    /// The trees of an earlier run, until it is known whether they are those of this one.
    waiting: Mutex<Option<Saved>>,
    is_waiting: AtomicBool,
    /// Versions up to this seq are set aside, and not in the trees.
    set_aside_to: AtomicU64,
    /// Whether trees that are wrong do not end the process. In most tests they do.
    tolerates: bool,
}

impl PartitionTrees {
    /// The trees of a store that was just opened, with what its last run has saved. None if the
    /// store removes versions by itself, of which nobody would tell the clocks. Blocks.
    pub(crate) fn open(partition: u32, store: &dyn Backend, setup: &SumsSetup) -> Option<Arc<Self>> {
        let file = TreeFile::new(setup, partition);
        let saved = file.take().filter(|saved| saved.run.is_left_in(store));
        if store.removes_by_itself() {
            return None;
        }
        Some(Arc::new(Self {
            partition,
            buckets: setup.buckets.clone(),
            file,
            trees: ArcSwap::default(),
            is_waiting: AtomicBool::new(saved.is_some()),
            waiting: Mutex::new(saved),
            set_aside_to: AtomicU64::new(0),
            tolerates: setup.tolerates_differences,
        }))
    }

    /// Whether a change has to be told. The clock of the version that a write replaces is hashed
    /// only then.
    pub(crate) fn is_keeping(&self) -> bool {
        !self.trees.load().is_empty() || self.is_waiting.load(Ordering::Acquire)
    }

    /// A version of a key has taken the place of what was there, or was removed. Called under the
    /// key's lock, after the append and before anybody learns of it. `old` is the version that the
    /// caller knows to have been there, if it knows its clock, and `new` the hash of the new clock,
    /// if that is known.
    pub(crate) fn changed(
        &self,
        key: &[u8],
        (previous, old): (Previous, Option<KnownClock>),
        after: Option<(IndexedVersion, Option<u32>)>,
    ) {
        if self.is_waiting.load(Ordering::Acquire) {
            self.settle(true);
        }
        let trees = self.trees.load();
        if trees.is_empty() {
            return;
        }
        let Some(n) = tree_class_of_key(&self.buckets.snapshot(), key) else { return };
        if trees.iter().all(|tree| tree.n != n) {
            return;
        }
        let change = self.part_of_previous(previous, old).zip(part_of_new(after)).zip(segment_of(key));
        for tree in trees.iter().filter(|tree| tree.n == n) {
            match change {
                Some(((old, new), segment)) => tree.change(segment, old, new),
                None => tree.lose(),
            }
        }
    }

    /// What the version added that is gone. None if nobody knows.
    fn part_of_previous(&self, previous: Previous, old: Option<KnownClock>) -> Option<Part> {
        match previous {
            Previous::Nothing => Some(Part::Nothing),
            Previous::Version(version) if version.seq <= self.set_aside_to.load(Ordering::SeqCst) => {
                Some(Part::Nothing)
            }
            Previous::Version(version) if slot_of(version.expires_secs).is_some() => Some(Part::Expiring),
            Previous::Version(version) => old.filter(|old| old.seq == version.seq).map(|old| Part::Lasting(old.hash)),
            Previous::Unknown => None,
        }
    }

    /// Versions up to this seq are set aside from now on, and no others. A start says so once the
    /// store is open: the trees of an earlier run wait for the seq of that run.
    pub(crate) fn set_aside(&self, seq: u64) {
        let mut waiting = self.waiting.lock();
        if self.set_aside_to.swap(seq, Ordering::SeqCst) == seq {
            return;
        }
        self.trees.load().iter().for_each(|tree| tree.lose());
        self.trees.store(Arc::default());
        if waiting.as_ref().is_some_and(|saved| saved.set_aside_to != seq) {
            self.is_waiting.store(false, Ordering::SeqCst);
            *waiting = None;
        }
    }

    /// Reads from the tree of a class. None if there is none that is complete, or if versions of
    /// the class expire. The caller makes sure that nobody holds a key's lock.
    pub(crate) fn read<T>(&self, n: u32, read: impl FnOnce(&KeptLeaves) -> T) -> Option<T> {
        self.settle(false);
        self.usable(n).filter(|tree| !tree.has_expiring()).map(|tree| read(&tree.leaves))
    }

    /// Whether the class has a complete tree. It is not answered while versions of the class
    /// expire.
    pub(crate) fn has_tree(&self, n: u32) -> bool {
        self.settle(false);
        self.usable(n).is_some()
    }

    /// Whether the class has a complete tree with versions that expire.
    pub(crate) fn has_expiring(&self, n: u32) -> bool {
        self.usable(n).is_some_and(|tree| tree.has_expiring())
    }

    fn usable(&self, n: u32) -> Option<Arc<ClassTree>> {
        let is_usable = |tree: &&Arc<ClassTree>| tree.n == n && tree.is_complete() && self.is_current(tree);
        self.trees.load().iter().find(is_usable).cloned()
    }

    /// Whether a tree knows all changes, and has the keys that its class has by now.
    pub(super) fn is_current(&self, tree: &Arc<ClassTree>) -> bool {
        let is_listed = || self.trees.load().iter().any(|listed| Arc::ptr_eq(listed, tree));
        !tree.is_lost() && is_listed() && tree.epoch == TreeEpoch::of(&self.buckets.snapshot(), tree.n)
    }

    /// Begins a build of the tree of a class. None if one is under way. The caller makes sure that
    /// nobody holds a key's lock until this returns: then the snapshot has exactly what was there
    /// before the changes that are told from now on.
    pub(crate) fn begin_build(
        self: &Arc<Self>,
        n: u32,
        snapshot: impl FnOnce() -> Result<Box<dyn Snapshot>, StorageError>,
    ) -> Result<Option<TreeBuild>, StorageError> {
        self.settle(false);
        let buckets = Guard::into_inner(self.buckets.snapshot());
        let tree = Arc::new(ClassTree::new(n, TreeEpoch::of(&buckets, n)));
        {
            let mut waiting = self.waiting.lock();
            if self.trees.load().iter().any(|tree| tree.n == n && !tree.is_complete()) {
                return Ok(None);
            }
            // Changes that are told from now on would not be in the trees that wait.
            self.is_waiting.store(false, Ordering::SeqCst);
            *waiting = None;
            self.list(|listed| listed.push(tree.clone()));
        }
        // Listed first: a version that the store removes by itself after the snapshot began loses
        // the tree. Whoever sets aside anything else later takes the tree from the list.
        let since_seq = self.set_aside_to.load(Ordering::SeqCst);
        match snapshot() {
            Ok(snapshot) => Ok(Some(TreeBuild::new(self.clone(), tree, (buckets, since_seq), snapshot))),
            Err(error) => {
                self.give_up(&tree);
                Err(error)
            }
        }
    }

    /// Lets a tree that was built take the place of the one that its class had before. Returns in
    /// how many leaves they differ, or None if the build was in vain. The caller makes sure that
    /// nobody holds a key's lock.
    pub(super) fn complete(&self, tree: &Arc<ClassTree>) -> Option<u32> {
        let _listing = self.waiting.lock();
        if !self.is_current(tree) {
            self.list(|listed| listed.retain(|other| !Arc::ptr_eq(other, tree)));
            return None;
        }
        let before = self.usable(tree.n);
        let differences = before.map_or(0, |before| tree.leaves.differences(&before.leaves));
        tree.complete();
        self.list(|listed| listed.retain(|other| other.n != tree.n || Arc::ptr_eq(other, tree)));
        if differences > 0 {
            let what = "a kept tree is not that of its store: the store has lost or gained something without a write";
            error!(partition = self.partition, n = tree.n, differences, "{what}; it was made anew");
            assert!(self.tolerates, "partition {}: {what}", self.partition);
        }
        Some(differences)
    }

    /// A build has ended without a tree.
    pub(super) fn give_up(&self, tree: &Arc<ClassTree>) {
        let _listing = self.waiting.lock();
        self.list(|listed| listed.retain(|other| !Arc::ptr_eq(other, tree)));
    }

    /// Gives up the trees of classes that need none, and those that are never answered again. A
    /// build that is under way stays.
    pub(crate) fn keep_only(&self, is_kept: impl Fn(u32) -> bool) {
        self.settle(false);
        let _listing = self.waiting.lock();
        let stays = |tree: &Arc<ClassTree>| !tree.is_complete() || is_kept(tree.n) && self.is_current(tree);
        if !self.trees.load().iter().all(stays) {
            let stays: Vec<_> = self.trees.load().iter().filter(|tree| stays(tree)).cloned().collect();
            self.trees.store(Arc::new(stays));
        }
    }

    /// What the trees take in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.trees.load().iter().map(|tree| tree.leaves.memory_bytes()).sum()
    }

    /// The number of complete trees.
    pub(crate) fn count(&self) -> usize {
        self.trees.load().iter().filter(|tree| tree.is_complete()).count()
    }

    /// Saves the complete trees of a store that was closed cleanly. The caller makes sure that
    /// nobody writes. Blocks.
    pub(crate) fn save(&self, store: &dyn Backend) {
        let run = StoreRun::of(store);
        if !run.has_content() {
            return;
        }
        self.settle(false);
        let (set_aside_to, listed) = {
            let _listing = self.waiting.lock();
            (self.set_aside_to.load(Ordering::SeqCst), self.trees.load_full())
        };
        // One state of the registry for all of it, as with sums.
        let buckets = self.buckets.snapshot();
        let is_saved = |tree: &&Arc<ClassTree>| {
            tree.is_complete()
                && !tree.is_lost()
                && !tree.has_expiring()
                && tree.epoch == TreeEpoch::of(&buckets, tree.n)
        };
        let trees: Vec<_> = listed.iter().filter(is_saved).collect();
        if trees.is_empty() {
            return;
        }
        let print = print_of(&buckets, trees.iter().map(|tree| tree.n));
        let leaves = trees.iter().map(|tree| (tree.n, &tree.leaves));
        if let Err(error) = self.file.save((print, set_aside_to), &run, leaves) {
            warn!(partition = self.partition, %error, "the kept trees are not saved: the next start makes them anew");
        }
    }

    /// Takes over the trees of an earlier run once the classes have the keys of that run, and the
    /// same versions are set aside. `is_changing`: something is about to be told. If it is still
    /// otherwise, the trees of the earlier run are given up.
    fn settle(&self, is_changing: bool) {
        if !self.is_waiting.load(Ordering::Acquire) {
            return;
        }
        let mut waiting = self.waiting.lock();
        let Some(saved) = waiting.take() else { return };
        let buckets = self.buckets.snapshot();
        let sets_aside_the_same = self.set_aside_to.load(Ordering::SeqCst) == saved.set_aside_to;
        if sets_aside_the_same && saved.print == print_of(&buckets, saved.trees.iter().map(|(n, _)| *n)) {
            let trees = saved.trees.into_iter().map(|(n, leaves)| {
                let epoch = TreeEpoch::of(&buckets, n);
                Arc::new(ClassTree::of_earlier_run(n, epoch, leaves))
            });
            self.list(|listed| listed.extend(trees));
        } else if !is_changing {
            *waiting = Some(saved);
            return;
        }
        self.is_waiting.store(false, Ordering::Release);
    }

    /// Changes the list. The caller holds `waiting`.
    fn list(&self, change: impl FnOnce(&mut Vec<Arc<ClassTree>>)) {
        let mut listed = Vec::clone(&self.trees.load());
        change(&mut listed);
        self.trees.store(Arc::new(listed));
    }

    /// Makes a leaf of the tree of a class wrong.
    #[cfg(test)]
    pub(crate) fn damage(&self, n: u32) {
        self.usable(n).unwrap().leaves.add(7, 77);
    }
}

impl DropObserver for PartitionTrees {
    fn dropped(&self, key: &[u8], version: IndexedVersion) {
        self.changed(key, (Previous::Version(version), None), None);
    }
}

/// What a new version adds. None if nobody knows.
pub(super) fn part_of_new(after: Option<(IndexedVersion, Option<u32>)>) -> Option<Part> {
    match after {
        None => Some(Part::Nothing),
        Some((version, _)) if slot_of(version.expires_secs).is_some() => Some(Part::Expiring),
        Some((_, hash)) => hash.map(Part::Lasting),
    }
}

/// The segment of a storage key. None if it is no such key.
pub(super) fn segment_of(key: &[u8]) -> Option<Segment> {
    let (bucket_type, bucket, key) = split_storage_key(key).ok()?;
    Some(Segment::of_parts(bucket_type, bucket, key))
}

/// One number for the keys of the trees of these n, which ascend or not.
fn print_of(buckets: &Buckets, ns: impl Iterator<Item = u32>) -> u64 {
    let of_n = |n: u32| {
        let prints = [u64::from(n), buckets.class_map(n).print, buckets.exclusion_map(n).print];
        xxh3_64(&prints.map(u64::to_le_bytes).concat())
    };
    ns.map(of_n).fold(0, u64::wrapping_add)
}
