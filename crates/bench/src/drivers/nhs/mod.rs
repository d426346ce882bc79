//! `basho_bench_driver_nhs`: the workload of a national health record, the reference for comparisons of Riak releases
//! (docs/riak/basho-bench.md §4.2).
//!
//! Each worker has keys of its own. Records (`alwaysget_*`) are read only once they have been written, so a missing one is
//! an error; documents (`*_unique`) are written once, read and deleted in the order in which they were written.
//!
//! What it is not: the fold queries of before Riak 2.9 (`aae_query`, `segment_fold`) and the newest operations over HTTP
//! are known by name and reported as not done here.
//!
//! Keys have the older form, which published comparisons used: nine digits of a counter or its hash, nine of the worker.

mod keys;
mod operation;
mod plan;
pub(super) mod terms;
#[cfg(test)]
mod tests;
mod worker;

pub use plan::NhsPlan;
pub use worker::NhsWorker;
