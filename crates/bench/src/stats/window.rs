//! The statistics of a period of a run.

use serde::{Deserialize, Serialize};

use super::Tally;

/// The statistics of a period of a run: between two reports, or the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Seconds from the start of the run to the end of this window.
    pub elapsed_s: f64,
    /// The length of this window, in seconds.
    pub window_s: f64,
    /// The statistics of each operation, in the order of the configuration.
    pub operations: Vec<Summary>,
    /// The bytes of values that were sent; 0 if no operation sends values.
    pub sent_bytes: u64,
}

/// The statistics of one operation. Latencies are 0 if no operation succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The units of successful operations, which throughput counts.
    pub units: u64,
    /// The lowest latency.
    pub min_us: u64,
    /// The mean latency.
    pub mean_us: f64,
    /// The median latency.
    pub median_us: u64,
    /// The 95th percentile of latency.
    pub p95_us: u64,
    /// The 99th percentile of latency.
    pub p99_us: u64,
    /// The 99.9th percentile of latency.
    pub p999_us: u64,
    /// The highest latency.
    pub max_us: u64,
    /// The number of failed operations.
    pub errors: u64,
    /// With a given rate: how late operations began.
    pub queue: Option<QueueDelay>,
}

/// How late operations began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// The 99th percentile.
    pub p99_us: u64,
    /// The maximum.
    pub max_us: u64,
}

impl Window {
    /// The counts of `tally` for the `window_s` seconds that ended `elapsed_s` seconds after the
    /// start.
    pub fn new(elapsed_s: f64, window_s: f64, tally: &Tally) -> Self {
        Self { elapsed_s, window_s, operations: tally.summaries(), sent_bytes: tally.sent_bytes() }
    }

    /// The units of successful operations.
    pub fn units(&self) -> u64 {
        self.operations.iter().map(|operation| operation.units).sum()
    }

    /// The number of failed operations.
    pub fn errors(&self) -> u64 {
        self.operations.iter().map(|operation| operation.errors).sum()
    }

    /// Converts a count of this window to a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.window_s > 0.0 { count as f64 / self.window_s } else { 0.0 }
    }
}
