//! Errors of an exchange with a server.

use crate::drivers::{Outcome, Reason};
use std::borrow::Cow;

/// Why an exchange did not end with a good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeError {
    /// The answer took too long. The connection cannot be used any more, because the answer may
    /// still arrive.
    Timeout,
    /// There is no connection, or it was lost.
    Disconnected,
    /// The answer is invalid, or it is not the requested one.
    Answer(Reason),
}

impl ExchangeError {
    /// An answer that is wrong in this way.
    pub const fn answer(what: &'static str) -> Self {
        Self::Answer(Cow::Borrowed(what))
    }

    /// The outcome of an operation that is retried after its connection was lost.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Disconnected => Outcome::Retry(self.reason()),
            _ => Outcome::Failed(self.reason()),
        }
    }

    /// The reason under which the error is counted.
    pub fn reason(self) -> Reason {
        match self {
            Self::Timeout => Cow::Borrowed("timeout"),
            Self::Disconnected => Cow::Borrowed("disconnected"),
            Self::Answer(reason) => reason,
        }
    }
}
