//! The texts of `RpbErrorResp` (docs/riak/pb-api.md §1.1).

use crate::memory::OutOfMemory;
use ombak_types::Error;
use std::fmt::Display;

/// Why a request is refused, as the text of the `RpbErrorResp`. The connection stays open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(String);

impl Refusal {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The refusal of a message that cannot be decoded. Its text begins as Riak's does, up to the
    /// class of the exception, and then says what is wrong.
    pub(super) fn undecodable(message: &str, why: impl Display) -> Self {
        Self(format!("Error processing incoming message: {message} does not decode: {why}"))
    }

    /// The refusal of a listing or of bucket properties whose bucket type is unknown.
    pub(super) fn no_such_type(bucket_type: &[u8]) -> Self {
        Self(format!("No bucket-type named '{}'", String::from_utf8_lossy(bucket_type)))
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        Error::Overload.into()
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}
