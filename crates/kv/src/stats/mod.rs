//! The statistics of a node, and the two formats in which it reports them: Riak's `/stats` and
//! Prometheus' `/metrics`.
//!
//! What it is: counters and histograms whose recording costs a few nanoseconds, and the tables of
//! Riak's names (docs/riak/semantics.md §14).
//!
//! What it is not: it has no clock and no thread. The owner of a [`Stats`] calls [`Stats::tick`]
//! about every second.
//!
//! Invariants:
//! * Recording takes no lock, allocates nothing and reads no clock.
//! * Every name of Riak 3.2.3 is answered; a statistic without a meaning in Ombak is 0.

mod histogram;
#[cfg(test)]
mod metric_rules;
mod names;
mod node_stats;
mod prometheus;
mod riak_json;
mod shard;
mod spiral;
mod system;

pub use node_stats::{ActiveGuard, ReadRepair, Stats};
pub use prometheus::CONTENT_TYPE as PROMETHEUS_CONTENT_TYPE;
pub(crate) use shard::{SHARDS, shard};
pub use system::{Disk, NodeFacts, SystemFacts};
