//! Terms with their lengths in one line, and that line.

use crate::etf::text::is_printable;
use crate::etf::{BinaryText, Term};
use std::fmt::{self, Write};

/// A term with the number of characters that it takes in one line.
pub(super) struct Node {
    pub(super) shape: Shape,
    pub(super) len: isize,
}

pub(super) enum Shape {
    /// What is never divided.
    Whole(String),
    /// The numbers of a binary that is no text.
    Bytes(Vec<u8>),
    /// The elements, and the tail of an improper list.
    List(Vec<Node>, Option<Box<Node>>),
    Tuple {
        items: Vec<Node>,
        /// Whether the first element of several is an atom.
        is_tagged: bool,
    },
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(super) fn of(term: &Term) -> Self {
        match term {
            Term::Binary(bytes) if !bytes.is_empty() && !is_printable(bytes) => Self {
                len: 4 + bytes.iter().map(|byte| digits(*byte) + 1).sum::<isize>() - 1,
                shape: Shape::Bytes(bytes.to_vec()),
            },
            Term::String(bytes) if !is_printable(bytes) => {
                Self::list(bytes.iter().map(|byte| Self::whole(byte.to_string())).collect(), None)
            }
            Term::List(items) if !items.is_empty() => Self::list(items.iter().map(Self::of).collect(), None),
            Term::ImproperList(items, tail) => {
                Self::list(items.iter().map(Self::of).collect(), Some(Box::new(Self::of(tail))))
            }
            Term::Tuple(items) if !items.is_empty() => {
                let is_tagged = items.len() > 1 && items[0].as_atom().is_some();
                let items: Vec<Self> = items.iter().map(Self::of).collect();
                Self { len: 2 + with_commas(&items), shape: Shape::Tuple { items, is_tagged } }
            }
            Term::Map(pairs) if !pairs.is_empty() => {
                let pairs: Vec<_> = pairs.iter().map(|(key, value)| (Self::of(key), Self::of(value))).collect();
                let len = pairs.iter().map(|pair| len_of_pair(pair) + 1).sum::<isize>() - 1;
                Self { len: 3 + len, shape: Shape::Map(pairs) }
            }
            whole => Self::whole(whole.to_string()),
        }
    }

    fn whole(text: String) -> Self {
        Self { len: text.chars().count() as isize, shape: Shape::Whole(text) }
    }

    fn list(items: Vec<Self>, tail: Option<Box<Self>>) -> Self {
        let len = 2 + with_commas(&items) + tail.as_ref().map_or(0, |tail| 1 + tail.len);
        Self { shape: Shape::List(items, tail), len }
    }

    pub(super) const fn is_whole(&self) -> bool {
        matches!(self.shape, Shape::Whole(_))
    }
}

/// The length of a byte in decimal digits.
pub(super) const fn digits(byte: u8) -> isize {
    match byte {
        0..=9 => 1,
        10..=99 => 2,
        _ => 3,
    }
}

fn with_commas(items: &[Node]) -> isize {
    items.iter().map(|item| item.len + 1).sum::<isize>() - 1
}

/// The length of a pair of a map in one line.
pub(super) fn len_of_pair((key, value): &(Node, Node)) -> isize {
    key.len + 4 + value.len
}

/// Writes a term in one line.
pub(super) fn line(node: &Node, out: &mut dyn Write) -> fmt::Result {
    match &node.shape {
        Shape::Whole(text) => out.write_str(text),
        Shape::Bytes(bytes) => write!(out, "{}", BinaryText(bytes)),
        Shape::List(items, tail) => {
            out.write_char('[')?;
            line_of_all(items, out)?;
            if let Some(tail) = tail {
                out.write_char('|')?;
                line(tail, out)?;
            }
            out.write_char(']')
        }
        Shape::Tuple { items, .. } => {
            out.write_char('{')?;
            line_of_all(items, out)?;
            out.write_char('}')
        }
        Shape::Map(pairs) => {
            out.write_str("#{")?;
            for (index, pair) in pairs.iter().enumerate() {
                out.write_str(if index > 0 { "," } else { "" })?;
                line_of_pair(pair, out)?;
            }
            out.write_char('}')
        }
    }
}

fn line_of_all(items: &[Node], out: &mut dyn Write) -> fmt::Result {
    for (index, item) in items.iter().enumerate() {
        out.write_str(if index > 0 { "," } else { "" })?;
        line(item, out)?;
    }
    Ok(())
}

pub(super) fn line_of_pair((key, value): &(Node, Node), out: &mut dyn Write) -> fmt::Result {
    line(key, out)?;
    out.write_str(" => ")?;
    line(value, out)
}
