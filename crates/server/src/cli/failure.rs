//! How a command fails.

use std::fmt;

/// Why a command did not do what it was asked for. The text is one line where it can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong and what to do.
    pub message: String,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    /// It could not be done.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// It was asked for in the wrong way.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
