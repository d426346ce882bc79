//! Why a request did not end normally.

use super::close_reason::CloseReason;
use super::refusal::Refusal;

/// Why a request did not end normally: it was refused, or its connection has ended.
#[derive(Debug)]
pub(super) enum Failure {
    Refused(Refusal),
    Closed(CloseReason),
}

impl<E: Into<Refusal>> From<E> for Failure {
    fn from(refusal: E) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        Self::Closed(reason)
    }
}
