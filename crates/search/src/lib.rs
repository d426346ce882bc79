//! The rules of full-text search, as Riak Search 2 has them (docs/riak/semantics.md §10).
//!
//! What it is: queries in the syntax of Lucene's classic parser ([`query`]), Solr's dates with their
//! arithmetic ([`dates`]), and Solr's schemas ([`schema`]).
//!
//! What it is not: it has no I/O, no clock and no randomness, keeps no index and analyses no text.
//! Whoever needs the time gives it. It is not attached yet: no crate uses it.
//!
//! Invariants:
//! * Queries and schemas are not trusted: every length, number and nesting is bounded, and the bound is in the
//!   error.
//! * An error says where it is and what would be right.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod dates;
pub mod query;
pub mod schema;
mod xml;

pub use xml::BadXml;
