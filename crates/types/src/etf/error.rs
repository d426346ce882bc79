//! Why bytes are not a term.

use super::DEPTH_MAX;
use crate::decode_budget::TooLarge;

/// Why bytes are not a term.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EtfError {
    /// The first byte is not 131.
    #[error("the first byte is not 131")]
    NoMagic,
    /// A length exceeds the remaining bytes.
    #[error("cut short")]
    CutShort,
    /// Bytes follow the term.
    #[error("bytes after the end")]
    TrailingBytes,
    /// A kind of term that stored data never holds, or an invalid tag.
    #[error("unknown tag {0}")]
    UnknownTag(u8),
    /// Lists and tuples nest deeper than [`super::Limits::depth_max`], which is usually
    /// [`DEPTH_MAX`].
    #[error("nested deeper than {DEPTH_MAX}")]
    TooDeep,
    /// There are more terms than [`super::Limits::terms_max`].
    #[error("too many terms")]
    TooManyTerms,
    /// A compressed term is larger than [`super::Limits::inflated_bytes_max`].
    #[error("too large when inflated")]
    TooLarge,
    /// A compressed term does not inflate to its stated size.
    #[error("bad compression")]
    BadCompression,
    /// An atom is not a text or is longer than 255 characters.
    #[error("bad atom")]
    BadAtom,
    /// A float is not finite, or an integer has more than [`super::INTEGER_BYTES_MAX`].
    #[error("bad number")]
    BadNumber,
    /// The terms would take more memory than the budget has.
    #[error("{0}: many small terms take many times their encoded bytes, so send fewer of them at once")]
    OverBudget(#[from] TooLarge),
}
