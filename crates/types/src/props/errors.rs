//! Refused properties, and the three forms in which clients see them.

use crate::etf::{AtomText, BinaryText, StringText};
use serde_json::Value;
use std::fmt;

/// Why a property was refused. The kinds differ in how Riak encodes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An Erlang atom, `not_integer` for instance. JSON shows a string.
    Atom(&'static str),
    /// An Erlang string. JSON shows a list of character codes, as Riak does.
    Charlist(String),
    /// A text of Ombak's own. JSON shows a string, Protocol Buffers a binary.
    Text(String),
}

/// One refused property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropError {
    /// The name of the property as the client sent it.
    pub property: String,
    /// Why it was refused.
    pub reason: Reason,
}

/// All errors in a set of changes; none of the changes is applied. `Display` is the Erlang form of
/// Riak's Protocol Buffers errors, `[{n_val,not_integer}]` (docs/riak/pb-api.md §18).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropErrors(Vec<PropError>);

impl PropErrors {
    /// The errors in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &PropError> {
        self.0.iter()
    }

    /// Whether there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Creates one error with a text of Ombak's own.
    pub fn of_text(property: &str, reason: String) -> Self {
        Self(vec![PropError { property: property.to_owned(), reason: Reason::Text(reason) }])
    }

    pub(super) fn names(&self, property: &str) -> bool {
        self.0.iter().any(|e| e.property == property)
    }

    pub(super) fn push(&mut self, property: &str, reason: Reason) {
        self.0.push(PropError { property: property.to_owned(), reason });
    }

    /// The body of Riak's HTTP answer: `{"n_val":"not_integer"}`.
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.iter().map(|e| (e.property.clone(), e.reason.to_json())).collect())
    }

    /// Lines for humans: `n_val: not_integer`.
    pub fn to_lines(&self) -> String {
        self.0.iter().map(|e| format!("{}: {}", e.property, e.reason.as_str())).collect::<Vec<_>>().join("\n")
    }
}

impl Reason {
    /// The text of the reason.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Atom(word) => word,
            Self::Charlist(text) | Self::Text(text) => text,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Atom(word) => Value::from(*word),
            Self::Charlist(text) => text.chars().map(u32::from).collect(),
            Self::Text(text) => Value::from(text.as_str()),
        }
    }
}

impl fmt::Display for PropErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{{{},", AtomText(&error.property))?;
            match &error.reason {
                Reason::Atom(word) => f.write_str(word)?,
                Reason::Charlist(text) => StringText(text).fmt(f)?,
                Reason::Text(text) => BinaryText(text.as_bytes()).fmt(f)?,
            }
            f.write_str("}")?;
        }
        f.write_str("]")
    }
}

impl std::error::Error for PropErrors {}
