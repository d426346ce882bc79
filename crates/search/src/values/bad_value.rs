//! Why a value does not fit its field.

use super::document::{DOCUMENT_BYTES_MAX, DOCUMENT_VALUES_MAX};
use super::value::STRING_BYTES_MAX;
use crate::dates::BadDate;

/// A value does not fit its field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// No integer of 32 bits.
    #[error("an integer from -2147483648 to 2147483647 is needed")]
    Int,
    /// No integer of 64 bits.
    #[error("an integer from -9223372036854775808 to 9223372036854775807 is needed")]
    Long,
    /// No number.
    #[error("a number is needed, such as 1, -2.5 or 3e8")]
    Number,
    /// No date.
    #[error(transparent)]
    Date(#[from] BadDate),
    /// No base64.
    #[error("bytes in base64 are needed")]
    Bytes,
    /// No place.
    #[error("a latitude and a longitude are needed, such as 52.5,13.4")]
    Place,
    /// A string that is searched is too long.
    #[error("a string that is searched has at most {STRING_BYTES_MAX} bytes")]
    TooLong,
}

/// Values cannot be the fields of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// A value does not fit its field.
    #[error("field {field}: {reason}")]
    Value {
        /// The name of the field.
        field: String,
        /// Why.
        reason: BadValue,
    },
    /// A name is no field, and no dynamic field has its form.
    #[error("the schema has no field {0}")]
    UnknownField(String),
    /// A field has several values, and is not multi-valued.
    #[error("field {0} has several values and is not multi-valued")]
    SeveralValues(String),
    /// A field that is required has no value.
    #[error("field {0} is required")]
    Missing(String),
    /// A value has the name of a field that Riak fills.
    #[error("field {0} is Riak's own")]
    Reserved(String),
    /// There are too many values.
    #[error(
        "a document has at most {DOCUMENT_VALUES_MAX} values and {DOCUMENT_BYTES_MAX} bytes of names and values, with \
         copies"
    )]
    TooLarge,
}
