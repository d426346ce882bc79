//! How long the work of each pool waits and takes.

use super::work_pools::FEATURE_POOL;
use ombak_runtime::PoolTimes;
use ombak_stats::{Feature, Figure, Histogram, Number};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The counts of all pools that there are.
#[derive(Debug)]
pub(super) struct WorkCounts(pub(super) Vec<Arc<PoolCounts>>);

/// The counts of one pool.
#[derive(Debug)]
pub(super) struct PoolCounts {
    /// The name of the pool, which is that in Riak if Riak has it.
    pub(super) pool: &'static str,
    waited_us: Histogram,
    worked_us: Histogram,
    refused: AtomicU64,
}

impl PoolCounts {
    pub(super) fn new(pool: &'static str) -> Self {
        Self { pool, waited_us: Histogram::default(), worked_us: Histogram::default(), refused: AtomicU64::new(0) }
    }

    fn figures(&self) -> [Figure<'_>; 4] {
        let label = Some(("pool", self.pool));
        let figure = |name: String, metric, help, number| Figure { name, metric, label, help, number };
        let prefix = if self.pool == FEATURE_POOL { "ombak_" } else { "" };
        let of_pool = |what: &str| format!("{prefix}worker_{}_{what}", self.pool);
        [
            figure(
                of_pool("total"),
                "worker_steps_total",
                "Steps that the pools of threads have done.",
                Number::Total(self.worked_us.count()),
            ),
            figure(
                of_pool("queuetime"),
                "worker_queue_seconds",
                "How long a step waited for a thread.",
                Number::MeanAndMost(&self.waited_us),
            ),
            figure(
                of_pool("worktime"),
                "worker_work_seconds",
                "How long a step took on its thread.",
                Number::MeanAndMost(&self.worked_us),
            ),
            figure(
                format!("ombak_worker_{}_refused_total", self.pool),
                "worker_refused_total",
                "Steps that were refused with overload because too many waited for the pool.",
                Number::Total(self.refused.load(Relaxed)),
            ),
        ]
    }
}

impl PoolTimes for PoolCounts {
    fn ended(&self, waited: Duration, worked: Duration) {
        self.waited_us.record(micros(waited));
        self.worked_us.record(micros(worked));
    }

    fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }
}

impl Feature for WorkCounts {
    fn figures(&self) -> Vec<Figure<'_>> {
        self.0.iter().flat_map(|pool| pool.figures()).collect()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
