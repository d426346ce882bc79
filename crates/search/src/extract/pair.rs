//! Names and values that were found.

use super::error::ExtractError;
use super::limits::{NAME_BYTES_MAX, PAIRS_MAX};

/// A value and its name. A name with several values has several pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The name, such as `info.city_s`.
    pub name: String,
    /// The value.
    pub value: Extracted,
}

/// A value that was found. Numbers are texts, as in Riak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extracted {
    /// A text or a number.
    Text(String),
    /// `true` or `false`
    Bool(bool),
}

/// The pairs of a value so far.
#[derive(Debug, Default)]
pub(super) struct Pairs(Vec<Pair>);

impl Pairs {
    pub(super) fn push(&mut self, name: &str, value: Extracted) -> Result<(), ExtractError> {
        if name.len() > NAME_BYTES_MAX {
            return Err(ExtractError::NameTooLong);
        }
        if self.0.len() == PAIRS_MAX {
            return Err(ExtractError::TooMany);
        }
        self.0.push(Pair { name: name.to_owned(), value });
        Ok(())
    }

    pub(super) fn push_text(&mut self, name: &str, text: &str) -> Result<(), ExtractError> {
        self.push(name, Extracted::Text(text.to_owned()))
    }

    pub(super) fn into_list(self) -> Vec<Pair> {
        self.0
    }
}

/// Names inside each other, from the outermost one.
#[derive(Debug, Default)]
pub(super) struct Path(String);

impl Path {
    /// Goes into a name behind a separator; the length to which [`Self::leave`] goes back.
    pub(super) fn enter(&mut self, separator: &str, name: &str) -> Result<usize, ExtractError> {
        let before = self.0.len();
        // Checked here already, so that nesting cannot make names long and many.
        if before + separator.len() + name.len() > NAME_BYTES_MAX {
            return Err(ExtractError::NameTooLong);
        }
        self.0.push_str(separator);
        self.0.push_str(name);
        Ok(before)
    }

    pub(super) fn leave(&mut self, before: usize) {
        self.0.truncate(before);
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
