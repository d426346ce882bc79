//! A storage engine inside this process: what a server adds to its own engine is the difference to this
//! (docs/riak/basho-bench.md §4.4, the drivers of engines).
//!
//! What it is: as many stores as a node has partitions, opened as a node opens them, with a thread for their upkeep. Keys and
//! objects are laid out as a node lays them out, so that as many bytes are written.
//!
//! What it is not: no clocks are compared, nothing is read before it is written, no quorum waits.

mod engine;
mod plan;
mod worker;

pub use plan::EmbeddedPlan;
pub use worker::EmbeddedWorker;
