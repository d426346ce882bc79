//! One home partition: its store, and the rules of writing to it.
//!
//! What it is: read, merge and write of one key as one step; new events; replica merges; conditional removal.
//!
//! What it is not: no quorums, no requests, no properties beyond those that a write depends on, no waiting for syncs.

mod actors;
mod digest;
#[cfg(test)]
mod expired;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod kv679;
mod locked;
mod locks;
#[allow(clippy::module_inception, reason = "one main type a file, named after it")]
mod partition;
mod rules;
#[cfg(test)]
mod test_replica;

pub use actors::ActorSource;
pub use digest::{digest, is_tombstone};
pub use locked::{Locked, Written};
pub use partition::Partition;
pub use rules::WriteRules;

use ombak_storage::{ReadMode, StorageError};
use ombak_types::Error;

/// What a caller can afford.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neither wait for a lock nor for a disk: for network threads.
    Inline,
    /// Wait for both.
    Blocking,
}

impl Access {
    const fn read_mode(self) -> ReadMode {
        match self {
            Self::Inline => ReadMode::Cached,
            Self::Blocking => ReadMode::Blocking,
        }
    }
}

/// Why a key could not be read or written.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The caller would have had to wait. Nothing has happened; the same call with [`Access::Blocking`] will do.
    WouldBlock,
    /// It cannot be done.
    Refused(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::WouldBlock => Self::WouldBlock,
            StorageError::Closed => Self::Refused(Error::Stopping),
            other => Self::Refused(Error::Storage(other.to_string())),
        }
    }
}
