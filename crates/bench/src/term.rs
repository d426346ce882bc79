//! Erlang terms as they are written in configuration files.
//!
//! What it is: the literal terms that `file:consult/1` reads, with their places in the file, and how they are written.
//!
//! What it is not: maps, funs, process identifiers and sized segments of binaries are no part of a configuration and are
//! refused by name; nothing is evaluated.
//!
//! Invariants: reading never panics and nests at most [`DEPTH_MAX`] deep; what was read and is written reads the same.

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
    /// `42`, `16#2a`, `$a`. Beyond 127 bits is refused.
    Integer(i128),
    /// `1.5`, `1.0e-3`.
    Float(f64),
    /// `get`, `'quoted atom'`.
    Atom(String),
    /// `"text"`: to Erlang the list of its characters.
    Text(String),
    /// `<<"bytes">>`, `<<1,2,3>>`.
    Binary(Vec<u8>),
    /// `{a, b}`.
    Tuple(Vec<Term>),
    /// `[a, b]`.
    List(Vec<Term>),
}

impl Term {
    /// An atom.
    pub fn atom(name: impl Into<String>) -> Self {
        Self::Atom(name.into())
    }

    /// A string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Reads one term; the full stop after it may be left out.
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

    /// The elements, if it is a list. `""` is the empty list; other strings are not taken apart.
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(elements) => Some(elements),
            Self::Text(text) if text.is_empty() => Some(&[]),
            _ => None,
        }
    }

    /// The text, if it is a string or what is the same to Erlang: a list of characters.
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
