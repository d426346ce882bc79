//! What a command answers.

use serde_json::Value;

/// What a command answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Riak's text, without the line end of its last line. It is empty if Riak prints nothing.
    pub text: String,
    /// The same for programs, without hashes.
    pub json: Value,
}

impl Answer {
    pub(super) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json }
    }
}
