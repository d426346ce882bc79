//! The driver `basho_bench_driver_riakc_pb`: objects over Riak's Protocol Buffers interface
//! (docs/riak/basho-bench.md §4.1).
//!
//! What it is not: full-text search, MapReduce, counters and data types are known by name and
//! reported as not supported.
//!
//! The setting `{riakc_pb_pipeline, N}` does not exist in basho_bench: N requests are in flight on
//! each connection, each with its own latency. Only operations with one request and one answer can
//! be pipelined.
//!
//! Invariant: every answer has the expected message code and is read to its end. If an operation
//! reads a key, its object has a value.

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
