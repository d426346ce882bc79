//! Removes tombstones when their time has come (docs/riak/semantics.md §2.2).
//!
//! Its memory is bounded: when the queue has no room for a tombstone, a later sweep over the
//! partitions' indexes finds it. The same sweep finds the tombstones of an earlier run. A failed
//! removal is retried later, and so is the sweep of a partition that cannot be read; the other
//! partitions are swept meanwhile.

use crate::config::DeleteMode;
use crate::partition::{Access, Failure, Partition, is_tombstone};
use ombak_storage::{Detail, Scope, Snapshot, StorageError};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
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

struct Tombstone {
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
    /// Indexes of the partitions to walk over; the first one is the current one.
    left: VecDeque<usize>,
    snapshot: Option<Box<dyn Snapshot>>,
    /// Partitions whose index could not be read to its end.
    failed: Vec<usize>,
    /// Number of earlier sweeps that failed for these partitions.
    failures: u32,
}

impl Sweep {
    fn over(partitions: impl IntoIterator<Item = usize>, begins: Instant, failures: u32) -> Self {
        let left = partitions.into_iter().collect();
        Self { begins, left, snapshot: None, failed: Vec::new(), failures }
    }
}

struct State {
    /// Sorted by `due`, because all tombstones wait equally long.
    waiting: VecDeque<Tombstone>,
    /// Tombstones whose removal failed, by the time of the next try and a unique number.
    retries: BTreeMap<(Instant, u64), Tombstone>,
    retries_numbered: u64,
    sweep: Option<Sweep>,
    /// Set when a tombstone found no room after the current sweep had begun: the time when another
    /// sweep begins.
    sweep_again_at: Option<Instant>,
}

impl State {
    /// Schedules another sweep, which finds a tombstone for which there is no room.
    fn sweep_again(&mut self, at: Instant) {
        self.sweep_again_at = Some(self.sweep_again_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Removes tombstones, each only if it is unchanged.
pub(crate) struct Reaper {
    mode: DeleteMode,
    partitions: Arc<[Arc<Partition>]>,
    state: Mutex<State>,
}

impl Reaper {
    pub(super) fn new(mode: DeleteMode, partitions: Arc<[Arc<Partition>]>) -> Self {
        let sweep = (mode != DeleteMode::Keep).then(|| Sweep::over(0..partitions.len(), Instant::now(), 0));
        let state = State {
            waiting: VecDeque::new(),
            retries: BTreeMap::new(),
            retries_numbered: 0,
            sweep,
            sweep_again_at: None,
        };
        Self { mode, partitions, state: Mutex::new(state) }
    }

    /// Schedules the removal of a tombstone that was just written.
    pub(crate) fn schedule(&self, partition: &Partition, key: &[u8], digest: u64) {
        match self.mode {
            DeleteMode::Keep => {}
            DeleteMode::Immediate => {
                if !matches!(reap(partition, key, digest, Access::Inline), Ok(())) {
                    self.wait(partition.number(), key, digest, Duration::ZERO);
                }
            }
            DeleteMode::After(delay) => self.wait(partition.number(), key, digest, delay),
        }
    }

    fn wait(&self, partition: u32, key: &[u8], digest: u64, delay: Duration) {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.waiting.len() >= WAITING_MAX {
            state.sweep_again(now);
            return;
        }
        state.waiting.push_back(Tombstone { due: now + delay, partition, key: key.into(), digest, failures: 0 });
    }

    /// Makes one round: removes the due tombstones and continues the sweep. Called repeatedly.
    pub(super) fn round(&self) {
        let end = Instant::now() + ROUND;
        while Instant::now() < end {
            let Some(due) = self.next_due() else { break };
            let Some(partition) = self.partitions.get(due.partition as usize) else { continue };
            match reap(partition, &due.key, due.digest, Access::Blocking) {
                Ok(()) | Err(Failure::WouldBlock | Failure::TooLarge(_)) => {}
                Err(Failure::Refused(why)) => {
                    debug!(partition = due.partition, %why, "a tombstone stays for now");
                    self.retry_later(due);
                }
            }
        }
        self.continue_sweep();
    }

    fn next_due(&self) -> Option<Tombstone> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.waiting.front().is_some_and(|tombstone| tombstone.due <= now) {
            return state.waiting.pop_front();
        }
        let retry = state.retries.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(retry.remove())
    }

    fn retry_later(&self, mut tombstone: Tombstone) {
        let now = Instant::now();
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
        let now = Instant::now();
        let mut state = self.state.lock();
        if state.waiting.len() > WAITING_MAX / 2 {
            return None;
        }
        // A sweep that waits to repeat unreadable partitions does not hold up the others: a new
        // sweep includes those partitions.
        let waits = state.sweep.as_ref().is_none_or(|sweep| sweep.begins > now);
        if waits && state.sweep_again_at.is_some_and(|at| at <= now) {
            let failures = state.sweep.as_ref().map_or(0, |sweep| sweep.failures);
            state.sweep_again_at = None;
            state.sweep = Some(Sweep::over(0..self.partitions.len(), now, failures));
        }
        state.sweep.take_if(|sweep| sweep.begins <= now)
    }

    fn continue_sweep(&self) {
        let Some(mut sweep) = self.take_sweep() else { return };
        let mut entries = 0;
        while entries < SWEEP_ENTRIES {
            let Some(partition) = sweep.left.front().and_then(|place| self.partitions.get(*place)) else {
                return self.end_sweep(sweep);
            };
            match self.sweep_batch(partition, &mut sweep) {
                Ok(0) => {
                    entries += 1;
                    sweep.left.pop_front();
                    sweep.snapshot = None;
                }
                Ok(swept) => entries += swept,
                Err(why) => {
                    // The sweep continues with the other partitions and returns to this one later.
                    warn!(partition = partition.number(), %why, "looking for old tombstones failed");
                    entries += 1;
                    sweep.failed.extend(sweep.left.pop_front());
                    sweep.snapshot = None;
                }
            }
        }
        self.state.lock().sweep = Some(sweep);
    }

    /// Ends a sweep. Another sweep repeats the partitions that could not be read.
    fn end_sweep(&self, sweep: Sweep) {
        if !sweep.failed.is_empty() {
            let failures = sweep.failures.saturating_add(1);
            let begins = Instant::now() + retry_delay(failures);
            self.state.lock().sweep = Some(Sweep::over(sweep.failed, begins, failures));
        }
    }

    /// Examines a batch of entries and returns their number; 0 at the end of the partition.
    fn sweep_batch(&self, partition: &Partition, sweep: &mut Sweep) -> Result<usize, StorageError> {
        let snapshot = match &mut sweep.snapshot {
            Some(snapshot) => snapshot,
            None => sweep.snapshot.insert(partition.store().snapshot()?),
        };
        let batch = snapshot.next(&Scope::ALL, Detail::Keys, SWEEP_ENTRIES)?;
        for entry in batch.iter().filter(|e| is_tombstone(e.digest)) {
            let delay = if let DeleteMode::After(delay) = self.mode { delay } else { Duration::ZERO };
            self.wait(partition.number(), &entry.key, entry.digest, delay);
        }
        Ok(batch.len())
    }
}

/// The wait after this many failures.
fn retry_delay(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (RETRY_DELAY_MIN * (1 << doublings)).min(RETRY_DELAY_MAX)
}

fn reap(partition: &Partition, key: &[u8], digest: u64, access: Access) -> Result<(), Failure> {
    partition.lock(key, access)?.reap(digest).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::ActorSource;
    use ombak_storage::{BackendFactory, MemoryConfig, MemoryFactory};

    #[test]
    fn a_partition_that_stays_unreadable_does_not_hold_up_the_sweep_of_the_others() {
        let (factory, actors) = (MemoryFactory::new(MemoryConfig::default()), Arc::new(ActorSource::new(1)));
        let partition = |n| Arc::new(Partition::new(n, factory.open(n).unwrap(), actors.clone()));
        let reaper = Reaper::new(DeleteMode::Immediate, (0..3).map(partition).collect());
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
}
