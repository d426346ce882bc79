//! What a search asks for: the parameters of Solr, and the message of Protocol Buffers.
//!
//! ```text
//!  (name, value) pairs --read------> SearchRequest --read_queries--> trees of the queries
//!  SearchMessage -------of_message-^       |
//!                                          +--RangeFacet::buckets--> bounds of a range facet
//! ```
//!
//! What it is: one typed request ([`SearchRequest`]) out of the parameters, with Solr's defaults.
//!
//! What it is not: it decodes no URL and no message, and does not know which fields an index has.
//! What needs the schema is asked for with it.
//!
//! Invariants:
//! * A parameter has its effect, is known to change nothing that counts, or is an error that names
//!   it. Solr ignores parameters that it does not know.
//! * A parameter that Solr reads once may be repeated with the same value only. (Solr takes the
//!   first one.)
//! * Everything is bounded ([`limits`]), and the bound is in the error.

#[cfg(test)]
mod cases;
mod facet_request;
mod field_list;
pub mod limits;
mod other_parameters;
mod parameters;
mod queries;
mod range_buckets;
mod request_error;
mod search_message;
mod search_request;
mod sort_key;

pub use facet_request::{FacetOrder, FacetRequest, FieldFacet, RangeFacet};
pub use field_list::FieldList;
pub use queries::Queries;
pub use range_buckets::{Gap, RangeBuckets};
pub(crate) use request_error::shown;
pub use request_error::{RequestError, RequestProblem};
pub use search_message::SearchMessage;
pub use search_request::{Echo, Format, SearchRequest};
pub use sort_key::{SortBy, SortKey};
