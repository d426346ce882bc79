//! The counters of one thread.

use crate::drivers::Reason;
use hdrhistogram::Histogram;

use super::{QueueDelay, Summary};

/// The number of pairs of an operation and a reason that a tally distinguishes.
pub const REASONS_MAX: usize = 100;

/// The common reason for all further pairs.
pub const OTHER_REASONS: Reason = Reason::Borrowed("other");

/// The longest latency in the histogram, one hour. A longer one counts as this, except in the
/// maximum and the mean.
const LATENCY_US_MAX: u64 = 3_600_000_000;

/// The number of significant decimal digits of quantiles.
const DIGITS: u8 = 3;

/// The counts of the workers of one thread since the tally was last drained.
#[derive(Clone, Debug)]
pub struct Tally {
    operations: Vec<Counters>,
    errors: Vec<ErrorCount>,
    sent_bytes: u64,
    never_began: u64,
}

/// How often an operation failed for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The index of the operation in the configuration.
    pub operation: usize,
    /// The reason.
    pub reason: Reason,
    /// The number of failures.
    pub count: u64,
}

#[derive(Clone, Debug)]
struct Counters {
    latency: Times,
    queued: Times,
    units: u64,
    failed: u64,
}

/// Times in microseconds: a histogram, and exact values that the histogram would round.
#[derive(Clone, Debug)]
struct Times {
    histogram: Histogram<u64>,
    sum_us: u128,
    min_us: u64,
    max_us: u64,
}

impl Tally {
    /// A tally of `operations` operations without counts.
    pub fn new(operations: usize) -> Self {
        Self {
            operations: (0..operations).map(|_| Counters::new()).collect(),
            errors: Vec::with_capacity(REASONS_MAX + operations),
            sent_bytes: 0,
            never_began: 0,
        }
    }

    /// Counts a successful operation. `latency_us` is measured from the time when it was due.
    pub fn done(&mut self, operation: usize, units: u32, latency_us: u64) {
        if let Some(counters) = self.operations.get_mut(operation) {
            counters.latency.record(latency_us);
            counters.units += u64::from(units);
        }
    }

    /// Counts how late an operation began, because the worker or the machine was busy.
    pub fn queued(&mut self, operation: usize, delay_us: u64) {
        if let Some(counters) = self.operations.get_mut(operation) {
            counters.queued.record(delay_us);
        }
    }

    /// Counts an operation that was due `delay_us` before the end of the run and had not begun by
    /// then. It was late, and it is neither successful nor failed.
    pub fn never_began(&mut self, operation: usize, delay_us: u64) {
        self.queued(operation, delay_us);
        self.never_began += 1;
    }

    /// Counts a failed operation.
    pub fn failed(&mut self, operation: usize, reason: &Reason) {
        if let Some(counters) = self.operations.get_mut(operation) {
            counters.failed += 1;
            self.count_error(operation, reason, 1);
        }
    }

    /// Counts the bytes of values that were sent.
    pub fn sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.operations.len(), other.operations.len(), "tallies of one run have the same operations");
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.add(theirs);
        }
        for error in &other.errors {
            self.count_error(error.operation, &error.reason, error.count);
        }
        self.sent_bytes += other.sent_bytes;
        self.never_began += other.never_began;
    }

    /// Adds the counts to `total` and resets this tally, which keeps its memory.
    pub fn drain_into(&mut self, total: &mut Self) {
        total.add(self);
        self.operations.iter_mut().for_each(Counters::clear);
        self.errors.clear();
        self.sent_bytes = 0;
        self.never_began = 0;
    }

    /// The errors by operation and reason, ordered by their first occurrence.
    pub fn errors(&self) -> &[ErrorCount] {
        &self.errors
    }

    /// The bytes of values that were sent; 0 if no operation sends values.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// The number of operations that were due and had not begun when the run ended.
    pub fn count_never_began(&self) -> u64 {
        self.never_began
    }

    /// The statistics of each operation.
    pub fn summaries(&self) -> Vec<Summary> {
        self.operations.iter().map(Counters::summary).collect()
    }

    fn count_error(&mut self, operation: usize, reason: &Reason, count: u64) {
        let place = |errors: &[ErrorCount], reason: &Reason| {
            errors.iter().position(|error| error.operation == operation && error.reason == *reason)
        };
        // Above the bound, there is at most one more entry for each operation.
        let reason = match place(&self.errors, reason) {
            Some(_) => reason,
            None if self.errors.len() < REASONS_MAX => reason,
            None => &OTHER_REASONS,
        };
        match place(&self.errors, reason).and_then(|at| self.errors.get_mut(at)) {
            Some(error) => error.count += count,
            None => self.errors.push(ErrorCount { operation, reason: reason.clone(), count }),
        }
    }
}

impl Counters {
    fn new() -> Self {
        Self { latency: Times::new(), queued: Times::new(), units: 0, failed: 0 }
    }

    fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.queued.add(&other.queued);
        self.units += other.units;
        self.failed += other.failed;
    }

    fn clear(&mut self) {
        self.latency.clear();
        self.queued.clear();
        self.units = 0;
        self.failed = 0;
    }

    fn summary(&self) -> Summary {
        let queue = (!self.queued.is_empty())
            .then(|| QueueDelay { p99_us: self.queued.quantile_us(0.99), max_us: self.queued.max_us });
        let errors = self.failed;
        if self.latency.is_empty() {
            return Summary { errors, queue, ..Summary::default() };
        }
        Summary {
            units: self.units,
            min_us: self.latency.min_us,
            mean_us: self.latency.mean_us(),
            median_us: self.latency.quantile_us(0.5),
            p95_us: self.latency.quantile_us(0.95),
            p99_us: self.latency.quantile_us(0.99),
            p999_us: self.latency.quantile_us(0.999),
            max_us: self.latency.max_us,
            errors,
            queue,
        }
    }
}

impl Times {
    #[expect(clippy::expect_used, reason = "the bounds are constants")]
    fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS).expect("the bounds make a histogram");
        Self { histogram, sum_us: 0, min_us: u64::MAX, max_us: 0 }
    }

    fn record(&mut self, us: u64) {
        self.histogram.saturating_record(us);
        self.sum_us += u128::from(us);
        self.min_us = self.min_us.min(us);
        self.max_us = self.max_us.max(us);
    }

    fn add(&mut self, other: &Self) {
        assert!(self.histogram.add(&other.histogram).is_ok(), "all histograms have the same bounds");
        self.sum_us += other.sum_us;
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    fn clear(&mut self) {
        // Most windows use a small part of a histogram, and many windows nothing at all. An empty
        // histogram is not reset.
        if !self.is_empty() {
            self.histogram.reset();
        }
        self.sum_us = 0;
        self.min_us = u64::MAX;
        self.max_us = 0;
    }

    fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    fn mean_us(&self) -> f64 {
        self.sum_us as f64 / self.histogram.len() as f64
    }

    /// The largest value of a histogram bucket may be above all recorded values, so the result is
    /// bounded by the maximum.
    fn quantile_us(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_us)
    }
}
