//! Erlang's external term format, as much of it as Riak's stored objects and clocks use (docs/riak/backends.md §7.3).
//!
//! What it is: a decoder for bytes that nobody vouches for, an encoder, and the text form that Erlang's `~p` gives a
//! term on one line, because clients match on such texts.
//!
//! What it is not: it knows no processes, ports, references, functions or bit strings; they are refused by their tag.
//!
//! Invariants: decoding looks at no byte twice, nests at most [`DEPTH_MAX`] deep, inflates at most a given number of
//! bytes, makes at most a given number of terms, and never allocates for a length before the bytes are seen.

mod decode;
mod encode;
mod text;

pub(crate) use decode::inflate;
pub use decode::{EtfError, Limits, decode, decode_with};
pub use encode::{encode, encode_to};
pub use text::{AtomText, BinaryText, StringText};

use bytes::Bytes;
use num_bigint::BigInt;

/// First byte of every external term.
pub const MAGIC: u8 = 131;

/// How deep terms may nest. Riak's deepest, a `dict` of siblings' metadata, nests ten deep.
pub const DEPTH_MAX: usize = 64;

/// The largest integer that is taken, in bytes: printing one takes time that grows with the square of its length.
pub const INTEGER_BYTES_MAX: usize = 4096;

/// An Erlang term.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// An integer that fits.
    Int(i64),
    /// An integer that does not fit in 64 bits.
    Big(BigInt),
    /// A float; finite, as all of Erlang's.
    Float(f64),
    /// An atom.
    Atom(Box<str>),
    /// A binary.
    Binary(Bytes),
    /// A list of integers from 0 to 255, not empty and at most 65,535 long: Erlang's strings, and what it packs like one.
    String(Bytes),
    /// A tuple.
    Tuple(Vec<Self>),
    /// A proper list that is no `String`.
    List(Vec<Self>),
    /// A list whose last tail is no list: the elements, at least one, and that tail.
    ImproperList(Vec<Self>, Box<Self>),
    /// A map, in the order in which it was encoded.
    Map(Vec<(Self, Self)>),
}

/// The longest list that is encoded as a `String`.
pub const STRING_BYTES_MAX: usize = 65_535;

impl Term {
    /// An atom.
    pub fn atom(name: &str) -> Self {
        Self::Atom(name.into())
    }

    /// A binary.
    pub fn binary(bytes: &[u8]) -> Self {
        Self::Binary(Bytes::copy_from_slice(bytes))
    }

    /// The empty list.
    pub const fn nil() -> Self {
        Self::List(Vec::new())
    }

    /// The list of these bytes as integers.
    pub fn string(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            Self::nil()
        } else if bytes.len() <= STRING_BYTES_MAX {
            Self::String(Bytes::copy_from_slice(bytes))
        } else {
            Self::List(bytes.iter().map(|&b| Self::Int(i64::from(b))).collect())
        }
    }

    /// The proper list of these elements: a `String` if it can be one, so that equal lists are equal terms.
    pub fn from_list(items: Vec<Self>) -> Self {
        if items.is_empty() || items.len() > STRING_BYTES_MAX {
            return Self::List(items);
        }
        match items.iter().map(Self::as_byte).collect::<Option<Vec<u8>>>() {
            Some(bytes) => Self::String(Bytes::from(bytes)),
            None => Self::List(items),
        }
    }

    /// A pair.
    pub fn pair(a: Self, b: Self) -> Self {
        Self::Tuple(vec![a, b])
    }

    /// The bytes of a binary, or of a list of integers from 0 to 255: the two forms in which Erlang programs keep text.
    pub fn as_text(&self) -> Option<Bytes> {
        match self {
            Self::Binary(bytes) | Self::String(bytes) => Some(bytes.clone()),
            Self::List(items) => items.iter().map(Self::as_byte).collect::<Option<Vec<u8>>>().map(Bytes::from),
            _ => None,
        }
    }

    /// The elements of a proper list, where a `String` has none to borrow.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The elements of a tuple of this many.
    pub fn as_tuple<const N: usize>(&self) -> Option<&[Self; N]> {
        match self {
            Self::Tuple(items) => items.as_slice().try_into().ok(),
            _ => None,
        }
    }

    /// The number, if it is one from 0 to 2^64 - 1.
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
