//! The threads of background work.

use super::engine::no_thread;
use super::tombstone_reaper::Reaper;
use crate::buckets::BucketRegistry;
use crate::config::KvConfig;
use crate::feed::Feeds;
use crate::open_error::OpenError;
use crate::partition::PartitionTable;
use crate::scrub::Scrubbing;
use crate::tree_keeping::{ROUND, TreeKeeping};
use ombak_runtime::{FairPool, Periodic};
use ombak_stats::Stats;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tracing::error;

/// Number of checks for a due sync in each interval between two syncs.
const SYNC_LOOKS: u32 = 4;
/// Bounds of the time between two such checks.
const SYNC_LOOK_MIN: Duration = Duration::from_millis(5);
const SYNC_LOOK_MAX: Duration = Duration::from_secs(1);
/// The interval of the reaper's rounds.
const REAP_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which scrubbing goes on.
const SCRUB_INTERVAL: Duration = Duration::from_millis(100);
/// The interval at which kept trees are made and checked.
const TREES_INTERVAL: Duration = ROUND;
/// The interval at which consumers of changes are looked for whose turn has come.
const FEED_INTERVAL: Duration = Duration::from_millis(50);

/// The threads that maintain and scrub the stores, keep trees, remove tombstones and lead consumers
/// of changes, until they are stopped or dropped.
pub(super) struct Background {
    threads: Vec<Box<dyn Periodic>>,
    /// What leads consumers of changes.
    feed_threads: Option<FairPool>,
    scrubbing: Arc<Scrubbing>,
    tree_keeping: Arc<TreeKeeping>,
    is_stopping: Arc<AtomicBool>,
}

impl Background {
    pub(super) fn start(
        config: &KvConfig,
        (partitions, buckets): (&Arc<PartitionTable>, &Arc<BucketRegistry>),
        reaper: &Arc<Reaper>,
        (scrubbing, tree_keeping): (&Arc<Scrubbing>, &Arc<TreeKeeping>),
        stats: &Arc<Stats>,
    ) -> Result<Self, OpenError> {
        let (partitions, reaper, stats) = (partitions.clone(), reaper.clone(), stats.clone());
        let start = |name, interval, work: Box<dyn FnMut() + Send>| {
            config.runtime.start_periodic(name, interval, work).map_err(no_thread)
        };
        let runtime = || config.runtime.clone();
        let mut threads = Vec::new();
        let interval = partitions.all_open().filter_map(|partition| partition.store().sync_interval()).min();
        if let Some(interval) = interval {
            // Syncs have their own thread, because a merge or a compaction may take longer than the
            // interval.
            let (partitions, runtime) = (partitions.clone(), runtime());
            let look = (interval / SYNC_LOOKS).clamp(SYNC_LOOK_MIN, SYNC_LOOK_MAX);
            threads.push(start("ombak-sync", look, Box::new(move || sync(&partitions, runtime.now())))?);
        }
        let (clock, is_stopping) = (runtime(), Arc::new(AtomicBool::new(false)));
        let feeds = Feeds::open(config, (&partitions, buckets), &is_stopping).map_err(no_thread)?;
        let feed_threads = feeds.as_ref().map(|feeds| feeds.pool().clone());
        if let Some(mut feeds) = feeds {
            threads.push(start("ombak-feeds", FEED_INTERVAL, Box::new(move || feeds.round()))?);
        }
        if scrubbing.is_enabled() {
            let (scrubbing, stops) = (scrubbing.clone(), is_stopping.clone());
            threads.push(start("ombak-scrub", SCRUB_INTERVAL, Box::new(move || scrubbing.work(&stops)))?);
        }
        if tree_keeping.is_enabled() {
            let (keeping, stops) = (tree_keeping.clone(), is_stopping.clone());
            threads.push(start("ombak-trees", TREES_INTERVAL, Box::new(move || keeping.work(&stops)))?);
        }
        let stops = is_stopping.clone();
        let maintain = move || maintain(&partitions, clock.wall_clock().secs(), &stops);
        threads.push(start("ombak-maintain", config.maintain_interval, Box::new(maintain))?);
        let clock = runtime();
        let reap = move || {
            reaper.round();
            stats.tick(clock.now());
        };
        threads.push(start("ombak-reaper", REAP_INTERVAL, Box::new(reap))?);
        let (scrubbing, tree_keeping) = (scrubbing.clone(), tree_keeping.clone());
        Ok(Self { threads, feed_threads, scrubbing, tree_keeping, is_stopping })
    }

    /// Ends the threads and waits for them.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|thread| thread.stop());
        self.feed_threads.iter().for_each(FairPool::stop);
        self.scrubbing.save();
        self.tree_keeping.stop();
    }
}

impl Drop for Background {
    /// Turns of consumers end, which would otherwise follow each other.
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.feed_threads.iter().for_each(FairPool::stop);
    }
}

fn sync(partitions: &PartitionTable, now: Instant) {
    for partition in partitions.all_open() {
        if let Err(e) = partition.store().sync_if_due(now) {
            error!(partition = partition.number(), error = %e, "a sync failed");
        }
    }
}

/// Does one slice of work for each store. A stop does not wait for the slices of all stores, which
/// together can take many seconds.
fn maintain(partitions: &PartitionTable, now_secs: u64, stops: &AtomicBool) {
    for partition in partitions.all_open().take_while(|_| !stops.load(Ordering::Relaxed)) {
        if let Err(e) = partition.store().maintain(now_secs) {
            error!(partition = partition.number(), error = %e, "background work failed");
        }
    }
}
