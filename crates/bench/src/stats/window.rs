//! What a stretch of a run came to.

use serde::{Deserialize, Serialize};

use super::Tally;

/// A stretch of a run: between two reports, or all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Seconds from the start of the run to the end of this.
    pub elapsed_s: f64,
    /// Seconds that it took.
    pub window_s: f64,
    /// One for each operation, in the order of the configuration.
    pub operations: Vec<Summary>,
    /// Bytes of values sent; 0 when no operation sends any.
    pub sent_bytes: u64,
}

/// What one operation came to. Without a success, latencies are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Units of successful operations: what throughput counts.
    pub units: u64,
    /// Least latency.
    pub min_us: u64,
    /// Mean latency.
    pub mean_us: f64,
    /// Median latency.
    pub median_us: u64,
    /// 95th percentile of latency.
    pub p95_us: u64,
    /// 99th percentile of latency.
    pub p99_us: u64,
    /// 99.9th percentile of latency.
    pub p999_us: u64,
    /// Greatest latency.
    pub max_us: u64,
    /// Failed operations.
    pub errors: u64,
    /// With a given rate: how late operations began.
    pub queue: Option<QueueDelay>,
}

/// How late operations began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// 99th percentile.
    pub p99_us: u64,
    /// Greatest.
    pub max_us: u64,
}

impl Window {
    /// What `tally` counted in the `window_s` seconds up to `elapsed_s` seconds after the start.
    pub fn new(elapsed_s: f64, window_s: f64, tally: &Tally) -> Self {
        Self { elapsed_s, window_s, operations: tally.summaries(), sent_bytes: tally.sent_bytes() }
    }

    /// Units of successful operations.
    pub fn units(&self) -> u64 {
        self.operations.iter().map(|operation| operation.units).sum()
    }

    /// Failed operations.
    pub fn errors(&self) -> u64 {
        self.operations.iter().map(|operation| operation.errors).sum()
    }

    /// A count of this window as a rate in seconds.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.window_s > 0.0 { count as f64 / self.window_s } else { 0.0 }
    }
}
