//! The answer of a node.

use crate::answer::Document;
use crate::values::Value;

/// The answer of a node, of the partitions that it was asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartAnswer {
    /// How many documents were found, with those before a cursor.
    pub found_count: u64,
    /// The best score, if the request needs scores and something was found.
    pub score_max: Option<f32>,
    /// The first hits, as many as the answer could have of this part alone: `start + rows`. With a
    /// cursor, those behind its document.
    pub hits: Vec<Hit>,
    /// Counts of facets, if the request has facets.
    pub facets: Option<PartFacets>,
    /// Whether something is missing, because it was not found in time.
    pub is_partial: bool,
}

/// A document that was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hit {
    /// The unique key (`_yz_id`).
    pub id: String,
    /// The values of the keys of the order; `None` for a missing one. A score is a
    /// [`Value::Float`].
    pub sort_values: Vec<Option<Value>>,
    /// What is told.
    pub document: Document,
}

/// Counts of facets, in the order of the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartFacets {
    /// For each query, how many documents are in it.
    pub queries: Vec<u64>,
    /// For each field, all its values and how many documents have each, in any order and without
    /// regard to the limits of the request.
    pub fields: Vec<Vec<(Value, u64)>>,
    /// For each field with ranges, how many documents are in each range.
    pub ranges: Vec<Vec<u64>>,
}
