//! The threads of background work.

use super::tombstone_reaper::Reaper;
use crate::config::KvConfig;
use crate::config::clock::WallClock;
use crate::partition::Partition;
use crate::start::OpenError;
use ombak_stats::Stats;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tracing::error;

/// Number of checks for a due sync in each interval between two syncs.
const SYNC_LOOKS: u32 = 4;
/// Bounds of the time between two such checks.
const SYNC_LOOK_MIN: Duration = Duration::from_millis(5);
const SYNC_LOOK_MAX: Duration = Duration::from_secs(1);
/// The interval of the reaper's rounds.
const REAP_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

/// The threads that maintain the stores and remove tombstones, until they are stopped.
pub(super) struct Background {
    stop: Arc<Stop>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Background {
    pub(super) fn start(
        config: &KvConfig,
        partitions: &Arc<[Arc<Partition>]>,
        reaper: &Arc<Reaper>,
        stats: &Arc<Stats>,
    ) -> Result<Self, OpenError> {
        let background = Self { stop: Arc::default(), threads: Mutex::default() };
        let (partitions, reaper, stats) = (partitions.clone(), reaper.clone(), stats.clone());
        let clock = config.clock.clone();
        let interval = partitions.iter().filter_map(|partition| partition.store().sync_interval()).min();
        if let Some(interval) = interval {
            // Syncs have their own thread, because a merge or a compaction may take longer than the
            // interval.
            let partitions = partitions.clone();
            let look = (interval / SYNC_LOOKS).clamp(SYNC_LOOK_MIN, SYNC_LOOK_MAX);
            background.spawn("ombak-sync", look, move || sync(&partitions))?;
        }
        background.spawn("ombak-maintain", config.maintain_interval, move || maintain(&partitions, &clock))?;
        background.spawn("ombak-reaper", REAP_INTERVAL, move || {
            reaper.round();
            stats.tick(Instant::now());
        })?;
        Ok(background)
    }

    fn spawn(&self, name: &str, interval: Duration, work: impl Fn() + Send + 'static) -> Result<(), OpenError> {
        let stop = self.stop.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            while !stop.sleep(interval) {
                work();
            }
        });
        let thread = thread.map_err(|source| OpenError::System { what: "another thread", source })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Ends the threads and waits for them.
    pub(super) fn stop(&self) {
        *self.stop.stopped.lock() = true;
        self.stop.changed.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                error!("a thread of background work panicked");
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Stop {
    /// Sleeps for `interval` or until stopped. Returns whether it was stopped.
    fn sleep(&self, interval: Duration) -> bool {
        let mut stopped = self.stopped.lock();
        if !*stopped {
            self.changed.wait_for(&mut stopped, interval);
        }
        *stopped
    }
}

fn sync(partitions: &[Arc<Partition>]) {
    for partition in partitions {
        if let Err(e) = partition.store().sync_if_due(Instant::now()) {
            error!(partition = partition.number(), error = %e, "a sync failed");
        }
    }
}

fn maintain(partitions: &[Arc<Partition>], clock: &WallClock) {
    let now_secs = clock().secs();
    for partition in partitions {
        if let Err(e) = partition.store().maintain(now_secs) {
            error!(partition = partition.number(), error = %e, "background work failed");
        }
    }
}
