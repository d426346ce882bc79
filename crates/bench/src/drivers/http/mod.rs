//! The driver `basho_bench_driver_http_raw`, also known as `basho_bench_driver_http_ibrowse`:
//! objects over HTTP (docs/riak/basho-bench.md §4.4).
//!
//! What it is not: a general HTTP client. It speaks HTTP/1.1 to one server at a time, keeps only
//! the beginning of a body, follows no redirect, and has no TLS.
//!
//! Invariant: every answer is read to its end. Its status is checked, and for a read also that the
//! value is not empty.

mod operation;
mod plan;
pub(super) mod request;
pub(super) mod session;
#[cfg(test)]
mod tests;
mod worker;

pub use plan::HttpPlan;
pub use worker::HttpWorker;
