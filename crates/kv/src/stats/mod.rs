//! What a node counts and measures, and the two forms in which it tells: Riak's `/stats` and Prometheus' `/metrics`.
//!
//! What it is: counters and histograms that cost a few nanoseconds where requests pass, and the tables of Riak's names
//! (docs/riak/semantics.md §14).
//!
//! What it is not: no clock and no thread. Whoever owns a [`Stats`] calls [`Stats::tick`] every second or so.
//!
//! Invariants:
//! * recording takes no lock, allocates nothing and reads no clock;
//! * every name that Riak 3.2.3 has is answered; what has no meaning here is 0.

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
