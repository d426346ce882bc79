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

use ombak_storage::{ReadMode, StorageError, Stored};
use ombak_types::Error;

/// What a caller can afford.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neither wait for a lock nor for a disk: for network threads.
    Inline,
    /// Wait for both.
    Blocking,
    /// Wait for both, but read no version that takes more than so many bytes.
    Within(u64),
}

/// What a caller that must not wait reads of a head at most, in bytes: decoding it takes time, too.
const INLINE_HEAD_BYTES_MAX: usize = 64 << 10;
/// The same of a body.
const INLINE_BODY_BYTES_MAX: usize = 256 << 10;
/// What a byte of a head may become in memory when it is decoded: the shortest metadata pair has four bytes and takes 64.
const DECODED_BYTES_PER_HEAD_BYTE: u64 = 16;

impl Access {
    const fn read_mode(self) -> ReadMode {
        match self {
            Self::Inline => ReadMode::Cached,
            Self::Blocking | Self::Within(_) => ReadMode::Blocking,
        }
    }

    /// Whether the caller can afford to decode what was read.
    fn check(self, found: &Stored) -> Result<(), Failure> {
        let body_len = found.body.as_ref().map_or(0, |body| body.len());
        match self {
            Self::Inline if found.head.len() > INLINE_HEAD_BYTES_MAX || body_len > INLINE_BODY_BYTES_MAX => {
                Err(Failure::WouldBlock)
            }
            Self::Within(bytes_max) => {
                let bytes = body_len as u64 + found.head.len() as u64 * DECODED_BYTES_PER_HEAD_BYTE;
                if bytes > bytes_max { Err(Failure::TooLarge(bytes)) } else { Ok(()) }
            }
            Self::Inline | Self::Blocking => Ok(()),
        }
    }
}

/// Why a key could not be read or written.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The caller would have had to wait. Nothing has happened; the same call with [`Access::Blocking`] will do.
    WouldBlock,
    /// What the key holds takes so many bytes, more than [`Access::Within`] allows. Nothing has happened.
    TooLarge(u64),
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
