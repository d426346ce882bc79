//! `basho_bench_driver_riakc_pb`: objects over Riak's client protocol (docs/riak/basho-bench.md §4.1).
//!
//! What it is not: full-text search, MapReduce, counters and data types are known by name and reported as not done here.
//!
//! Beyond basho_bench it has a setting of its own, `{riakc_pb_pipeline, N}`: N requests are in flight on each connection,
//! each with a latency of its own. Only operations of one request and one answer can be.
//!
//! Invariant: every answer has the code that was asked for and is read to its end; where keys are read, they have values.

mod operation;
mod pipeline;
mod plan;
pub(super) mod probe;
pub(super) mod reply;
pub(super) mod session;
#[cfg(test)]
mod tests;
mod worker;

pub use plan::PbPlan;
pub use worker::PbWorker;
