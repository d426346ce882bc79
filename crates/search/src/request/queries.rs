//! The queries of a search, read.

use super::request_error::{RequestError, RequestProblem};
use super::search_request::SearchRequest;
use crate::query::{Query, Reader};
use crate::schema::Schema;

/// The queries of a search, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Queries {
    /// What documents are found and how they are scored; `None` finds nothing.
    pub query: Option<Query>,
    /// What all of them must be in too.
    pub filters: Vec<Query>,
    /// The queries of facets, in the order of the request.
    pub facets: Vec<Query>,
}

impl SearchRequest {
    /// Reads the queries. The field and the operator of the schema count where the request has
    /// none.
    ///
    /// # Errors
    /// A text is no query; the error names its parameter and the place in the text.
    pub fn read_queries(&self, schema: &Schema) -> Result<Queries, RequestError> {
        let reader = Reader {
            default_field: self.default_field.as_deref().or(schema.default_search_field.as_deref()),
            operator: self.operator.unwrap_or(schema.default_operator),
        };
        let read = |parameter: &str, text: &String| {
            reader.read(text).map_err(|error| RequestProblem::Query(error).of(parameter))
        };
        let facets = self.facets.as_ref().map(|facets| facets.queries.as_slice()).unwrap_or_default();
        Ok(Queries {
            query: self.query.as_ref().map(|text| read("q", text)).transpose()?,
            filters: self.filters.iter().map(|text| read("fq", text)).collect::<Result<_, _>>()?,
            facets: facets.iter().map(|text| read("facet.query", text)).collect::<Result<_, _>>()?,
        })
    }
}
