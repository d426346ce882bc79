//! The answers of several nodes, merged into one.
//!
//! ```text
//!  SearchRequest, Schema --> SortOrder --------------+
//!  cursorMark -------------> CursorMark -------------+
//!                                                    v
//!  node: PartAnswer (first start + rows hits) --> Merge::answer --> SearchAnswer
//!  node: PartAnswer ------------------------------^
//! ```
//!
//! What it is: the order of documents ([`SortOrder`]), the place of a cursor in it
//! ([`CursorMark`]), and the answer that parts make together ([`Merge`]).
//!
//! What it is not: it asks no node, and does not know which partitions a part is of.
//!
//! Invariants:
//! * No two documents are equal in an order: where all keys are, the smaller unique key comes
//!   first. (Solr then takes the node's name and Lucene's number, which differ from replica to
//!   replica.)
//! * The parts of a set of documents make the answer of the whole set, however it is divided and in
//!   whichever order they come. Each part gives its first `start + rows` hits, and all of its
//!   values of facets.
//! * A document that several parts have is told once, where its first hit is. It is counted once if
//!   its hits are among those that the parts give; otherwise, and in facets, once for each part. Of
//!   hits that are equal in the order, that of the first part is told.

#[cfg(test)]
mod cases;
mod cursor_mark;
mod facets;
mod merger;
mod part_answer;
mod part_answer_bytes;
mod sort_order;
mod value_order;

pub use cursor_mark::CursorMark;
pub use facets::FACET_VALUES_MAX;
pub use merger::{Merge, MergeError};
pub use part_answer::{Hit, PartAnswer, PartFacets};
pub use part_answer_bytes::BadPartAnswer;
pub use sort_order::{Missing, OrderKey, SortKind, SortOrder};
pub use value_order::compare_values;
