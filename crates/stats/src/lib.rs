//! The counters and histograms of a node.
//!
//! What it is: numbers whose recording costs a few nanoseconds. [`Stats`] has one method for each
//! event that is counted, and returns all numbers under Riak's names (docs/riak/semantics.md §14).
//! A [`Feature`] that attaches has numbers of its own, which are shown beside them.
//!
//! What it is not: it has no clock and no thread. The owner of a [`Stats`] calls [`Stats::tick`]
//! about every second. It has no text format either; crate `monitoring` has those.
//!
//! Invariants:
//! * Recording takes no lock, allocates nothing and reads no clock.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod cluster;
mod feature;
mod histogram;
mod kind_counts;
mod shard;
mod spiral;
mod stats;

pub use cluster::{ClusterFigures, CoverageFigures, PeerFigures, ReapingFigures, ReplicaCounts, TransferFigures};
pub use feature::{Feature, Figure, Number};
pub use histogram::{Histogram, Summary};
pub use kind_counts::KindCounts;
pub use shard::{SHARDS, Sum, shard};
pub use spiral::{MINUTE_SECS, Spiral};
pub use stats::{ActiveGuard, ReadRepair, Stats};
