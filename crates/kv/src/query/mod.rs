//! Secondary index queries (docs/riak/semantics.md §5): they return index entries or keys of one
//! bucket in order, over all partitions.
//!
//! What it is: each partition returns its entries in order, one page at a time, and the query
//! merges them. A batch is read when the caller asks for it, so a slow reader occupies no thread
//! and no results are collected that nobody reads.
//!
//! What it is not: it knows no protocol and no encoding of continuations.
//!
//! Invariants: Results are in order, and none is returned twice. Memory does not grow with the
//! number of results. A thread works for a query no longer than it takes to read a bounded number
//! of entries. While a query waits for its client, its snapshots belong to whoever needs them: it
//! goes on with new ones, so what is written meanwhile may then be in its results.

mod expired_siblings;
mod living_terms;
mod results;
mod shared_walk;
mod source;
mod terms;
mod walk;

pub(crate) use results::Matches;
pub use results::QueryResults;
pub(crate) use shared_walk::SharedWalk;
pub(crate) use source::Entry;
pub(crate) use walk::QueryWalk;

use ombak_storage::HeadTerms;
use std::sync::Arc;

/// Reads index entries from the heads of stored objects. The stores' factories receive this
/// function.
pub fn head_terms() -> Arc<dyn HeadTerms> {
    Arc::new(terms::ObjectTerms)
}
