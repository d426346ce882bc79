//! What documents are sorted by.

use super::limits::SORT_KEYS_MAX;
use super::request_error::{RequestError, RequestProblem, shown};

/// One key of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// What is compared.
    pub by: SortBy,
    /// Whether the largest comes first.
    pub is_descending: bool,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// How well a document fits the query.
    Score,
    /// The value of a field.
    Field(String),
}

/// The parameter, for errors.
const SORT: &str = "sort";

/// Lucene's number of a document, which differs from replica to replica.
const DOCUMENT_NUMBER: &str = "_docid_";

impl SortKey {
    /// Reads the parameter `sort`. A comma at its end is left out, as in Solr, and directions are
    /// read in any case. An empty list is Solr's default: the best score first.
    pub(super) fn read_list(text: &str) -> Result<Vec<Self>, RequestError> {
        let text = text.trim();
        let text = text.strip_suffix(',').unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        for part in text.split(',') {
            if keys.len() == SORT_KEYS_MAX {
                return Err(RequestProblem::TooMany { most: SORT_KEYS_MAX }.of(SORT));
            }
            keys.push(Self::read(part.trim()).map_err(|problem| problem.of(SORT))?);
        }
        Ok(keys)
    }

    fn read(text: &str) -> Result<Self, RequestProblem> {
        // The commas inside a function have split it.
        if text.contains(['(', ')', '{', '}']) {
            return Err(RequestProblem::NoSortField(shown(text)));
        }
        let mut words = text.split_whitespace();
        let (Some(name), Some(direction), None) = (words.next(), words.next(), words.next()) else {
            return Err(RequestProblem::NoOrder(shown(text)));
        };
        let is_descending = match direction.to_ascii_lowercase().as_str() {
            "asc" | "bottom" => false,
            "desc" | "top" => true,
            _ => return Err(RequestProblem::NoOrder(shown(text))),
        };
        let by = match name {
            DOCUMENT_NUMBER => return Err(RequestProblem::NoSortField(shown(name))),
            "score" => SortBy::Score,
            field => SortBy::Field(field.to_owned()),
        };
        Ok(Self { by, is_descending })
    }
}
