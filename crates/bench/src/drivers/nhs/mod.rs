//! The driver `basho_bench_driver_nhs`: the workload of a national health record, which is the
//! reference for comparing Riak releases (docs/riak/basho-bench.md §4.2).
//!
//! Each worker has keys of its own. It reads records (`alwaysget_*`) only after they were written,
//! so a missing record is an error. It writes documents (`*_unique`) once, and reads and deletes
//! them in the order of writing.
//!
//! What it is not: the fold queries from before Riak 2.9 (`aae_query`, `segment_fold`) and the
//! newest operations over HTTP are known by name and reported as not supported.
//!
//! Keys have the older form, which published comparisons used: nine digits of a counter or its
//! hash, then nine digits for the worker.

mod keys;
mod operation;
mod plan;
pub(super) mod terms;
#[cfg(test)]
mod tests;
mod worker;

pub use plan::NhsPlan;
pub use worker::NhsWorker;
