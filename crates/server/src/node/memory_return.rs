//! Gives memory that nobody uses any more back to the system.
//!
//! The allocator keeps freed memory for a second, and gives it back while a thread allocates. It
//! has no thread of its own, so a node without requests keeps what its last requests have freed:
//! 2.3 GB were still resident 30 s after 50 clients had broken off uploads of 60 MB each, and would
//! have stayed.

use std::hint::black_box;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// How often freed memory is given back. Each round goes over a quarter of the allocator's areas of
/// one gigabyte, and at least one.
const INTERVAL: Duration = Duration::from_secs(1);

/// After this number of allocations that are not small, the allocator looks at what it can give
/// back (its option `generic_collect`).
const ALLOCATIONS: usize = 10_000;

/// The size of these allocations, in bytes: the smallest power of two for which the allocator does
/// not take its shortest way.
const ALLOCATION_BYTES: usize = 2_048;

/// Gives memory back again and again, until the task is dropped.
pub async fn give_back() {
    let mut rounds = interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        round();
    }
}

/// Makes the allocator give back what has been free for a second. This takes about 0.2 ms. A call
/// of the allocator's function for it would need `unsafe`.
fn round() {
    for _ in 0..ALLOCATIONS {
        drop(black_box(Vec::<u8>::with_capacity(ALLOCATION_BYTES)));
    }
}
