//! Classes of work that no get or put of a client waits for, as Riak has them
//! (docs/riak/semantics.md §4).

/// What a piece of work is for. Classes do not wait for each other's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkClass {
    /// Index queries. Their clients often wait for one short page.
    IndexQuery,
    /// Walks over all keys of a partition: exchanges, hand-backs, filling.
    Walk,
    /// Listings of keys and buckets.
    Listing,
    /// Folds that gather trees and clocks, for comparisons with another cluster.
    Comparison,
    /// All other folds.
    Operation,
    /// Questions to features, such as searches. Riak has no such class.
    Feature,
}
