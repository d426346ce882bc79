//! Why requests and bytes are refused.

use crate::field::Field;
use crate::map::MAP_DEPTH_MAX;
use bytes::Bytes;
use ombak_types::etf::{BinaryText, EtfError};
use std::fmt;

/// What a removal without a context did not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// A member of a set.
    Member(Bytes),
    /// A field of a map.
    Field(Field),
}

/// Why an operation is refused. Nothing of its request is applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A removal without a context names what is not present. The text is the one that Riak's
    /// clients match on.
    #[error("{{precondition,{{not_present,{0}}}}}")]
    NotPresent(Absent),
    /// An operation does not fit the type of the value or the field.
    #[error("the operation does not fit the type")]
    WrongType,
    /// Maps nest deeper than is supported.
    #[error("maps nest deeper than {MAP_DEPTH_MAX}")]
    TooDeep,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(member) => BinaryText(member).fmt(f),
            Self::Field(field) => field.fmt(f),
        }
    }
}

/// A delta cannot be merged, because the state has not seen what the delta builds on. A delta was
/// lost or is late: the whole state is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state has not seen what the delta builds on")]
pub struct MissingPast;

/// Why a state does not take another state or a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotMerge {
    /// They are of different data types.
    #[error("of another data type")]
    WrongType,
    /// A delta builds on what the state has not seen.
    #[error(transparent)]
    MissingPast(#[from] MissingPast),
}

/// Why bytes are not a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBytes {
    /// The bytes end too early, or a length exceeds them.
    #[error("cut short")]
    CutShort,
    /// Bytes follow the value.
    #[error("bytes after the end")]
    TrailingBytes,
    /// The first byte is not the one of a data type.
    #[error("not a data type")]
    NotADataType,
    /// The type is not known.
    #[error("unknown data type")]
    UnknownType,
    /// The type is known, but not its version.
    #[error("unknown version {0}")]
    UnknownVersion(u8),
    /// An external term does not decode.
    #[error("bad term: {0}")]
    BadTerm(#[from] EtfError),
    /// A term is not what its type stores there. The text names it.
    #[error("not a {0}")]
    Unexpected(&'static str),
    /// A number is larger than any that a value reaches.
    #[error("number too large")]
    TooLarge,
    /// Maps nest deeper than is supported.
    #[error("nested too deep")]
    TooDeep,
}
