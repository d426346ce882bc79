//! What an index is asked.

use ombak_search::dates::Date;
use ombak_search::merge::{CursorMark, SortOrder};
use ombak_search::request::{Queries, RangeBuckets, SearchRequest};
use std::collections::BTreeSet;

/// What an index is asked.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The search.
    pub request: &'a SearchRequest,
    /// Its queries, read.
    pub queries: &'a Queries,
    /// Its order.
    pub order: &'a SortOrder,
    /// The document behind which the answer begins.
    pub cursor: Option<&'a CursorMark>,
    /// The ranges of its range facets, in their order.
    pub range_facets: &'a [RangeBuckets],
    /// For date math.
    pub now: Date,
    /// The partitions whose documents are found.
    pub partitions: &'a BTreeSet<u32>,
    /// Asked often. Once it is true, the answer is [`IndexError::TimedOut`](crate::IndexError).
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}
