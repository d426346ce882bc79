//! The answer of a search.

use super::document::Document;
use crate::request::{Echo, Gap};
use crate::values::Value;

/// The answer of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAnswer {
    /// What it tells about the request; `None` if the request does not want it.
    pub header: Option<Header>,
    /// How many documents were found, with those that are not told.
    pub found_count: u64,
    /// How many documents come before the first one that is told.
    pub start: usize,
    /// The best score, if the request needs scores. It is 0 if nothing was found.
    pub score_max: Option<f32>,
    /// The documents that are told.
    pub documents: Vec<Document>,
    /// What the next request of a cursor says.
    pub next_cursor_mark: Option<String>,
    /// Counts beside the documents.
    pub facets: Option<FacetCounts>,
}

/// What an answer tells about its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// How long the search took.
    pub time_ms: u64,
    /// Whether something is missing, because it was not found in time.
    pub is_partial: bool,
    /// The parameters of the request; `None` for no list.
    pub echo: Option<Echo>,
}

/// Counts beside the documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FacetCounts {
    /// The texts of queries, and how many documents are in each.
    pub queries: Vec<(String, u64)>,
    /// Fields, with their values.
    pub fields: Vec<FieldCounts>,
    /// Fields, with ranges of their values.
    pub ranges: Vec<RangeCounts>,
}

/// Values of a field, and how many documents have each.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCounts {
    /// The field.
    pub field: String,
    /// The values in the order in which they are told.
    pub counts: Vec<(Value, u64)>,
}

/// Ranges of a field, and how many documents have a value in each.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeCounts {
    /// The field.
    pub field: String,
    /// Where each range begins.
    pub counts: Vec<(Value, u64)>,
    /// How long a range is.
    pub gap: Gap,
    /// Where the first range begins, even if it is not told.
    pub start: Value,
    /// Where the last range ends.
    pub end: Value,
}
