//! Values of fields.
//!
//! ```text
//!  pairs --field of the name--> typed values --copies--> document
//! ```
//!
//! What it is: the value that a text or boolean is in a field ([`value_of`]), and the fields of a
//! document ([`DocumentFields`]), and values as bytes ([`write_value`]).
//!
//! What it is not: text is not split into terms here.
//!
//! Invariants:
//! * A document has all its values, or it is an error, as in Solr. The document of an object with
//!   such an error has `_yz_err` and nothing of the value.
//! * A field that is not multi-valued has one value at most.
//! * Values of clients are never in the fields that Riak needs.

mod bad_value;
mod document;
mod value;
mod value_bytes;

pub use bad_value::{BadDocument, BadValue};
pub use document::{DOCUMENT_BYTES_MAX, DOCUMENT_VALUES_MAX, DocumentFields};
pub use value::{STRING_BYTES_MAX, Value, value_of};
pub use value_bytes::{read_text, read_value, take, write_text, write_value};
