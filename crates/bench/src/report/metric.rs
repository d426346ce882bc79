//! The latency metrics and their names.

use crate::stats::Summary;

/// One latency metric of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    us: fn(&Summary) -> f64,
}

pub(super) const MIN: Metric = Metric { name: "min", us: |operation| operation.min_us as f64 };
pub(super) const MEAN: Metric = Metric { name: "mean", us: |operation| operation.mean_us };
pub(super) const MEDIAN: Metric = Metric { name: "median", us: |operation| operation.median_us as f64 };
pub(super) const P95: Metric = Metric { name: "95th", us: |operation| operation.p95_us as f64 };
pub(super) const P99: Metric = Metric { name: "99th", us: |operation| operation.p99_us as f64 };
pub(super) const P999: Metric = Metric { name: "99.9th", us: |operation| operation.p999_us as f64 };
pub(super) const MAX: Metric = Metric { name: "max", us: |operation| operation.max_us as f64 };

impl Metric {
    /// The value in milliseconds; `None` if no operation succeeded.
    pub(super) fn ms(self, operation: &Summary) -> Option<f64> {
        (operation.units > 0).then(|| (self.us)(operation) / 1000.0)
    }
}
