//! `basho_bench_driver_http_raw`, also by the name of its twin `basho_bench_driver_http_ibrowse`: objects over HTTP
//! (docs/riak/basho-bench.md §4.4).
//!
//! What it is not: no general HTTP client. It speaks HTTP/1.1 to one server at a time, keeps nothing of a body but its
//! beginning, follows no redirection, and has no TLS.
//!
//! Invariant: every answer is read to its end; its status, and of a value that there is one, is checked.

mod operation;
mod plan;
pub(super) mod request;
pub(super) mod session;
#[cfg(test)]
mod tests;
mod worker;

pub use plan::HttpPlan;
pub use worker::HttpWorker;
