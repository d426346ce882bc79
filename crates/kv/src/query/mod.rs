//! Secondary index queries (docs/riak/semantics.md §5): index entries, or keys, of one bucket in order, over all partitions.
//!
//! What it is: the entries of each partition come in order, a page at a time, and are merged; a batch is made when it is
//! asked for, so that a slow reader holds no thread and nothing is gathered that nobody takes.
//!
//! What it is not: it knows no protocol, and no form of a continuation.
//!
//! Invariants: results are in order, and none comes twice; what is held in memory does not grow with the results; a
//! thread works for a query no longer than it takes to read a bounded number of entries.

mod early;
mod index_query;
mod results;
mod source;
mod terms;
mod walk;

pub use index_query::{IndexMatch, IndexQuery, QueryConfig, QueryOf};
pub use results::QueryResults;
pub(crate) use walk::QueryWalk;

use ombak_storage::HeadTerms;
use std::sync::Arc;

/// Reads index entries from the heads that this crate has stores keep: for the stores' factories.
pub fn head_terms() -> Arc<dyn HeadTerms> {
    Arc::new(terms::ObjectTerms)
}
