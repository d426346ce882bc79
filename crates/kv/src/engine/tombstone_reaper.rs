//! Removes tombstones when their time has come (docs/riak/semantics.md §2.2), and versions that
//! have expired.
//!
//! Its memory is bounded: when the queue has no room for a tombstone, a later sweep over the
//! partitions' indexes finds it. The same sweep finds the tombstones of an earlier run. A failed
//! removal is retried later, and so is the sweep of a partition that cannot be read; the other
//! partitions are swept meanwhile.
//!
//! A store hides an expired version and keeps it, because its clock keeps older copies away. The
//! reaper removes it like a tombstone, in every delete mode: without the removal its space would
//! never come back. Only sweeps find expired versions, so sweeps repeat. A repeated sweep visits
//! the partitions whose store has versions that expire; the others cost it one snapshot. It begins
//! a minute after the sweep before, or later: the pause is 50 times as long as the work of that
//! sweep, so sweeps take at most a fiftieth of one processor, however many keys there are. A
//! removal makes room with the next merge.

use crate::config::DeleteMode;
use crate::partition::{Access, Failure, Partition, PartitionTable, is_tombstone};
use crate::reaping::DueVersions;
use ombak_runtime::Runtime;
use ombak_storage::{Detail, FoldEntry, Scope, Snapshot, StorageError};
use ombak_types::Object;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// Maximum number of waiting tombstones.
const WAITING_MAX: usize = 200_000;
/// Maximum number of tombstones that wait because their removal failed.
const RETRIES_MAX: usize = 10_000;
/// The wait after the first failure. It doubles after each further failure, up to the second
/// constant.
const RETRY_DELAY_MIN: Duration = Duration::from_secs(1);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(300);
/// Index entries that a sweep examines between two pauses.
const SWEEP_ENTRIES: usize = 2_000;
/// Maximum duration of the removals in one round.
const ROUND: Duration = Duration::from_millis(50);
/// The pause between two sweeps for expired versions: at least this long, and at least this many
/// times as long as the work of the first.
const SWEEP_PAUSE_MIN: Duration = Duration::from_secs(60);
const SWEEP_PAUSE_PER_WORK: u32 = 50;

/// A version that is to be removed: a tombstone, or one that has expired.
struct Reapable {
    due: Instant,
    partition: u32,
    key: Box<[u8]>,
    digest: u64,
    /// Number of failed removals.
    failures: u32,
}

/// A walk over the indexes of partitions.
struct Sweep {
    begins: Instant,
    /// The partitions to walk over; the first one is the current one.
    left: VecDeque<u32>,
    /// Whether it passes over partitions without versions that expire.
    only_expiring: bool,
    /// How long its work has taken so far.
    worked: Duration,
    snapshot: Option<Box<dyn Snapshot>>,
    /// Partitions whose index could not be read to its end.
    failed: Vec<u32>,
    /// Number of earlier sweeps that failed for these partitions.
    failures: u32,
}

impl Sweep {
    fn over(partitions: impl IntoIterator<Item = u32>, begins: Instant, failures: u32) -> Self {
        let left = partitions.into_iter().collect();
        Self {
            begins,
            left,
            only_expiring: false,
            worked: Duration::ZERO,
            snapshot: None,
            failed: Vec::new(),
            failures,
        }
    }
}

struct State {
    /// Sorted by `due`, because all tombstones wait equally long.
    waiting: VecDeque<Reapable>,
    /// Expired versions that a sweep has found, and tombstones of which an order says that their
    /// time has come. They are due.
    expired: VecDeque<Reapable>,
    /// Versions whose removal failed, by the time of the next try and a unique number.
    retries: BTreeMap<(Instant, u64), Reapable>,
    retries_numbered: u64,
    sweep: Option<Sweep>,
    /// Set when a tombstone found no room after the current sweep had begun: the time when another
    /// sweep begins.
    sweep_again_at: Option<Instant>,
    /// The time when the next sweep for expired versions begins; none while a sweep is under way.
    sweep_expired_at: Option<Instant>,
    /// Whether there may be tombstones that no queue has and no sweep has looked for.
    is_unswept: bool,
}

impl State {
    /// The number of versions in the queues.
    fn queued(&self) -> usize {
        self.waiting.len() + self.expired.len()
    }

    /// Schedules another sweep, which finds a tombstone for which there is no room.
    fn sweep_again(&mut self, at: Instant) {
        self.is_unswept = true;
        self.sweep_again_at = Some(self.sweep_again_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// What waits for its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaperWaiting {
    /// The number of versions that are known.
    pub versions: usize,
    /// Whether there are no others: since the start, the last change of the ring, or the last
    /// tombstone without room, all stores were looked through.
    pub has_looked: bool,
}

/// Removes tombstones and expired versions, each only if it is unchanged.
pub(crate) struct Reaper {
    mode: DeleteMode,
    runtime: Arc<dyn Runtime>,
    sweep_pause_min: Duration,
    partitions: Arc<PartitionTable>,
    /// Several nodes may only reap together (docs/design/replication.md §6).
    is_alone: AtomicBool,
    /// Takes what is due on a node with peers.
    due: Arc<DueVersions>,
    state: Mutex<State>,
}

impl Reaper {
    pub(super) fn new(
        mode: DeleteMode,
        partitions: Arc<PartitionTable>,
        runtime: Arc<dyn Runtime>,
        due: Arc<DueVersions>,
    ) -> Self {
        let sweep = Some(Sweep::over(numbers_of(&partitions), runtime.now(), 0));
        let state = State {
            waiting: VecDeque::new(),
            expired: VecDeque::new(),
            retries: BTreeMap::new(),
            retries_numbered: 0,
            sweep,
            sweep_again_at: None,
            sweep_expired_at: None,
            is_unswept: true,
        };
        let (is_alone, sweep_pause_min) = (AtomicBool::new(true), SWEEP_PAUSE_MIN);
        Self { mode, runtime, sweep_pause_min, partitions, is_alone, due, state: Mutex::new(state) }
    }

    /// Says whether this node owns the whole ring. Otherwise it removes nothing by itself, and
    /// hands what is due to the rounds of the cluster. After a change it sweeps for the tombstones
    /// of the time before.
    pub(crate) fn set_alone(&self, is_alone: bool) {
        let mut state = self.state.lock();
        let was_alone = self.is_alone.swap(is_alone, Ordering::SeqCst);
        if is_alone != was_alone {
            state.sweep_again(self.runtime.now());
        }
    }

    fn is_alone(&self) -> bool {
        self.is_alone.load(Ordering::SeqCst)
    }

    /// Schedules the removal of a tombstone that was just written.
    pub(crate) fn schedule(&self, partition: &Partition, key: &[u8], digest: u64) {
        match self.mode {
            DeleteMode::Keep => {}
            DeleteMode::Immediate if !self.is_alone() => {
                self.wait(partition.number(), key, digest, Duration::ZERO);
            }
            DeleteMode::Immediate => {
                if !matches!(self.reap(partition, key, digest, Access::Inline), Ok(())) {
                    self.wait(partition.number(), key, digest, Duration::ZERO);
                }
            }
            DeleteMode::After(delay) => self.wait(partition.number(), key, digest, delay),
        }
    }

    /// Lets a tombstone wait for its removal now, in every delete mode. Returns false if there is
    /// no room for it.
    pub(crate) fn reap_now(&self, partition: u32, key: &[u8], digest: u64) -> bool {
        if !self.is_alone() {
            return self.due.offer(partition, key, digest);
        }
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let has_room = state.queued() < WAITING_MAX;
        if has_room {
            // The tombstones that wait are sorted by their time, and this one's has come.
            state.expired.push_back(Reapable { due: now, partition, key: key.into(), digest, failures: 0 });
        }
        has_room
    }

    /// Schedules the replacement of values that a tombstone hides. It waits in no delete mode: it
    /// is no removal of the tombstone.
    pub(crate) fn schedule_at_once(&self, partition: u32, key: &[u8], digest: u64) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        // Without room, a read of the key finds it again.
        if state.queued() < WAITING_MAX {
            state.expired.push_back(Reapable { due: now, partition, key: key.into(), digest, failures: 0 });
        }
    }

    fn wait(&self, partition: u32, key: &[u8], digest: u64, delay: Duration) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if state.queued() >= WAITING_MAX {
            state.sweep_again(now);
            return;
        }
        state.waiting.push_back(Reapable { due: now + delay, partition, key: key.into(), digest, failures: 0 });
    }

    fn reap_expired(&self, partition: u32, found: &FoldEntry) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if state.queued() >= WAITING_MAX {
            state.sweep_again(now);
            return;
        }
        let (key, digest) = (found.key[..].into(), found.digest);
        state.expired.push_back(Reapable { due: now, partition, key, digest, failures: 0 });
    }

    /// Makes one round: removes the due versions and continues the sweep. Called repeatedly.
    pub(super) fn round(&self) {
        let end = self.runtime.now() + ROUND;
        while self.runtime.now() < end {
            let Some(due) = self.next_due() else { break };
            if !self.is_alone() {
                if !self.due.offer(due.partition, &due.key, due.digest) {
                    self.retry_later(due);
                    break;
                }
                // Another node may have driven the round already.
                if self.is_gone(&due) {
                    self.due.withdraw(due.partition, &due.key, due.digest);
                }
                continue;
            }
            let Some(partition) = self.partitions.get(due.partition) else { continue };
            match self.reap(&partition, &due.key, due.digest, Access::Blocking) {
                Ok(()) | Err(Failure::WouldBlock | Failure::TooLarge(_)) => {}
                Err(Failure::Refused(why)) => {
                    debug!(partition = due.partition, %why, "a tombstone or an expired version stays for now");
                    self.retry_later(due);
                }
            }
        }
        self.continue_sweep();
    }

    /// Whether a version is known to be not here any more. Called after it was offered to the
    /// rounds, so that a removal meanwhile is seen here or there.
    fn is_gone(&self, due: &Reapable) -> bool {
        let Some(partition) = self.partitions.get(due.partition) else { return false };
        let found = partition.read_head(&due.key, Access::Blocking);
        found.is_ok_and(|found| found.is_none_or(|found| found.digest != due.digest))
    }

    /// What waits for its removal, or for its time, beside what waits for a round of the cluster.
    pub(crate) fn waiting(&self) -> ReaperWaiting {
        let state = self.state.lock();
        let versions = state.waiting.len() + state.expired.len() + state.retries.len();
        ReaperWaiting { versions, has_looked: !state.is_unswept }
    }

    fn next_due(&self) -> Option<Reapable> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if state.waiting.front().is_some_and(|tombstone| tombstone.due <= now) {
            return state.waiting.pop_front();
        }
        if let Some(expired) = state.expired.pop_front() {
            return Some(expired);
        }
        let retry = state.retries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(retry.remove())
    }

    fn retry_later(&self, mut tombstone: Reapable) {
        let now = self.runtime.now();
        tombstone.failures = tombstone.failures.saturating_add(1);
        tombstone.due = now + retry_delay(tombstone.failures);
        let mut state = self.state.lock();
        if state.retries.len() >= RETRIES_MAX {
            state.sweep_again(now + RETRY_DELAY_MAX);
            return;
        }
        state.retries_numbered += 1;
        let place = (tombstone.due, state.retries_numbered);
        state.retries.insert(place, tombstone);
    }

    /// Takes the sweep if it is due. The caller continues it and puts it back.
    fn take_sweep(&self) -> Option<Sweep> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        if state.queued() > WAITING_MAX / 2 {
            return None;
        }
        // A sweep that waits to repeat unreadable partitions does not hold up the others: a new
        // sweep includes those partitions.
        let waits = state.sweep.as_ref().is_none_or(|sweep| sweep.begins > now);
        if waits && state.sweep_again_at.is_some_and(|at| at <= now) {
            let failures = state.sweep.as_ref().map_or(0, |sweep| sweep.failures);
            state.sweep_again_at = None;
            state.sweep = Some(Sweep::over(numbers_of(&self.partitions), now, failures));
        } else if waits && state.sweep_expired_at.is_some_and(|at| at <= now) {
            // A round of the cluster may forget a tombstone, and leave it to the next sweep.
            let only_expiring = self.is_alone();
            let (failures, only_expiring) =
                state.sweep.as_ref().map_or((0, only_expiring), |sweep| (sweep.failures, false));
            state.sweep = Some(Sweep { only_expiring, ..Sweep::over(numbers_of(&self.partitions), now, failures) });
        }
        let sweep = state.sweep.take_if(|sweep| sweep.begins <= now)?;
        state.sweep_expired_at = None;
        Some(sweep)
    }

    fn continue_sweep(&self) {
        let Some(mut sweep) = self.take_sweep() else { return };
        let began = self.runtime.now();
        let mut entries = 0;
        while entries < SWEEP_ENTRIES {
            let Some(number) = sweep.left.front().copied() else {
                sweep.worked += self.runtime.now() - began;
                return self.end_sweep(sweep);
            };
            let swept = match self.partitions.get(number) {
                Some(partition) => self.sweep_batch(&partition, &mut sweep),
                // It was closed meanwhile.
                None => Ok(0),
            };
            match swept {
                Ok(0) => {
                    entries += 1;
                    sweep.left.pop_front();
                    sweep.snapshot = None;
                }
                Ok(swept) => entries += swept,
                Err(why) => {
                    // The sweep continues with the other partitions and returns to this one later.
                    warn!(partition = number, %why, "looking for old tombstones failed");
                    entries += 1;
                    sweep.failed.extend(sweep.left.pop_front());
                    sweep.snapshot = None;
                }
            }
        }
        sweep.worked += self.runtime.now() - began;
        self.state.lock().sweep = Some(sweep);
    }

    /// Ends a sweep. Another sweep repeats the partitions that could not be read.
    fn end_sweep(&self, sweep: Sweep) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        state.sweep_expired_at = Some(now + self.sweep_pause_min.max(sweep.worked * SWEEP_PAUSE_PER_WORK));
        if !sweep.failed.is_empty() {
            let failures = sweep.failures.saturating_add(1);
            let begins = now + retry_delay(failures);
            state.sweep = Some(Sweep::over(sweep.failed, begins, failures));
        } else if !sweep.only_expiring && state.sweep_again_at.is_none() {
            state.is_unswept = false;
        }
    }

    /// Examines a batch of entries and returns their number; 0 at the end of the partition.
    fn sweep_batch(&self, partition: &Partition, sweep: &mut Sweep) -> Result<usize, StorageError> {
        let snapshot = match &mut sweep.snapshot {
            Some(snapshot) => snapshot,
            None => sweep.snapshot.insert(partition.snapshot()?),
        };
        if !snapshot.may_expire() && (sweep.only_expiring || self.mode == DeleteMode::Keep) {
            return Ok(0);
        }
        let scope = Scope { since_seq: partition.set_aside_to(), ..Scope::KEPT };
        let batch = snapshot.next(&scope, Detail::Keys, SWEEP_ENTRIES)?;
        for entry in &batch {
            match self.mode {
                _ if entry.is_expired => self.reap_expired(partition.number(), entry),
                // The queue has the tombstones, or a sweep over everything will find them.
                _ if sweep.only_expiring || !is_tombstone(entry.digest) => {}
                DeleteMode::Keep => {}
                DeleteMode::Immediate => self.wait(partition.number(), &entry.key, entry.digest, Duration::ZERO),
                DeleteMode::After(delay) => self.wait(partition.number(), &entry.key, entry.digest, delay),
            }
        }
        Ok(batch.len())
    }

    fn reap(&self, partition: &Partition, key: &[u8], digest: u64, access: Access) -> Result<(), Failure> {
        let (locked, now) = (partition.lock(key, access)?, self.runtime.wall_clock());
        let may_be_hidden = locked.local().is_some_and(Object::is_hidden_by_tombstone);
        if may_be_hidden && self.due.props_of(key).is_some_and(|props| props.is_newest_only()) {
            if let Some(written) = locked.replace_hidden(now)? {
                self.schedule(partition, key, written.digest);
            }
            return Ok(());
        }
        let is_removed = locked.reap(digest, now)?;
        self.due.counts.removed(u64::from(is_removed));
        Ok(())
    }
}

fn numbers_of(partitions: &PartitionTable) -> Range<u32> {
    0..u32::try_from(partitions.ring_size()).unwrap_or(u32::MAX)
}

/// The wait after this many failures.
fn retry_delay(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (RETRY_DELAY_MIN * (1 << doublings)).min(RETRY_DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::BucketRegistry;
    use crate::config::ObjectLimits;
    use crate::partition::{ActorSource, WriteRules};
    use ombak_runtime::{OtherClocks, TokioRuntime};
    use ombak_storage::fs::RealFs;
    use ombak_storage::{MemoryConfig, MemoryFactory};
    use ombak_types::names::encode_storage_key;
    use ombak_types::time::UnixMicros;
    use ombak_types::{Bucket, BucketProps, Object, PropMap, Sibling, VectorClock};
    use std::sync::atomic::AtomicU64;

    /// The queue of a node that has no bucket types: untyped buckets suffice.
    fn due() -> Arc<DueVersions> {
        let dir = tempfile::tempdir().unwrap();
        let buckets = BucketRegistry::open(Arc::new(RealFs), dir.path(), "node", &PropMap::new()).unwrap();
        Arc::new(DueVersions::new(Arc::new(buckets), Arc::new(TokioRuntime)))
    }

    fn table(size: u32) -> Arc<PartitionTable> {
        let (stores, actors) = (MemoryFactory::new(MemoryConfig::default()), ActorSource::new(1));
        let table = PartitionTable::new(size, Arc::new(stores), Arc::new(actors));
        (0..size).for_each(|number| table.open(number).unwrap());
        Arc::new(table)
    }

    #[test]
    fn a_partition_that_stays_unreadable_does_not_hold_up_the_sweep_of_the_others() {
        let reaper = Reaper::new(DeleteMode::Immediate, table(3), Arc::new(TokioRuntime), due());
        let mut first = reaper.take_sweep().expect("the sweep at the start");
        assert!(reaper.take_sweep().is_none(), "it is under way");
        first.failed.extend([1]);
        reaper.end_sweep(first);
        assert!(reaper.take_sweep().is_none(), "it waits before it tries the partition again");
        // A tombstone has found no room meanwhile.
        reaper.state.lock().sweep_again(Instant::now());
        let next = reaper.take_sweep().expect("a sweep");
        assert_eq!((next.left.into_iter().collect::<Vec<_>>(), next.failures), (vec![0, 1, 2], 1));
    }

    /// One partition with a reaper, and a time that the test sets.
    struct Swept {
        partition: Arc<Partition>,
        reaper: Reaper,
        now_secs: Arc<AtomicU64>,
    }

    impl Swept {
        fn new(mode: DeleteMode) -> Self {
            let table = table(1);
            let partition = table.get(0).unwrap();
            let now_secs = Arc::new(AtomicU64::new(1));
            let seconds = now_secs.clone();
            let clock = move || UnixMicros::from_secs(seconds.load(Ordering::SeqCst));
            let runtime = OtherClocks::of(Arc::new(TokioRuntime)).with_wall_clock(clock);
            let mut reaper = Reaper::new(mode, table, Arc::new(runtime), due());
            reaper.sweep_pause_min = Duration::ZERO;
            Self { partition, reaper, now_secs }
        }

        fn set_time(&self, now_secs: u64) {
            self.now_secs.store(now_secs, Ordering::SeqCst);
            self.partition.store().tell_time(now_secs);
        }

        fn put(&self, key: &str, mut sibling: Sibling, expires_secs: Option<u32>) {
            sibling.meta.expires_secs = expires_secs;
            let (props, limits) = (BucketProps::default(), ObjectLimits::default());
            let now = self.reaper.runtime.wall_clock();
            let rules = WriteRules { props: &props, limits: &limits, now, values: None, deadline: None };
            let storage_key = key_of(key);
            let mut locked = self.partition.lock(&storage_key, Access::Blocking).unwrap();
            locked.load_for(&VectorClock::new(), false).unwrap();
            let object = Object { clock: VectorClock::new(), siblings: vec![sibling] };
            locked.coordinate(object, b"vtag", &rules).unwrap();
        }

        /// Whether the store holds the key, hidden or not.
        fn holds(&self, key: &str) -> bool {
            self.partition.head(&key_of(key), Access::Blocking).unwrap().is_some()
        }

        /// Makes enough rounds for a whole sweep and its removals. The pause after a sweep grows
        /// with its work, so the next one is called for.
        fn sweep(&self) {
            if let Some(at) = &mut self.reaper.state.lock().sweep_expired_at {
                *at = Instant::now();
            }
            for _ in 0..4 {
                self.reaper.round();
            }
        }
    }

    fn key_of(key: &str) -> Vec<u8> {
        let mut storage_key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), key.as_bytes(), &mut storage_key);
        storage_key
    }

    #[test]
    fn expired_versions_are_reaped_in_every_delete_mode() {
        for mode in [DeleteMode::Keep, DeleteMode::Immediate, DeleteMode::After(Duration::from_secs(3600))] {
            let swept = Swept::new(mode);
            swept.put("ends", Sibling::new("v"), Some(10));
            swept.put("later", Sibling::new("v"), Some(20));
            swept.put("stays", Sibling::new("v"), None);
            swept.put("gone", Sibling::tombstone(), None);
            swept.set_time(10);
            swept.sweep();
            assert!(swept.holds("ends") && swept.holds("later") && swept.holds("stays"), "{mode:?}");
            assert_eq!(swept.holds("gone"), mode != DeleteMode::Immediate, "{mode:?}");
            swept.set_time(11);
            assert!(swept.holds("ends"), "{mode:?}: the store hides it, and keeps it");
            swept.sweep();
            assert!(!swept.holds("ends") && swept.holds("later") && swept.holds("stays"), "{mode:?}");
            swept.set_time(21);
            swept.sweep();
            assert!(!swept.holds("later") && swept.holds("stays"), "{mode:?}: sweeps repeat");
            assert_eq!(swept.holds("gone"), mode != DeleteMode::Immediate, "{mode:?}");
        }
    }

    #[test]
    fn what_was_written_over_an_expired_version_stays() {
        let swept = Swept::new(DeleteMode::Immediate);
        swept.put("k", Sibling::new("old"), Some(10));
        swept.set_time(11);
        swept.reaper.continue_sweep();
        assert_eq!(swept.reaper.state.lock().expired.len(), 1);
        swept.put("k", Sibling::new("new"), Some(30));
        swept.sweep();
        assert!(swept.holds("k"));
    }

    #[test]
    fn the_pause_between_sweeps_grows_with_their_work() {
        let swept = Swept::new(DeleteMode::Immediate);
        let mut sweep = swept.reaper.take_sweep().expect("the sweep at the start");
        sweep.worked = Duration::from_secs(10);
        let before = Instant::now();
        swept.reaper.end_sweep(sweep);
        let next = swept.reaper.state.lock().sweep_expired_at.expect("another sweep");
        assert!(next >= before + Duration::from_secs(500));
    }

    #[test]
    fn a_node_with_peers_removes_nothing_by_itself() {
        let swept = Swept::new(DeleteMode::Immediate);
        swept.put("gone", Sibling::tombstone(), None);
        swept.put("ends", Sibling::new("v"), Some(10));
        swept.set_time(11);
        swept.reaper.set_alone(false);
        swept.sweep();
        assert!(swept.holds("gone") && swept.holds("ends"));
        assert_eq!(swept.reaper.due.count(), 2, "the rounds of the cluster get them");
        swept.reaper.set_alone(true);
        swept.sweep();
        assert!(!swept.holds("gone") && !swept.holds("ends"));
    }
}
