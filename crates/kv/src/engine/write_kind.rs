//! How a write treats the clock that it carries.

use crate::interface::PutRequest;
use ombak_types::{BucketProps, Error};

/// How a write treats the clock that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// The write is a new event.
    Coordinated,
    /// The object is stored without a clock (docs/riak/semantics.md §3.3).
    WriteOnce,
    /// The object is merged with the clock that it carries.
    AsIs,
}

impl WriteKind {
    /// The kind that a request asks for.
    pub(super) fn of(request: &PutRequest, props: &BucketProps) -> Result<Self, Error> {
        if request.object.siblings.is_empty() {
            return Err(Error::Unsupported("a write needs a value; use delete to remove a key".into()));
        }
        Ok(match () {
            () if request.options.asis => Self::AsIs,
            // A tombstone must replace the value, so it needs a clock.
            () if props.write_once && !request.object.is_deleted() => Self::WriteOnce,
            () => Self::Coordinated,
        })
    }
}
