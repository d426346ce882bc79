//! The sums of one partition, by class.

use super::class_sums::ClassSums;
use super::file::{SumsFile, SumsSetup};
use super::plain::Sums;
use super::quiet::UnlockedChanges;
use super::run::StoreRun;
use super::saved::Saved;
use super::state::SumsState;
use super::walk::{SumsWalk, Turn};
use crate::buckets::{BucketRegistry, Snapshot as Buckets};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::routing::class_of_key;
use arc_swap::{ArcSwap, Guard};
use ombak_storage::{Backend, DropObserver, IndexedVersion, Previous, Snapshot, StorageError, key_hash};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tracing::{error, warn};
use xxhash_rust::xxh3::xxh3_64;

/// What the sums of an earlier run wait for.
#[derive(Clone, Copy)]
struct Awaited {
    /// The print of their class maps.
    class_print: u64,
    /// The seq up to which versions were set aside.
    set_aside_to: u64,
}

/// The sums of a partition. A class is counted from its first walk on.
pub(crate) struct PartitionSums {
    partition: u32,
    buckets: Arc<BucketRegistry>,
    file: SumsFile,
    /// Changed with `awaited` held.
    classes: ArcSwap<Vec<Arc<ClassSums>>>,
    /// None if no sums of an earlier run wait.
    awaited: Mutex<Option<Awaited>>,
    is_awaiting: AtomicBool,
    /// Versions up to this seq are set aside, and not in the sums.
    set_aside_to: AtomicU64,
    unlocked: UnlockedChanges,
    /// How many ranges and slots were wrong for no known reason.
    differences: AtomicU64,
    /// Whether wrong sums do not end the process. In most tests they do.
    tolerates: bool,
    /// Who else learns of what the store removes by itself.
    next: Option<Arc<dyn DropObserver>>,
}

impl PartitionSums {
    /// The sums of a store that was just opened, with what its last run has saved. None if somebody
    /// else observes the store. What the store removes by itself is told to `next`, too. Blocks.
    pub(crate) fn open(
        partition: u32,
        store: &dyn Backend,
        setup: &SumsSetup,
        next: Option<Arc<dyn DropObserver>>,
    ) -> Option<Arc<Self>> {
        let sums = Arc::new(Self {
            partition,
            buckets: setup.buckets.clone(),
            file: SumsFile::new(setup, partition),
            classes: ArcSwap::default(),
            awaited: Mutex::new(None),
            is_awaiting: AtomicBool::new(false),
            set_aside_to: AtomicU64::new(0),
            unlocked: UnlockedChanges::default(),
            differences: AtomicU64::new(0),
            tolerates: setup.tolerates_differences,
            next,
        });
        if !store.observe_drops(sums.clone()) {
            error!(partition, "what the store removes by itself is told to another observer: no sums are kept");
            return None;
        }
        // What a store has removed by itself may be back, and may expire at another time.
        let usable = |saved: &Saved| {
            !store.removes_by_itself() && saved.run.is_left_in(store) && !is_broken(BrokenRule::SumsAreCheckedAtOpening)
        };
        if let Some(saved) = sums.file.take().filter(usable) {
            let classes = saved.classes.iter().map(|(n, sums)| Arc::new(ClassSums::of_earlier_run(*n, sums)));
            sums.classes.store(Arc::new(classes.collect()));
            let Saved { class_print, set_aside_to, .. } = saved;
            *sums.awaited.lock() = Some(Awaited { class_print, set_aside_to });
            sums.is_awaiting.store(true, Ordering::SeqCst);
        }
        Some(sums)
    }

    /// Saves the sums of a store that was closed cleanly. The caller makes sure that nobody writes.
    /// Blocks.
    pub(crate) fn save(&self, store: &dyn Backend) {
        let run = StoreRun::of(store);
        if store.removes_by_itself() || !run.has_content() {
            return;
        }
        self.settle(false);
        // Whoever sets aside anything else meanwhile takes the classes from the list.
        let (set_aside_to, listed) = {
            let _listing = self.awaited.lock();
            (self.set_aside_to.load(Ordering::SeqCst), self.classes.load_full())
        };
        // One state of the registry for all of it: a print of a later one would name sums that are
        // not of its classes, and the next start would take them for those of a damaged store.
        let buckets = self.buckets.snapshot();
        let exact =
            |class: &Arc<ClassSums>| class.behind.count() == 0 && class.epoch() == buckets.class_map(class.n).epoch;
        let classes: Vec<_> = listed.iter().filter(|class| exact(class)).map(|class| (class.n, class.read())).collect();
        if classes.is_empty() {
            return;
        }
        let class_print = print_of(&buckets, classes.iter().map(|(n, _)| *n));
        if let Err(error) = self.file.save(class_print, set_aside_to, run, classes) {
            warn!(partition = self.partition, %error, "the sums are not saved: the next start makes them anew");
        }
    }

    /// A version of a key has taken the place of what was there. Called under the key's lock, after
    /// the append and before anybody learns of it.
    pub(crate) fn changed(&self, key: &[u8], previous: Previous, after: Option<IndexedVersion>) {
        if self.is_awaiting.load(Ordering::Acquire) {
            self.settle(true);
        }
        let classes = self.classes.load();
        if classes.is_empty() {
            return;
        }
        let Some(n) = class_of_key(&self.buckets.snapshot(), key) else { return };
        let Some(class) = classes.iter().find(|class| class.n == n) else { return };
        let hash = key_hash(key);
        let before = match previous {
            Previous::Version(version) if version.seq > self.set_aside_to.load(Ordering::SeqCst) => Some(version),
            Previous::Version(_) | Previous::Nothing => None,
            Previous::Unknown => {
                class.lose_track(hash);
                None
            }
        };
        class.change(hash, before, after);
    }

    /// Versions up to this seq are set aside from now on, and no others. A start says so once the
    /// store is open: the sums of an earlier run wait for the seq of that run.
    pub(crate) fn set_aside(&self, seq: u64) {
        let mut awaited = self.awaited.lock();
        if self.set_aside_to.swap(seq, Ordering::SeqCst) == seq {
            return;
        }
        if awaited.is_some_and(|earlier| earlier.set_aside_to == seq) {
            self.keep_classes(ClassSums::is_of_earlier_run);
        } else {
            self.classes.store(Arc::default());
            self.is_awaiting.store(false, Ordering::SeqCst);
            *awaited = None;
        }
    }

    /// What is known of the sums of a class.
    pub(crate) fn state(&self, n: u32) -> SumsState {
        self.settle(false);
        match self.current(n).map(|class| class.behind.count()) {
            None => SumsState::Unknown,
            Some(0) => SumsState::Exact,
            Some(ranges) => SumsState::Behind(ranges),
        }
    }

    /// The sums of a class, and whether a walk of this run has shown that they are right. None if
    /// they are not exact, or if the store removes something by itself at this moment. The caller
    /// makes sure that nobody holds a key's lock.
    pub(crate) fn read(&self, n: u32) -> Option<(Sums, bool)> {
        self.settle(false);
        let quiet = self.unlocked.quiet()?;
        let class = self.current(n).filter(|class| class.behind.count() == 0)?;
        let read = (class.read(), class.is_checked());
        (self.unlocked.is_still(quiet) && self.is_current(&class)).then_some(read)
    }

    /// Whether a walk of this run has shown that the sums of a class are right.
    pub(crate) fn is_checked(&self, n: u32) -> bool {
        self.current(n).is_some_and(|class| class.is_checked())
    }

    /// Begins a walk over a class: it makes the sums exact that are behind, and checks the others.
    /// None if a walk over the class is under way, or if the store removes something by itself at
    /// this moment. The caller makes sure that nobody holds a key's lock until this returns: then
    /// the snapshot has exactly what is counted. `last_seq` is where the store is at this moment.
    pub(crate) fn begin_walk(
        self: &Arc<Self>,
        n: u32,
        last_seq: u64,
        snapshot: impl FnOnce() -> Result<Box<dyn Snapshot>, StorageError>,
    ) -> Result<Option<SumsWalk>, StorageError> {
        self.settle(false);
        // A store removes by itself with a lock that its snapshot takes, too. What it tells after
        // this moment, and before the snapshot is there, may be on either side of the snapshot.
        let Some(quiet) = self.unlocked.quiet() else { return Ok(None) };
        let buckets = Guard::into_inner(self.buckets.snapshot());
        let class = self.class(n, &buckets);
        // Read after the class is listed: whoever sets aside anything else later takes the class
        // from the list, and the walk is in vain.
        let since_seq = self.set_aside_to.load(Ordering::SeqCst);
        let Some(turn) = Turn::take(class) else { return Ok(None) };
        let walk = SumsWalk::new(self.clone(), turn, buckets, (since_seq, last_seq), snapshot()?);
        Ok(self.unlocked.is_still(quiet).then_some(walk))
    }

    /// How many ranges and slots were found wrong for no known reason, since the start.
    pub(crate) fn differences(&self) -> u64 {
        self.differences.load(Ordering::Relaxed)
    }

    /// A walk has found sums to be wrong that were not known to be behind.
    pub(super) fn note_differences(&self, n: u32, differences: u32) {
        self.differences.fetch_add(u64::from(differences), Ordering::Relaxed);
        let what = "the sums of a class are not those of its store: it has lost or gained something without a write";
        error!(partition = self.partition, n, differences, "{what}");
        assert!(self.tolerates, "partition {}: {what}", self.partition);
    }

    /// Whether these are the sums of their class by the class map of now.
    pub(super) fn is_current(&self, class: &Arc<ClassSums>) -> bool {
        let is_listed = self.classes.load().iter().any(|listed| Arc::ptr_eq(listed, class));
        is_listed && class.epoch() == self.buckets.snapshot().class_map(class.n).epoch
    }

    fn current(&self, n: u32) -> Option<Arc<ClassSums>> {
        let class = self.classes.load().iter().find(|class| class.n == n).cloned();
        class.filter(|class| self.is_current(class))
    }

    /// The sums of a class by its class map in this state of the registry. New ones are counted
    /// from now on.
    fn class(&self, n: u32, buckets: &Buckets) -> Arc<ClassSums> {
        let epoch = buckets.class_map(n).epoch;
        let _listing = self.awaited.lock();
        let classes = self.classes.load_full();
        if let Some(class) = classes.iter().find(|class| class.n == n && class.epoch() == epoch) {
            return class.clone();
        }
        let class = Arc::new(ClassSums::new(n, epoch));
        // Sums of an earlier epoch are never exact again.
        let stays =
            |other: &&Arc<ClassSums>| other.is_of_earlier_run() || other.epoch() == buckets.class_map(other.n).epoch;
        let others = classes.iter().filter(|other| other.n != n).filter(stays).cloned();
        self.classes.store(Arc::new(others.chain([class.clone()]).collect()));
        class
    }

    /// Forgets the other classes. The caller holds `awaited`.
    fn keep_classes(&self, stays: impl Fn(&ClassSums) -> bool) {
        let kept = self.classes.load().iter().filter(|class| stays(class)).cloned().collect();
        self.classes.store(Arc::new(kept));
    }

    /// Takes over the sums of an earlier run once the class map is the one of that run, and the
    /// same versions are set aside. `is_changing`: something is about to be counted. If it is still
    /// otherwise, the sums of the earlier run are given up: nobody knows to which of them it would
    /// belong.
    fn settle(&self, is_changing: bool) {
        if !self.is_awaiting.load(Ordering::Acquire) {
            return;
        }
        let mut awaited = self.awaited.lock();
        let Some(earlier) = *awaited else { return };
        let sets_aside_the_same = self.set_aside_to.load(Ordering::SeqCst) == earlier.set_aside_to;
        let (now, listed) = (self.buckets.snapshot(), self.classes.load());
        let of_earlier_run = || listed.iter().filter(|class| class.is_of_earlier_run());
        let class_print = print_of(&now, of_earlier_run().map(|class| class.n));
        if sets_aside_the_same && class_print == earlier.class_print {
            of_earlier_run().for_each(|class| class.belongs_to(now.class_map(class.n).epoch));
        } else if is_changing {
            self.keep_classes(|class| !class.is_of_earlier_run());
        } else {
            return;
        }
        *awaited = None;
        self.is_awaiting.store(false, Ordering::Release);
    }

    /// Makes the sum of the range of a key wrong.
    #[cfg(test)]
    pub(crate) fn damage(&self, n: u32, key: &[u8]) {
        let version = IndexedVersion { digest: 77, seq: 1, expires_secs: 0 };
        self.current(n).unwrap().change(key_hash(key), None, Some(version));
    }
}

/// One number for the class maps of these n, which ascend or not.
fn print_of(buckets: &Buckets, ns: impl Iterator<Item = u32>) -> u64 {
    let of_n = |n: u32| {
        let print = buckets.class_map(n).print;
        xxh3_64(&[&n.to_le_bytes()[..], &print.to_le_bytes()[..]].concat())
    };
    ns.map(of_n).fold(0, u64::wrapping_add)
}

impl DropObserver for PartitionSums {
    fn dropped(&self, key: &[u8], version: IndexedVersion) {
        self.unlocked.make(|| self.changed(key, Previous::Version(version), None));
        if let Some(next) = &self.next {
            next.dropped(key, version);
        }
    }
}
