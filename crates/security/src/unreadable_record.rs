//! A record that this version cannot read.

use crate::shown::shown;
use std::fmt;

/// A record that this version cannot read: it was written by a later one, or it is damaged. It has
/// no part of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableRecord {
    key: String,
    why: String,
}

impl UnreadableRecord {
    pub(crate) fn new(key: &[u8], why: String) -> Self {
        Self { key: shown(&String::from_utf8_lossy(key)), why }
    }

    /// The key, with control characters escaped.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record '{}' of security cannot be read: {}", self.key, self.why)
    }
}
