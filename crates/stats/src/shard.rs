//! Counters without contention between threads: each thread counts in its shard.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Number of shards of each counter. Threads are spread over the shards; more shards would cost
/// memory in every histogram.
pub const SHARDS: usize = 4;

/// The shard of the calling thread.
pub fn shard() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(THREADS.fetch_add(1, Relaxed) % SHARDS);
        }
        mine.get()
    })
}

/// A counter on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded(AtomicU64);

/// A sum that many threads add to. Subtraction adds the two's complement, so the sum of all shards
/// is right even when one thread subtracts what another thread added.
#[derive(Debug, Default)]
pub struct Sum([Padded; SHARDS]);

impl Sum {
    /// Adds to the sum.
    pub fn add(&self, n: u64) {
        self.0[shard() % SHARDS].0.fetch_add(n, Relaxed);
    }

    /// Subtracts from the sum.
    pub fn subtract(&self, n: u64) {
        self.add(n.wrapping_neg());
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.0.iter().fold(0, |sum, s| sum.wrapping_add(s.0.load(Relaxed)))
    }
}
