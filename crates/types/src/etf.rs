//! The part of Erlang's external term format that Riak's stored objects and clocks use
//! (docs/riak/backends.md §7.3).
//!
//! What it is: a decoder for untrusted bytes, an encoder, and the text that Erlang's `~p` gives a
//! term, in one line and in several, because clients match on such texts.
//!
//! What it is not: it has no processes, ports, references, functions or bit strings; the decoder
//! refuses their tags.
//!
//! Invariants: The decoder reads no byte twice, nests at most [`DEPTH_MAX`] deep, inflates at most
//! a given number of bytes, and creates at most a given number of terms. It never allocates memory
//! for a length before it has seen the bytes, and counts what it allocates.

mod decode;
mod encode;
mod error;
mod pretty;
mod text;

pub(crate) use decode::inflate;
pub use decode::{Limits, Visit, decode, decode_visiting, decode_with, decode_within};
pub use encode::{encode, encode_to};
pub use error::EtfError;
pub use pretty::Pretty;
pub use text::{AtomText, BinaryText, CharListText, StringText};

use bytes::Bytes;
use num_bigint::BigInt;

/// First byte of every external term.
pub const MAGIC: u8 = 131;

/// The maximum nesting of terms. Riak's most deeply nested term, a `dict` of siblings' metadata,
/// nests ten deep.
pub const DEPTH_MAX: usize = 64;

/// The maximum length of an integer, in bytes: the time to print an integer grows with the square
/// of its length.
pub const INTEGER_BYTES_MAX: usize = 4096;

/// An Erlang term.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// An integer that fits in 64 bits.
    Int(i64),
    /// An integer that does not fit in 64 bits.
    Big(BigInt),
    /// A float. It is finite, as all floats of Erlang are.
    Float(f64),
    /// An atom.
    Atom(Box<str>),
    /// A binary.
    Binary(Bytes),
    /// A non-empty list of at most 65,535 integers from 0 to 255: Erlang's strings, and lists that
    /// Erlang encodes like strings.
    String(Bytes),
    /// A tuple.
    Tuple(Vec<Self>),
    /// A proper list that is not a `String`.
    List(Vec<Self>),
    /// A list whose last tail is not a list: at least one element, and that tail.
    ImproperList(Vec<Self>, Box<Self>),
    /// A map, with its pairs in the encoded order.
    Map(Vec<(Self, Self)>),
}

/// The maximum length of a list that is encoded as a `String`.
pub(crate) const STRING_BYTES_MAX: usize = 65_535;

impl Term {
    /// Creates an atom.
    pub fn atom(name: &str) -> Self {
        Self::Atom(name.into())
    }

    /// Creates a binary.
    pub fn binary(bytes: &[u8]) -> Self {
        Self::Binary(Bytes::copy_from_slice(bytes))
    }

    /// Creates the empty list.
    pub const fn nil() -> Self {
        Self::List(Vec::new())
    }

    /// Creates the list of these bytes as integers.
    pub fn string(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            Self::nil()
        } else if bytes.len() <= STRING_BYTES_MAX {
            Self::String(Bytes::copy_from_slice(bytes))
        } else {
            Self::List(bytes.iter().map(|&b| Self::Int(i64::from(b))).collect())
        }
    }

    /// Creates the proper list of these elements. It is a `String` where possible, so that equal
    /// lists are equal terms.
    pub fn from_list(items: Vec<Self>) -> Self {
        if items.is_empty() || items.len() > STRING_BYTES_MAX {
            return Self::List(items);
        }
        match items.iter().map(Self::as_byte).collect::<Option<Vec<u8>>>() {
            Some(bytes) => Self::String(Bytes::from(bytes)),
            None => Self::List(items),
        }
    }

    /// Creates a pair.
    pub fn pair(a: Self, b: Self) -> Self {
        Self::Tuple(vec![a, b])
    }

    /// The bytes of a binary, or of a list of integers from 0 to 255. These are the two forms in
    /// which Erlang programs store text.
    pub fn as_text(&self) -> Option<Bytes> {
        match self {
            Self::Binary(bytes) | Self::String(bytes) => Some(bytes.clone()),
            Self::List(items) => items.iter().map(Self::as_byte).collect::<Option<Vec<u8>>>().map(Bytes::from),
            _ => None,
        }
    }

    /// The elements of a proper list; `None` for a `String`, which has no element terms to borrow.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The elements of a proper list, also of a `String`.
    pub fn into_list(self) -> Option<Vec<Self>> {
        match self {
            Self::List(items) => Some(items),
            Self::String(bytes) => Some(bytes.iter().map(|&byte| Self::Int(i64::from(byte))).collect()),
            _ => None,
        }
    }

    /// The elements of a tuple with `N` elements.
    pub fn as_tuple<const N: usize>(&self) -> Option<&[Self; N]> {
        match self {
            Self::Tuple(items) => items.as_slice().try_into().ok(),
            _ => None,
        }
    }

    /// The number, if it is an integer from 0 to 2^64 - 1.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Int(n) => u64::try_from(*n).ok(),
            Self::Big(n) => u64::try_from(n).ok(),
            _ => None,
        }
    }

    /// The name of an atom.
    pub fn as_atom(&self) -> Option<&str> {
        match self {
            Self::Atom(name) => Some(name),
            _ => None,
        }
    }

    fn as_byte(&self) -> Option<u8> {
        match self {
            Self::Int(n) => u8::try_from(*n).ok(),
            _ => None,
        }
    }
}

impl From<u64> for Term {
    fn from(n: u64) -> Self {
        i64::try_from(n).map_or_else(|_| Self::Big(BigInt::from(n)), Self::Int)
    }
}

impl From<BigInt> for Term {
    fn from(n: BigInt) -> Self {
        i64::try_from(&n).map_or(Self::Big(n), Self::Int)
    }
}

#[cfg(test)]
mod tests;
