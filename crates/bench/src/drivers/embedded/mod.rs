//! A storage engine inside this process. The difference between these results and those of a server
//! is what the server adds to its engine (docs/riak/basho-bench.md §4.4, the drivers of engines).
//!
//! What it is: as many stores as a node has partitions, opened as a node opens them, with a thread
//! that maintains them. Keys and objects have the layout that a node uses, so that the same number
//! of bytes is written.
//!
//! What it is not: it compares no clocks, reads nothing before a write, and waits for no quorum.

mod engine;
mod plan;
mod worker;

pub use plan::EmbeddedPlan;
pub use worker::EmbeddedWorker;
