//! How a command fails.

use serde_json::{Value, json};
use std::fmt;

/// Why a command did not do what it was asked for. The text is one line where it can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The sort of failure, as programs see it: one of those here, or that of an
    /// [`AdminError`](ombak_api::admin::AdminError).
    pub kind: String,
    /// What is wrong and what to do. Empty where the command's result has said it.
    pub message: String,
    /// The exit code.
    pub code: u8,
    /// Whether a result was printed that says it, too: with `--json`, standard output has its one document already.
    pub has_result: bool,
}

impl Failure {
    /// It could not be done.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: "failed".into(), message: message.into(), code: 1, has_result: false }
    }

    /// It was asked for in the wrong way.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: "usage".into(), code: 2, ..Self::new(message) }
    }

    /// No node answers.
    pub fn no_node(message: impl Into<String>) -> Self {
        Self { kind: "no_node".into(), ..Self::new(message) }
    }

    /// The result that was printed says all there is to say; only the exit code is left.
    pub fn told() -> Self {
        Self::new("").after_result()
    }

    /// The same failure of a command that has printed a result.
    pub fn after_result(self) -> Self {
        Self { has_result: true, ..self }
    }

    /// The failure as `--json` prints it.
    pub fn to_json(&self) -> Value {
        json!({"error": {"kind": self.kind, "message": self.message}})
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
