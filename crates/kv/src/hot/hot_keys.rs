//! Counts the requests of all threads.
//!
//! Hot path: a request that is not counted costs one load and one store of a number that only the
//! threads of its shard use.

use super::report::{Gathering, HotReport};
use super::shard::Shard;
use ombak_stats::Sum;
use ombak_types::Bucket;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Number of shards. Threads are spread over them.
const SHARDS: usize = 32;
/// Objects from this many bytes on are noted with each request. Their requests take so long that a
/// lock does not matter.
const LARGE_BYTES: u64 = 256 << 10;

/// What the requests that this node coordinates are for.
#[derive(Debug)]
pub(crate) struct HotKeys {
    shards: [Place; SHARDS],
    /// Writes and deletes that were admitted and failed.
    write_errors: Sum,
}

/// A shard on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Place {
    /// How many requests are not counted before the next one that is. Threads that share a shard
    /// may lose an update of each other, which makes a gap a little longer or shorter.
    left: AtomicU32,
    shard: Mutex<Shard>,
}

impl HotKeys {
    pub(crate) fn new(now: Instant) -> Self {
        let place = |at: usize| Place {
            left: AtomicU32::new(0),
            shard: Mutex::new(Shard::new(now, (at as u32 + 1).wrapping_mul(0x9e37_79b9))),
        };
        Self { shards: std::array::from_fn(place), write_errors: Sum::default() }
    }

    /// Notes a request for a key whose values have some bytes, if they are known.
    #[inline]
    pub(crate) fn note(&self, bucket: &Bucket, key: &[u8], bytes: u64, now: Instant) {
        let place = &self.shards[thread_number() % SHARDS];
        let left = place.left.load(Relaxed);
        if left > 0 && bytes < LARGE_BYTES {
            place.left.store(left - 1, Relaxed);
            return;
        }
        place.count(left, (bucket, key), bytes, now);
    }

    /// Counts a write that failed.
    #[cold]
    pub(crate) fn write_failed(&self) {
        self.write_errors.add(1);
    }

    /// Writes and deletes that were admitted and failed, since the start.
    pub(crate) fn write_errors(&self) -> u64 {
        self.write_errors.get()
    }

    /// The hottest keys and buckets, and the largest objects: at most `count_max` of each.
    pub(crate) fn report(&self, count_max: usize, now: Instant) -> HotReport {
        let mut gathering = Gathering::default();
        for place in &self.shards {
            let mut shard = place.shard.lock();
            shard.turn(now);
            gathering.add(&shard, now);
        }
        gathering.report(count_max)
    }
}

impl Place {
    #[cold]
    fn count(&self, left: u32, (bucket, key): (&Bucket, &[u8]), bytes: u64, now: Instant) {
        // A report, or a thread of the same shard, is at work here. The next request tries again.
        let Some(mut shard) = self.shard.try_lock() else { return };
        shard.turn(now);
        if left > 0 {
            self.left.store(left - 1, Relaxed);
            shard.note_large(bucket, key, bytes);
            return;
        }
        let (weight, skipped) = shard.sampler.count(now);
        self.left.store(skipped, Relaxed);
        shard.count(bucket, key, bytes, weight);
    }
}

/// The number of the calling thread.
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(THREADS.fetch_add(1, Relaxed));
        }
        mine.get()
    })
}

#[cfg(test)]
mod tests {
    use super::super::shard::WINDOW;
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_hottest_come_first_and_pass() {
        let start = Instant::now();
        let (hot, bucket, other) = (HotKeys::new(start), Bucket::untyped("b"), Bucket::typed("t", "c"));
        (0..5).for_each(|_| hot.note(&bucket, b"often", 10, start));
        hot.note(&bucket, b"once", 1_000, start);
        hot.note(&other, b"twice", 20, start);
        hot.note(&other, b"twice", 0, start);
        let report = hot.report(10, start + Duration::from_secs(4));
        let keys: Vec<_> = report.keys.iter().map(|key| (&*key.name.key, key.requests, key.error)).collect();
        assert_eq!(keys, [(&b"often"[..], 5, 0), (&b"twice"[..], 2, 0), (&b"once"[..], 1, 0)]);
        let buckets: Vec<_> = report.buckets.iter().map(|key| (&*key.name.bucket, key.requests)).collect();
        assert_eq!(buckets, [(&b"b"[..], 6), (&b"c"[..], 2)]);
        let largest: Vec<_> = report.largest.iter().map(|object| (&*object.name.key, object.bytes)).collect();
        assert_eq!(largest, [(&b"once"[..], 1_000), (&b"twice"[..], 20), (&b"often"[..], 10)]);
        assert_eq!(report.covers, Duration::from_secs(4));
        assert_eq!(hot.report(1, start).keys.len(), 1);
        hot.note(&bucket, b"later", 1, start + WINDOW);
        let report = hot.report(10, start + WINDOW);
        assert_eq!((report.keys.len(), report.covers), (4, WINDOW));
        assert_eq!(hot.report(10, start + 2 * WINDOW).keys.len(), 1);
        assert_eq!(hot.report(10, start + 5 * WINDOW).keys, []);
    }

    #[test]
    fn a_large_object_is_noted_also_between_samples() {
        let start = Instant::now();
        let (hot, bucket) = (HotKeys::new(start), Bucket::untyped("b"));
        (0..2_000).for_each(|_| hot.note(&bucket, b"small", 1, start));
        let place = &hot.shards[thread_number() % SHARDS];
        place.left.store(5, Relaxed);
        hot.note(&bucket, b"large", LARGE_BYTES, start);
        let report = hot.report(10, start);
        assert_eq!(report.largest.first().map(|object| object.bytes), Some(LARGE_BYTES));
        assert!(report.keys.iter().all(|key| &*key.name.key != b"large"), "it is not counted");
        let estimate = report.keys[0].requests;
        assert!((1_000..4_000).contains(&estimate), "{estimate} for 2000");
    }

    #[test]
    fn threads_and_reports_do_not_stop_each_other() {
        let start = Instant::now();
        let (hot, bucket) = (HotKeys::new(start), Bucket::untyped("b"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50_000).for_each(|_| hot.note(&bucket, b"k", 1, start)));
            }
            scope.spawn(|| (0..100).for_each(|_| drop(hot.report(3, start))));
        });
        let requests = hot.report(3, start).keys[0].requests;
        assert!((100_000..300_000).contains(&requests), "{requests} for 200000");
    }
}
