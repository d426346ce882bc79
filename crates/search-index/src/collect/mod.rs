//! What is collected of the documents that a query finds: the first ones in an order, and counts.
//!
//! ```text
//!  document, score --SegmentOrder--> keys that compare as numbers --Top--> the first ones of a segment
//!                  --FacetCounter--> counts of values, ranges and queries
//!  first ones of all segments --Told--> hits with their fields
//! ```
//!
//! Invariants:
//! * The order is that of `ombak_search::merge::SortOrder`. Inside a segment strings are compared
//!   by their numbers in the column, which have the order of the strings.
//! * Memory is bounded: by the window of the search for documents, by
//!   [`FACET_VALUES_MAX`](ombak_search::merge::FACET_VALUES_MAX) for values, and for fields by
//!   [`TOLD_BYTES_MAX`](crate::limits::TOLD_BYTES_MAX).

mod facet_counter;
mod field_counts;
mod segment_order;
mod told;
mod top;

pub(crate) use facet_counter::FacetCounter;
pub(crate) use segment_order::SegmentOrder;
pub(crate) use told::Told;
pub(crate) use top::{SegmentTop, Top};
