//! The rules of full-text search, as Riak Search 2 has them (docs/riak/semantics.md §10).
//!
//! ```text
//!  text of a query --query----------------> tree of a query
//!  Solr's XML ------schema----------------> fields by name
//!  stored value ----extract--> pairs -----> values of the fields of a document
//!  parameters ------request--> what a search asks for
//!  answers of nodes --merge--> one answer --answer--> JSON, XML or pairs
//! ```
//!
//! What it is: queries in the syntax of Lucene's classic parser ([`query`]), Solr's dates with
//! their arithmetic ([`dates`]), Solr's schemas ([`schema`]), what stored values have for an index
//! ([`extract`]), what that is in the fields of a schema ([`values`]), the unique keys of documents
//! ([`document_id`]), what a search asks for ([`request`]), the answers of several nodes as one
//! ([`merge`]), and the texts of answers ([`answer`]).
//!
//! What it is not: it has no I/O, no clock and no randomness, keeps no index and analyses no text.
//! Whoever needs the time gives it. It is not attached yet: no crate uses it.
//!
//! Invariants:
//! * Queries, schemas and values are not trusted. Every length, number and nesting is bounded, and
//!   the bound is in the error.
//! * An error of a query or a schema says where it is and what would be right.
//! * A value gives all fields that it has, or an error and no field.
//! * The same documents make the same answer, on whichever nodes they lie.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod answer;
pub mod dates;
pub mod document_id;
pub mod extract;
pub mod merge;
pub mod query;
pub mod request;
pub mod schema;
pub mod values;
mod xml;

pub use xml::BadXml;
