//! The counters and histograms of a node.
//!
//! What it is: numbers whose recording costs a few nanoseconds. [`Stats`] has one method for each
//! event that is counted, and returns all numbers under Riak's names (docs/riak/semantics.md §14).
//!
//! What it is not: it has no clock and no thread. The owner of a [`Stats`] calls [`Stats::tick`]
//! about every second. It has no text format either; crate `monitoring` has those.
//!
//! Invariants:
//! * Recording takes no lock, allocates nothing and reads no clock.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod cluster;
mod histogram;
mod shard;
mod spiral;
mod stats;

pub use cluster::{ClusterFigures, CoverageFigures, PeerFigures, ReapingFigures, ReplicaCounts, TransferFigures};
pub use histogram::{Histogram, Summary};
pub use shard::{SHARDS, shard};
pub use spiral::{MINUTE_SECS, Spiral};
pub use stats::{ActiveGuard, ReadRepair, Stats};
