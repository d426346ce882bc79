//! Removes tombstones for good, when their time has come (docs/riak/semantics.md §2.2).
//!
//! Bounded: a tombstone that finds no room in the queue is found later by a sweep over the partitions' indexes. The
//! same sweep finds the tombstones of an earlier run.

use crate::config::DeleteMode;
use crate::partition::{Access, Failure, Partition, is_tombstone};
use ombak_storage::{Detail, Scope, Snapshot, StorageError};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// Tombstones that wait at once.
const WAITING_MAX: usize = 200_000;
/// Index entries that a sweep looks at between two pauses.
const SWEEP_ENTRIES: usize = 2_000;
/// How long one round of removals may take.
const ROUND: Duration = Duration::from_millis(50);

struct Tombstone {
    due: Instant,
    partition: u32,
    key: Box<[u8]>,
    digest: u64,
}

struct Sweep {
    partition: usize,
    snapshot: Option<Box<dyn Snapshot>>,
}

struct State {
    /// By `due`: everything waits equally long.
    waiting: VecDeque<Tombstone>,
    sweep: Option<Sweep>,
    /// A tombstone found no room after the present sweep had begun.
    sweep_again: bool,
}

/// Removes tombstones, each only if it is still there exactly as it was.
pub(crate) struct Reaper {
    mode: DeleteMode,
    partitions: Arc<[Arc<Partition>]>,
    state: Mutex<State>,
}

impl Reaper {
    pub(super) fn new(mode: DeleteMode, partitions: Arc<[Arc<Partition>]>) -> Self {
        let sweep = (mode != DeleteMode::Keep).then_some(Sweep { partition: 0, snapshot: None });
        let state = State { waiting: VecDeque::new(), sweep, sweep_again: false };
        Self { mode, partitions, state: Mutex::new(state) }
    }

    /// Takes note of a tombstone that was just written.
    pub(crate) fn note(&self, partition: &Partition, key: &[u8], digest: u64) {
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
        let mut state = self.state.lock();
        if state.waiting.len() >= WAITING_MAX {
            state.sweep_again = true;
            return;
        }
        state.waiting.push_back(Tombstone { due: Instant::now() + delay, partition, key: key.into(), digest });
    }

    /// One round: removes what is due and sweeps on. To be called again and again.
    pub(super) fn round(&self) {
        let end = Instant::now() + ROUND;
        while Instant::now() < end {
            let Some(due) = self.next_due() else { break };
            let Some(partition) = self.partitions.get(due.partition as usize) else { continue };
            match reap(partition, &due.key, due.digest, Access::Blocking) {
                Ok(()) | Err(Failure::WouldBlock) => {}
                // The next sweep finds it again.
                Err(Failure::Refused(why)) => debug!(%why, "a tombstone stays"),
            }
        }
        if let Err(why) = self.sweep_on() {
            warn!(%why, "looking for old tombstones failed");
        }
    }

    fn next_due(&self) -> Option<Tombstone> {
        let mut state = self.state.lock();
        state.waiting.front().filter(|t| t.due <= Instant::now())?;
        state.waiting.pop_front()
    }

    fn sweep_on(&self) -> Result<(), StorageError> {
        let mut sweep = {
            let mut state = self.state.lock();
            if state.waiting.len() > WAITING_MAX / 2 {
                return Ok(());
            }
            if state.sweep.is_none() && std::mem::take(&mut state.sweep_again) {
                state.sweep = Some(Sweep { partition: 0, snapshot: None });
            }
            match state.sweep.take() {
                Some(sweep) => sweep,
                None => return Ok(()),
            }
        };
        let mut entries = 0;
        while entries < SWEEP_ENTRIES {
            let Some(partition) = self.partitions.get(sweep.partition) else { return Ok(()) };
            entries += self.sweep_batch(partition, &mut sweep)?;
        }
        self.state.lock().sweep = Some(sweep);
        Ok(())
    }

    fn sweep_batch(&self, partition: &Partition, sweep: &mut Sweep) -> Result<usize, StorageError> {
        let snapshot = match &mut sweep.snapshot {
            Some(snapshot) => snapshot,
            None => sweep.snapshot.insert(partition.store().snapshot()?),
        };
        let batch = snapshot.next(&Scope::ALL, Detail::Keys, SWEEP_ENTRIES)?;
        if batch.is_empty() {
            sweep.partition += 1;
            sweep.snapshot = None;
            return Ok(1);
        }
        for entry in batch.iter().filter(|e| is_tombstone(e.digest)) {
            let delay = if let DeleteMode::After(delay) = self.mode { delay } else { Duration::ZERO };
            self.wait(partition.number(), &entry.key, entry.digest, delay);
        }
        Ok(batch.len())
    }
}

fn reap(partition: &Partition, key: &[u8], digest: u64, access: Access) -> Result<(), Failure> {
    partition.lock(key, access)?.reap(digest).map(drop)
}
