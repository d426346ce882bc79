//! The repair of secondary indexes: `ombak admin repair-2i`.
//!
//! What it is: one run at a time over the stores of this node. Index entries that an object
//! justifies and that are missing are added, and those that no object justifies are removed
//! ([`ombak_storage::Backend::check_terms`]).
//!
//! What it is not: it asks no other node, and changes no object. What objects themselves lack is
//! found by exchanges.
//!
//! Invariants:
//! * A step is short, and holds no lock after it. Memory is bounded by the step.
//! * A partition whose store fails is reported, and the run goes on with the next one.

use crate::repair::Repair;
use ombak_kv::repair_host::{RepairHost, Transfers};
use ombak_runtime::{PoolError, RuntimeExt};
use ombak_stats::{Feature, Figure, Number, Spiral};
use ombak_storage::{StorageError, TermCursor, TermStep};
use ombak_types::Error;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tracing::{info, warn};

/// How many keys or index entries one step looks at.
const STEP_COUNT: usize = 500;
/// The highest speed: steps follow each other without a pause.
pub const INDEX_REPAIR_SPEED_MAX: u32 = 100;
/// The longest pause between two steps.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long a step waits after all threads were busy.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// How many failures a status lists.
const FAILURES_MAX: usize = 100;

/// What a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexRepairState {
    /// There was no run since the start.
    #[default]
    Never,
    /// It is under way.
    Running,
    /// It has looked at all of its partitions.
    Finished,
    /// An operator has ended it.
    Killed,
}

/// The last run since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexRepairStatus {
    /// What it is doing.
    pub state: IndexRepairState,
    /// How many partitions it is for.
    pub partitions: u64,
    /// How many of them are done.
    pub finished: u64,
    /// From 1 to [`INDEX_REPAIR_SPEED_MAX`]: the percentage of the time in which it works.
    pub speed: u32,
    /// Keys and index entries that were looked at.
    pub visited: u64,
    /// Index entries that were missing and were added.
    pub lacking: u64,
    /// Index entries that no object justified and that were removed.
    pub surplus: u64,
    /// Some of the partitions whose store has failed, with the reason.
    pub failures: Vec<(u32, String)>,
}

/// The state of the repair of indexes of one node.
#[derive(Debug, Default)]
pub(crate) struct IndexRepair {
    last: Mutex<LastRun>,
    speed: AtomicU32,
    refreshes: Spiral,
}

/// The run that is under way, or the last one.
#[derive(Debug, Default)]
struct LastRun {
    /// The number of the run. A run with another number was ended, and says nothing any more.
    number: u64,
    status: IndexRepairStatus,
}

impl IndexRepair {
    /// Begins a run, and returns its number; none if one is under way.
    fn begin(&self, partitions: u64, speed: u32) -> Option<u64> {
        let mut last = self.last.lock();
        if last.status.state == IndexRepairState::Running {
            return None;
        }
        self.speed.store(speed, Ordering::SeqCst);
        let status = IndexRepairStatus { state: IndexRepairState::Running, partitions, ..IndexRepairStatus::default() };
        *last = LastRun { number: last.number + 1, status };
        Some(last.number)
    }

    /// Ends the run that is under way at its next step. Another one may begin at once.
    fn kill(&self) -> bool {
        let number = self.last.lock().number;
        self.end(number, IndexRepairState::Killed)
    }

    fn status(&self) -> IndexRepairStatus {
        IndexRepairStatus { speed: self.speed.load(Ordering::SeqCst), ..self.last.lock().status.clone() }
    }

    /// Changes the status, if this run is under way. Returns whether it is.
    fn note(&self, number: u64, change: impl FnOnce(&mut IndexRepairStatus)) -> bool {
        let mut last = self.last.lock();
        let is_running = last.number == number && last.status.state == IndexRepairState::Running;
        if is_running {
            change(&mut last.status);
        }
        is_running
    }

    fn is_running(&self, number: u64) -> bool {
        self.note(number, |_| {})
    }

    fn stepped(&self, number: u64, step: &TermStep) {
        self.refreshes.add(step.lacking + step.surplus);
        self.note(number, |status| {
            status.visited += step.visited;
            status.lacking += step.lacking;
            status.surplus += step.surplus;
        });
    }

    fn partition_ended(&self, number: u64, partition: u32, failure: Option<String>) {
        self.note(number, |status| {
            status.finished += 1;
            if let Some(why) = failure.filter(|_| status.failures.len() < FAILURES_MAX) {
                status.failures.push((partition, why));
            }
        });
    }

    /// Ends a run. Returns whether it was under way.
    fn end(&self, number: u64, state: IndexRepairState) -> bool {
        self.note(number, |status| {
            status.state = state;
            let IndexRepairStatus { visited, lacking, surplus, .. } = *status;
            info!(?state, visited, lacking, surplus, "a repair of index entries has ended");
        })
    }

    /// How long to wait after a step that has taken so long.
    fn pause_after(&self, worked: Duration) -> Duration {
        let speed = self.speed.load(Ordering::SeqCst).clamp(1, INDEX_REPAIR_SPEED_MAX);
        worked.mul_f64(f64::from(INDEX_REPAIR_SPEED_MAX - speed) / f64::from(speed)).min(PAUSE_MAX)
    }
}

impl Feature for IndexRepair {
    fn figures(&self) -> Vec<Figure<'_>> {
        vec![Figure {
            name: "vnode_index_refreshes".into(),
            metric: "index_refreshes_total",
            label: None,
            help: "Index entries that repairs of indexes have added or removed.",
            number: Number::Spiral(&self.refreshes),
        }]
    }
}

impl Repair {
    /// Begins a repair of the index entries of some partitions; none: of all that are open. `speed`
    /// is from 1 to [`INDEX_REPAIR_SPEED_MAX`]. Returns the partitions, or nothing if a repair is
    /// under way. Fails if this node does not hold one of them. Call it where `Runtime::spawn`
    /// works.
    pub fn start_index_repair(&self, partitions: &[u32], speed: u32) -> Result<Option<Vec<u32>>, Error> {
        let open: Vec<u32> = self.host.partitions().all_open().map(|partition| partition.number()).collect();
        if let Some(missing) = partitions.iter().find(|partition| !open.contains(partition)) {
            return Err(Error::Unsupported(format!("partition {missing} is not on this node")));
        }
        let mut chosen = if partitions.is_empty() { open } else { partitions.to_vec() };
        chosen.sort_unstable();
        chosen.dedup();
        let index_repair = self.work.index_repair.clone();
        let Some(number) = index_repair.begin(chosen.len() as u64, speed) else { return Ok(None) };
        info!(partitions = chosen.len(), speed, "an operator has begun a repair of index entries");
        let transfers = self.host.transfers().clone();
        let run = Run { number, index_repair, transfers, host: Arc::downgrade(&self.host) };
        self.host.runtime().spawn(Box::pin(run.all(chosen.clone())));
        Ok(Some(chosen))
    }

    /// Sets the speed of the repair that is under way. Returns whether there is one.
    pub fn set_index_repair_speed(&self, speed: u32) -> bool {
        let is_running = self.index_repair_status().state == IndexRepairState::Running;
        if is_running {
            self.work.index_repair.speed.store(speed, Ordering::SeqCst);
        }
        is_running
    }

    /// Ends the repair that is under way. It may take one step more. What it has mended stays.
    /// Returns whether there was one.
    pub fn kill_index_repair(&self) -> bool {
        self.work.index_repair.kill()
    }

    /// The repair that is under way, or the last one.
    pub fn index_repair_status(&self) -> IndexRepairStatus {
        self.work.index_repair.status()
    }
}

/// One run.
struct Run {
    number: u64,
    index_repair: Arc<IndexRepair>,
    /// It outlives the engine's requests, but keeps no store open.
    transfers: Arc<Transfers>,
    host: Weak<dyn RepairHost>,
}

impl Run {
    async fn all(self, partitions: Vec<u32>) {
        for partition in partitions {
            let failure = match self.one(partition).await {
                Ok(true) => None,
                Ok(false) => {
                    self.index_repair.end(self.number, IndexRepairState::Killed);
                    return;
                }
                Err(why) => {
                    warn!(partition, error = %why, "the index entries of a partition could not be repaired");
                    Some(why.to_string())
                }
            };
            self.index_repair.partition_ended(self.number, partition, failure);
        }
        self.index_repair.end(self.number, IndexRepairState::Finished);
    }

    /// Looks at one partition. Returns false if it was not to the end.
    async fn one(&self, partition: u32) -> Result<bool, Error> {
        let mut cursor = TermCursor::default();
        loop {
            let Some(host) = self.host.upgrade().filter(|_| !self.is_over()) else { return Ok(false) };
            let runtime = host.runtime().clone();
            // A partition that this node has given away meanwhile has nothing to repair.
            let Ok(found) = host.partitions().find(partition) else { return Ok(true) };
            drop(host);
            let (began, from) = (runtime.now(), cursor.clone());
            let stepped = self.transfers.fold_pool.run(move || found.store().check_terms(&from, STEP_COUNT)).await;
            let pause = match stepped {
                Ok(Ok(step)) => {
                    self.index_repair.stepped(self.number, &step);
                    if step.is_over {
                        return Ok(true);
                    }
                    cursor = step.next;
                    self.index_repair.pause_after(runtime.now().saturating_duration_since(began))
                }
                // A store that is handed over takes no writes. It is gone soon, or takes them
                // again.
                Ok(Err(StorageError::Busy(_) | StorageError::ClosedToWrites)) | Err(PoolError::Full) => BUSY_PAUSE,
                Ok(Err(why)) => return Err(why.into()),
                Err(PoolError::Stopped) => return Ok(false),
                Err(why) => return Err(why.into()),
            };
            if !pause.is_zero() {
                runtime.sleep(pause).await;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.transfers.is_stopped() || !self.index_repair.is_running(self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_run_at_a_time() {
        let repair = IndexRepair::default();
        assert_eq!((repair.status(), repair.kill()), (IndexRepairStatus::default(), false));
        let first = repair.begin(2, 50).unwrap();
        assert_eq!(repair.begin(3, 50), None);
        let step = TermStep { visited: 9, lacking: 2, surplus: 1, ..TermStep::default() };
        repair.stepped(first, &step);
        repair.partition_ended(first, 0, None);
        repair.partition_ended(first, 1, Some("it is closed".into()));
        assert!(repair.end(first, IndexRepairState::Finished) && !repair.kill());
        let status = repair.status();
        assert_eq!((status.visited, status.lacking, status.surplus, status.finished), (9, 2, 1, 2));
        assert_eq!(status.failures, [(1, "it is closed".to_owned())]);
        assert_eq!((status.state, repair.refreshes.total()), (IndexRepairState::Finished, 3));
        assert!(repair.begin(1, 100).is_some(), "another one may begin");
        assert_eq!(repair.status().visited, 0);
    }

    #[test]
    fn a_killed_run_says_nothing_to_the_next_one() {
        let repair = IndexRepair::default();
        let killed = repair.begin(2, 100).unwrap();
        assert!(repair.kill() && !repair.is_running(killed));
        assert_eq!(repair.status().state, IndexRepairState::Killed);
        let next = repair.begin(2, 100).expect("the last step of the other run need not have ended");
        repair.stepped(killed, &TermStep { visited: 9, ..TermStep::default() });
        repair.partition_ended(killed, 0, None);
        assert!(!repair.end(killed, IndexRepairState::Killed) && repair.is_running(next));
        assert_eq!((repair.status().visited, repair.status().finished), (0, 0));
    }

    #[test]
    fn the_speed_is_the_share_of_time_in_which_it_works() {
        let repair = IndexRepair::default();
        let pause = |speed| {
            repair.speed.store(speed, Ordering::SeqCst);
            repair.pause_after(Duration::from_millis(10))
        };
        assert_eq!([100, 50, 10].map(pause), [0, 10, 90].map(Duration::from_millis));
        assert_eq!(pause(0), Duration::from_millis(990));
    }
}
