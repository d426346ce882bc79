//! Why an exchange did not end with an answer.

use crate::drivers::{Outcome, Reason};
use std::borrow::Cow;

/// Why an exchange did not end with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The answer took too long. The connection is of no use any more: the answer may still come.
    Timeout,
    /// There is no connection, or there is none any more.
    Disconnected,
    /// The answer is none, or not the one that was asked for.
    Answer(Reason),
}

impl Trouble {
    /// An answer that is wrong in this way.
    pub const fn answer(what: &'static str) -> Self {
        Self::Answer(Cow::Borrowed(what))
    }

    /// What an operation comes to where what was lost is tried again.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Disconnected => Outcome::Retry(self.reason()),
            _ => Outcome::Failed(self.reason()),
        }
    }

    /// What it is counted by.
    pub fn reason(self) -> Reason {
        match self {
            Self::Timeout => Cow::Borrowed("timeout"),
            Self::Disconnected => Cow::Borrowed("disconnected"),
            Self::Answer(reason) => reason,
        }
    }
}
