//! The distribution of recorded values over the last minute.

use crate::shard::{SHARDS, Sum, shard};
use crate::spiral::WINDOWS;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Values below 2^MAGNITUDES fall in buckets whose width is at most 1/32 of the value. Larger
/// values are counted in the last bucket.
const MAGNITUDES: u32 = 42;
const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = (MAGNITUDES - SUB_BITS + 1) as usize * SUB;

/// Counts values in buckets whose width grows with the value. Recording a value adds to one bucket
/// and one sum, both in the calling thread's shard.
#[derive(Debug)]
pub struct Histogram {
    shards: [Box<[AtomicU32]>; SHARDS],
    sum: Sum,
    /// The largest value of the current window.
    max: AtomicU64,
    history: Mutex<History>,
}

#[derive(Debug)]
struct History {
    /// The count of every bucket when the current window began. Bucket counters wrap around; only
    /// differences are used.
    base: Vec<u32>,
    base_sum: u64,
    /// Number of values in the finished windows.
    base_count: u64,
    /// Finished windows, oldest first.
    windows: VecDeque<Window>,
}

#[derive(Clone, Debug, Default)]
struct Window {
    /// (bucket, number of values) for the buckets that are not empty.
    counts: Vec<(u16, u32)>,
    sum: u64,
    max: u64,
}

impl Window {
    fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

/// The statistics of the last minute. All fields are 0 when nothing was recorded. A quantile is at
/// most 1/32 of its value beside the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// The least value, as exact as a quantile.
    pub min: u64,
    /// Their mean, rounded to the nearest integer.
    pub mean: u64,
    /// Half of the values are at most this.
    pub median: u64,
    /// 95 of 100 values are at most this.
    pub p95: u64,
    /// 99 of 100 values are at most this.
    pub p99: u64,
    /// 999 of 1,000 values are at most this.
    pub p999: u64,
    /// The largest value.
    pub max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| (0..BUCKETS).map(|_| AtomicU32::new(0)).collect()),
            sum: Sum::default(),
            max: AtomicU64::new(0),
            history: Mutex::new(History {
                base: vec![0; BUCKETS],
                base_sum: 0,
                base_count: 0,
                windows: VecDeque::new(),
            }),
        }
    }
}

impl Histogram {
    /// Records a value.
    pub fn record(&self, value: u64) {
        if let Some(cell) = self.shards[shard() % SHARDS].get(bucket_of(value)) {
            cell.fetch_add(1, Relaxed);
        }
        self.sum.add(value);
        if value > self.max.load(Relaxed) {
            self.max.fetch_max(value, Relaxed);
        }
    }

    /// Number of values recorded since the start.
    pub fn count(&self) -> u64 {
        let history = self.history.lock();
        history.base_count + self.under_way(&history).count()
    }

    /// The sum of all values since the start.
    pub fn sum(&self) -> u64 {
        self.sum.get()
    }

    /// Ends the current window and begins the next. `windows` is larger than one when windows have
    /// passed without a call.
    pub(crate) fn rotate(&self, windows: usize) {
        let mut history = self.history.lock();
        let finished = self.under_way(&history);
        self.max.fetch_and(0, Relaxed);
        for &(bucket, count) in &finished.counts {
            if let Some(base) = history.base.get_mut(usize::from(bucket)) {
                *base = base.wrapping_add(count);
            }
        }
        history.base_sum = history.base_sum.wrapping_add(finished.sum);
        history.base_count += finished.count();
        history.windows.push_back(finished);
        for _ in 1..windows.min(WINDOWS + 1) {
            history.windows.push_back(Window::default());
        }
        let too_many = history.windows.len().saturating_sub(WINDOWS);
        history.windows.drain(..too_many);
    }

    /// The statistics of the last minute.
    pub fn last_minute(&self) -> Summary {
        let history = self.history.lock();
        let now = self.under_way(&history);
        let mut counts = vec![0u64; BUCKETS];
        let (mut sum, mut max) = (0u64, 0u64);
        for window in history.windows.iter().chain([&now]) {
            for &(bucket, count) in &window.counts {
                counts[usize::from(bucket) % BUCKETS] += u64::from(count);
            }
            sum = sum.wrapping_add(window.sum);
            max = max.max(window.max);
        }
        summarise(&counts, sum, max)
    }

    /// The statistics of the last minute under a name, with Riak's suffixes.
    pub(crate) fn numbers(&self, name: &str) -> [(String, u64); 5] {
        let s = self.last_minute();
        [("mean", s.mean), ("median", s.median), ("95", s.p95), ("99", s.p99), ("100", s.max)]
            .map(|(suffix, value)| (format!("{name}_{suffix}"), value))
    }

    /// The mean and the largest value of the last minute, under the names of Riak.
    pub(crate) fn mean_and_most(&self, name: &str) -> [(String, u64); 2] {
        let Summary { mean, max, .. } = self.last_minute();
        [("mean", mean), ("100", max)].map(|(suffix, value)| (format!("{name}_{suffix}"), value))
    }

    /// The statistics of the last minute under a name, with the suffixes that Riak has for search.
    pub(crate) fn latencies(&self, name: &str) -> Vec<(String, u64)> {
        let s = self.last_minute();
        let extremes = [("min", s.min), ("max", s.max), ("mean", s.mean)];
        let quantiles = [("median", s.median), ("95", s.p95), ("99", s.p99), ("999", s.p999)];
        extremes.into_iter().chain(quantiles).map(|(suffix, value)| (format!("{name}_{suffix}"), value)).collect()
    }

    fn under_way(&self, history: &History) -> Window {
        let mut window = Window {
            counts: Vec::new(),
            sum: self.sum.get().wrapping_sub(history.base_sum),
            max: self.max.load(Relaxed),
        };
        for (bucket, base) in (0u16..).zip(&history.base) {
            let cells = self.shards.iter().filter_map(|s| s.get(usize::from(bucket)));
            let count = cells.fold(0u32, |sum, c| sum.wrapping_add(c.load(Relaxed))).wrapping_sub(*base);
            if count > 0 {
                window.counts.push((bucket, count));
            }
        }
        window
    }
}

fn summarise(counts: &[u64], sum: u64, max: u64) -> Summary {
    let count: u64 = counts.iter().sum();
    if count == 0 {
        return Summary::default();
    }
    let at = |per_mille: u64| {
        let rank = (count * per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        let bucket = counts.iter().position(|c| {
            seen += c;
            seen >= rank
        });
        middle_of(bucket.unwrap_or(BUCKETS - 1)).min(max)
    };
    let mean = (sum + count / 2) / count;
    Summary { count, min: at(0), mean, median: at(500), p95: at(950), p99: at(990), p999: at(999), max }
}

fn bucket_of(value: u64) -> usize {
    let value = value.min((1 << MAGNITUDES) - 1);
    if value < 2 * SUB as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    (shift as usize + 1) * SUB + ((value >> shift) as usize - SUB)
}

/// The value in the middle of a bucket, which represents all values of the bucket.
fn middle_of(bucket: usize) -> u64 {
    if bucket < 2 * SUB {
        return bucket as u64;
    }
    let shift = bucket / SUB - 1;
    let low = ((bucket % SUB + SUB) as u64) << shift;
    low + (1u64 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    #[test]
    fn percentiles_of_a_known_distribution() {
        let h = Histogram::default();
        (1..=1000).for_each(|v| h.record(v));
        let s = h.last_minute();
        assert_eq!((s.count, s.max, s.mean), (1000, 1000, 501));
        assert_eq!(s.min, 1);
        for (got, want) in [(s.median, 500), (s.p95, 950), (s.p99, 990), (s.p999, 999)] {
            assert!(got.abs_diff(want) * 32 <= want, "{got} for {want}");
        }
    }

    #[test]
    fn one_value_is_told_exactly_while_small() {
        let h = Histogram::default();
        h.record(1);
        let s = h.last_minute();
        assert_eq!(s, Summary { count: 1, min: 1, mean: 1, median: 1, p95: 1, p99: 1, p999: 1, max: 1 });
        assert_eq!(Histogram::default().last_minute(), Summary::default());
    }

    #[test]
    fn old_values_are_forgotten_and_the_totals_are_not() {
        let h = Histogram::default();
        h.record(1_000_000);
        h.rotate(1);
        h.record(10);
        assert_eq!(h.last_minute().max, 1_000_000);
        h.rotate(WINDOWS - 1);
        assert_eq!(h.last_minute().max, 1_000_000);
        h.rotate(1);
        let ten = Summary { count: 1, min: 10, mean: 10, median: 10, p95: 10, p99: 10, p999: 10, max: 10 };
        assert_eq!(h.last_minute(), ten);
        h.rotate(usize::MAX);
        assert_eq!(h.last_minute(), Summary::default());
        assert_eq!((h.count(), h.sum()), (2, 1_000_010));
    }

    #[test]
    fn threads_lose_nothing() {
        let h = Histogram::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10_000).for_each(|v| h.record(v)));
            }
            scope.spawn(|| (0..5).for_each(|_| h.rotate(1)));
        });
        assert_eq!((h.count(), h.last_minute().count), (80_000, 80_000));
    }

    /// The target is below 50 ns. The bound leaves room for a build without optimisation and a
    /// loaded machine.
    #[test]
    fn recording_is_cheap() {
        let h = Histogram::default();
        let best = (0..5).map(|_| {
            let start = Instant::now();
            (0..100_000u64).for_each(|v| h.record(v));
            start.elapsed()
        });
        let best = best.min().unwrap_or_default();
        assert!(best < Duration::from_nanos(100_000 * 500), "{:?} for one record", best / 100_000);
    }

    /// Values of all magnitudes that have buckets of their own.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (any::<u64>(), 64 - MAGNITUDES..64).prop_map(|(bits, shift)| bits >> shift);
        prop::collection::vec(value, 1..400)
    }

    proptest! {
        /// The crate `hdrhistogram` keeps three digits of each value, so it is the more exact one.
        #[test]
        fn the_summary_is_that_of_hdrhistogram(values in values(), windows in 1..WINDOWS) {
            let ours = Histogram::default();
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_max(1 << MAGNITUDES, 3).unwrap();
            for (at, &value) in values.iter().enumerate() {
                if at % values.len().div_ceil(windows) == 0 && at > 0 {
                    ours.rotate(1);
                }
                ours.record(value);
                theirs.record(value).unwrap();
            }
            let s = ours.last_minute();
            prop_assert_eq!((s.count, ours.count()), (theirs.len(), theirs.len()));
            prop_assert_eq!((s.max, ours.sum()), (values.iter().copied().max().unwrap(), values.iter().sum()));
            for (percent, told) in [(0.0, s.min), (50.0, s.median), (95.0, s.p95), (99.0, s.p99), (99.9, s.p999), (100.0, s.max)] {
                let want = theirs.value_at_percentile(percent);
                prop_assert!(told.abs_diff(want) * 32 <= want, "{} for {} at {}%", told, want, percent);
            }
            let mean = theirs.mean();
            prop_assert!((s.mean as f64 - mean).abs() <= 0.5 + mean / 500.0, "{} for {}", s.mean, mean);
        }

        #[test]
        fn a_bucket_stands_for_its_values(value in 0u64..1 << MAGNITUDES) {
            let bucket = bucket_of(value);
            prop_assert!(bucket < BUCKETS);
            prop_assert!(middle_of(bucket).abs_diff(value) * 32 <= value);
            prop_assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }

        #[test]
        fn larger_values_never_fall_in_lower_buckets(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(bucket_of(a.min(b)) <= bucket_of(a.max(b)));
        }
    }
}
