//! The queries of a search, carried out.
//!
//! ```text
//!  tree of a query --Resolver: fields, values, analysis--> Plan (once a search)
//!  Plan --Execution: terms and columns of a segment------> query of the library (once a segment)
//! ```
//!
//! What it is: the meaning of each node of the tree, as Lucene and Solr 4 have it.
//!
//! What it is not: texts of queries are parsed elsewhere (`ombak_search::query`), and documents are
//! sorted and counted elsewhere ([`collect`](crate::collect)).
//!
//! Invariants:
//! * A field that the schema does not have, and a value that does not fit its field, is an error. A
//!   field that is not indexed has no terms, so nothing is found in it.
//! * Whatever looks at many terms or documents asks whether the time is over.
//! * The terms of patterns, and the memory for sets of documents, are bounded ([`limits`]).

mod execution;
mod found_documents;
mod fuzzy;
pub mod limits;
mod matcher;
mod phrase;
mod plan;
mod resolver;

pub(crate) use execution::Execution;
pub(crate) use plan::Plan;
pub(crate) use resolver::Resolver;
