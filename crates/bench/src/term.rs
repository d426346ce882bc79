//! Erlang terms as they are written in configuration files.
//!
//! What it is: the literal terms that `file:consult/1` reads, with their positions in the file, and
//! the way to write them.
//!
//! What it is not: maps, funs, process identifiers and binary segments with sizes do not belong
//! into a configuration and are refused by name. Nothing is evaluated.
//!
//! Invariants: reading never panics and nests at most [`DEPTH_MAX`] deep. A term that was written
//! reads back as the same term.

mod cursor;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{DEPTH_MAX, Placed, SyntaxError, read};

use std::borrow::Cow;

/// An Erlang term.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// An integer such as `42`, `16#2a` or `$a`. Integers of more than 127 bits are refused.
    Integer(i128),
    /// A float such as `1.5` or `1.0e-3`.
    Float(f64),
    /// An atom such as `get` or `'quoted atom'`.
    Atom(String),
    /// A string such as `"text"`. In Erlang it is the list of its characters.
    Text(String),
    /// A binary such as `<<"bytes">>` or `<<1,2,3>>`.
    Binary(Vec<u8>),
    /// A tuple such as `{a, b}`.
    Tuple(Vec<Term>),
    /// A list such as `[a, b]`.
    List(Vec<Term>),
}

impl Term {
    /// Creates an atom.
    pub fn atom(name: impl Into<String>) -> Self {
        Self::Atom(name.into())
    }

    /// Creates a string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Parses one term. The full stop after it is optional.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        reader::read_one(text)
    }

    /// The name, if it is an atom.
    pub fn as_atom(&self) -> Option<&str> {
        match self {
            Self::Atom(name) => Some(name),
            _ => None,
        }
    }

    /// The number, if it is an integer.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The number, if it is an integer or a float.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[Self]> {
        match self {
            Self::Tuple(elements) => Some(elements),
            _ => None,
        }
    }

    /// The elements, if it is a list. `""` is the empty list; other strings are not split into
    /// characters.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(elements) => Some(elements),
            Self::Text(text) if text.is_empty() => Some(&[]),
            _ => None,
        }
    }

    /// The text, if it is a string or a list of characters, which is the same in Erlang.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::List(elements) => {
                let character = |element: &Self| char::from_u32(u32::try_from(element.as_integer()?).ok()?);
                elements.iter().map(character).collect::<Option<String>>().map(Cow::Owned)
            }
            _ => None,
        }
    }

    /// The bytes, if it is a binary.
    pub fn as_binary(&self) -> Option<&[u8]> {
        match self {
            Self::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }
}
