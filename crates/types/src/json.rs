//! JSON as Riak reads it: values, their reader ([`Json::read`]), and their text.
//!
//! It is for what clients send: MapReduce jobs, bucket properties and operations on data types.
//! Riak's library (mochijson2) takes more than the standard allows, and clients rely on it
//! (docs/riak/http-api.md §0). An integer keeps all its digits, which a `serde_json::Value` cannot:
//! the feature of `serde_json` that keeps them would change each number in the whole workspace.
//!
//! Hot path of MapReduce: results of functions in JavaScript are read here.

mod beginning;
mod read;

pub use beginning::beginning;
pub use read::{BadJson, BadJsonKind, Visit};

use crate::decode_budget::{DecodeBudget, allocated};
use num_bigint::BigInt;
use std::fmt::{self, Write};

/// A JSON value. An object keeps the order of its members, and members of the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// Any other integer.
    Big(BigInt),
    /// A number with a fraction or an exponent; finite.
    Float(f64),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// The members of an object.
    Object(Vec<(String, Self)>),
}

/// The value of the first member with a name, as Riak takes it.
pub fn member<'a>(members: &'a [(String, Json)], name: &str) -> Option<&'a Json> {
    members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

impl Json {
    /// Reads a text that has one value and nothing behind it.
    ///
    /// # Errors
    /// [`BadJson`]: also Riak refuses the text, or it is nested too deep.
    pub fn read(text: &[u8]) -> Result<Self, BadJson> {
        Self::read_within(text, &mut DecodeBudget::unlimited())
    }

    /// Reads a text that somebody else has sent. What the value takes counts in the budget.
    ///
    /// # Errors
    /// [`BadJson`]: also Riak refuses the text, it is nested too deep, or takes too much memory.
    pub fn read_within(text: &[u8], budget: &mut DecodeBudget) -> Result<Self, BadJson> {
        read::read(text, budget, None)
    }

    /// The same, without the elements of one array, which are visited one after the other instead.
    /// It is the value of the first member with this name of the outermost object. In the result it
    /// is empty. An element counts in the budget until it was visited.
    ///
    /// # Errors
    /// Those of [`Self::read_within`], and the visitor's.
    pub fn read_visiting(
        text: &[u8],
        budget: &mut DecodeBudget,
        name: &str,
        visit: &mut Visit<'_>,
    ) -> Result<Self, BadJson> {
        read::read(text, budget, Some(read::Visited { name, visit }))
    }

    /// The text of a text.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// An integer of 64 bits.
    pub const fn as_i64(&self) -> Option<i64> {
        if let Self::Int(n) = self { Some(*n) } else { None }
    }

    /// The elements of an array.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&[(String, Self)]> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }

    /// The memory that [`Self::into_value`] takes beside the texts, which move.
    pub fn bytes_as_value(&self) -> usize {
        const VALUE: usize = size_of::<serde_json::Value>();
        /// A node of the tree that an object becomes has room for this many members, and at least
        /// half as many are in it unless it is the only one.
        const NODE_MEMBERS: usize = 11;
        let node = allocated(NODE_MEMBERS * (size_of::<String>() + VALUE) + 32 + (NODE_MEMBERS + 1) * 8);
        match self {
            Self::List(items) => allocated(items.len() * VALUE) + items.iter().map(Self::bytes_as_value).sum::<usize>(),
            Self::Object(members) => {
                let nodes = if members.is_empty() { 0 } else { 1 + members.len() / (NODE_MEMBERS / 2) };
                nodes * node + members.iter().map(|(_, value)| value.bytes_as_value()).sum::<usize>()
            }
            _ => 0,
        }
    }

    /// The value in another form: integers beyond 64 bits become floats, and of members with the
    /// same name the last one stays.
    pub fn into_value(self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Self::Null => Value::Null,
            Self::Bool(is_true) => Value::Bool(is_true),
            Self::Int(n) => n.into(),
            Self::Big(n) => match u64::try_from(&n) {
                Ok(n) => n.into(),
                Err(_) => n.to_string().parse::<f64>().unwrap_or(f64::MAX).into(),
            },
            Self::Float(n) => n.into(),
            Self::Text(text) => Value::String(text),
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Object(members) => members
                .into_iter()
                .map(|(name, value)| (name, value.into_value()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(is_true) => Self::Bool(is_true),
            Value::Number(n) => match (n.as_i64(), n.as_u64()) {
                (Some(n), _) => Self::Int(n),
                (None, Some(n)) => Self::Big(n.into()),
                (None, None) => Self::Float(n.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(name, value)| (name, value.into())).collect())
            }
        }
    }
}

impl From<i128> for Json {
    fn from(n: i128) -> Self {
        i64::try_from(n).map_or_else(|_| Self::Big(n.into()), Self::Int)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for Json {
    /// Writes the value as JSON, without white space.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(is_true) => is_true.fmt(f),
            Self::Int(n) => n.fmt(f),
            Self::Big(n) => n.fmt(f),
            Self::Float(n) => serde_json::Value::from(*n).fmt(f),
            Self::Text(text) => write_text(text, f),
            Self::List(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Self::Object(members) => write_object(members, f),
        }
    }
}

/// Writes an object.
pub fn write_object(members: &[(String, Json)], out: &mut dyn Write) -> fmt::Result {
    out.write_char('{')?;
    for (index, (name, value)) in members.iter().enumerate() {
        out.write_str(if index > 0 { "," } else { "" })?;
        write_text(name, out)?;
        write!(out, ":{value}")?;
    }
    out.write_char('}')
}

/// Writes a text in quotes.
pub fn write_text(text: &str, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            8 => "\\b",
            12 => "\\f",
            0..=31 => "",
            _ => continue,
        };
        out.write_str(text.get(written..at).unwrap_or_default())?;
        written = at + 1;
        match short {
            "" => write!(out, "\\u{byte:04x}")?,
            short => out.write_str(short)?,
        }
    }
    out.write_str(text.get(written..).unwrap_or_default())?;
    out.write_char('"')
}

#[cfg(test)]
mod tests;
