//! Why a value has nothing for an index.

use super::limits::{NAME_BYTES_MAX, PAIRS_MAX, TAGS_MAX, VALUE_BYTES_MAX};
use crate::xml::BadXml;
use ombak_types::json::BadJson;

/// A value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// It is not JSON.
    #[error("no JSON: {0}")]
    Json(BadJson),
    /// It is not XML.
    #[error("no XML: {0}")]
    Xml(#[from] BadXml),
    /// A text is not UTF-8.
    #[error("a text is not in UTF-8")]
    NotUtf8,
    /// The value is too long.
    #[error("a value with an index has at most {VALUE_BYTES_MAX} bytes")]
    TooLong,
    /// The value has too many pairs.
    #[error("a value with an index has at most {PAIRS_MAX} values inside it")]
    TooMany,
    /// A name is too long.
    #[error("a name has at most {NAME_BYTES_MAX} bytes, with those of what lies around it")]
    NameTooLong,
    /// Too many tags.
    #[error("an object has at most {TAGS_MAX} tags")]
    TooManyTags,
}
