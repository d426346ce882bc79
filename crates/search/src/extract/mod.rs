//! What a value has for an index: pairs of names and values.
//!
//! ```text
//!  value, media type --extract--> pairs          metadata --tags--> more pairs
//! ```
//!
//! What it is: Riak's extractors for JSON, XML, text and data types, and its tags.
//!
//! What it is not: it knows no schema; [`crate::values`] gives the pairs their fields. It cannot be
//! extended by clients, and knows no other encoding of characters than UTF-8.
//!
//! Invariants:
//! * A value gives all its pairs or an error. The document of a value with an error has the field
//!   [`ERR_FIELD`] with [`ERR_VALUE`], and nothing of the value.
//! * Pairs are in the order of the value. (Riak's are in another one.)
//! * Everything is bounded ([`limits`]).

mod data_type;
mod error;
mod extractor;
mod json;
pub mod limits;
mod pair;
mod tags;
mod xml;

pub use data_type::{DataTypeValue, extract_data_type};
pub use error::ExtractError;
pub use extractor::Extractor;
pub use pair::{Extracted, Pair};
pub use tags::extract_tags;

/// The field that says that a value could not be read.
pub const ERR_FIELD: &str = "_yz_err";

/// The value of that field.
pub const ERR_VALUE: &str = "1";
