//! The index of a node for one search index: documents on disk, and the queries over them.
//!
//! ```text
//!  IndexChange --documents: terms, columns, stored fields--> writer --commit with a place--> files
//!  Question ----query: plan -> set of documents-----------> collect: order, counts, fields --> PartAnswer
//! ```
//!
//! What it is: [`Index`], one directory with the documents that a node has of one search index. It
//! knows the rules of `ombak_search`, and the library (tantivy) that keeps terms and columns.
//!
//! What it is not: it reads no feed, extracts no values, asks no other node and merges no answers.
//!
//! # Layout
//!
//! A schema has dynamic fields, and the library has a fixed number of fields. So a document has
//! these, whatever its schema is:
//!
//! | field | what it has |
//! | --- | --- |
//! | `exact` | terms without positions. `v`, the name of the field, 0 and the value: a string as it is, `T` or `F`, or 16 digits of a number or date that sort as it does. And `n` and the name for each field with a value |
//! | `words` | terms of texts with positions: `v`, the name, 0 and the term. Each field counts its positions from 0 |
//! | `columns` | a column for each name: the string, or the number, date or boolean as an integer that sorts as it does. Documents are sorted and counted by columns, and ranges read them |
//! | `stored` | the fields that answers tell, in their order |
//! | `key`, `partition`, `generation` | what changes name |
//! | `expires` | the last second in which the document is found |
//!
//! Names are escaped, so that no name reaches into another field.
//!
//! Invariants:
//! * A commit has all changes of a write and its place, or none of it is there.
//! * All writers of a node share one [`WriterPool`]. One merge of an open writer runs at a time.
//! * Damage is [`IndexError::Damaged`], at the opening or in the call that meets it, and no panic.
//! * What a search costs is bounded, and an error says the bound. A search ends soon after its
//!   `is_over` says so.
//! * Sets of documents and their order are those of Lucene; scores can differ.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod analysis;
mod analyzers;
mod answering;
mod change;
mod collect;
mod document;
mod encoded_terms;
mod error;
mod figures;
mod index;
mod layout;
mod merges;
mod opening;
mod query;
mod question;
mod stored_fields;
mod writer_pool;

#[cfg(test)]
mod cases;

pub use analysis::analysis_notes;
pub use change::{IndexChange, IndexDocument};
pub use error::IndexError;
pub use figures::Figures;
pub use index::{Index, Written};
pub use query::limits;
pub use question::Question;
pub use writer_pool::{WRITERS_BYTES_DEFAULT, WriterPool};
