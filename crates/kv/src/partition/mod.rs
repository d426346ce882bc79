//! One home partition: its store, and the rules of writing to it.
//!
//! What it is: the atomic read, merge and write of one key; new events; merges of copies from
//! replicas; conditional removal.
//!
//! What it is not: it has no quorums and no requests, uses only those properties that a write
//! depends on, and does not wait for syncs.

mod appends;
mod deadline;
mod event_ids;
mod grow;
mod locked;
mod locks;
mod merge_timer;
mod origin_log;
#[allow(clippy::module_inception, reason = "one main type a file, named after it")]
mod partition;
mod rules;
mod snapshots;
mod summing;
mod table;
#[cfg(test)]
mod tests;
mod tombstones;
mod treeing;
mod unreadable_keys;
mod write_gate;

pub(crate) use crate::digest::{digest, is_tombstone};
pub(crate) use deadline::{BeginOrGiveUp, Deadline};
pub use event_ids::ActorSource;
pub(crate) use grow::Added;
pub use locked::{Locked, Written};
pub use partition::{Partition, is_unreadable};
pub use rules::{MergeRules, WriteRules};
pub(crate) use snapshots::{SnapshotHolder, Waiting, WaitingHolders};
pub use table::PartitionTable;
pub use unreadable_keys::{KeyPlace, UnreadableKeys};
pub(crate) use write_gate::{WriteGate, WritePass};

use ombak_storage::{ReadMode, StorageError, Stored};
use ombak_types::{Error, StoreFailure};

/// The waits and the memory that a caller can afford.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Wait neither for a lock nor for a disk: for network threads.
    Inline,
    /// Wait for locks and disks.
    Blocking,
    /// Wait for locks and disks, but read no version that takes more than this many bytes.
    BlockingUpTo(u64),
}

/// Maximum length of a head, in bytes, that is decoded for a caller that must not wait: decoding
/// takes time, too.
const INLINE_HEAD_BYTES_MAX: usize = 64 << 10;
/// The same limit for a body.
const INLINE_BODY_BYTES_MAX: usize = 256 << 10;
/// Maximum number of bytes in memory for each byte of a decoded head: the shortest metadata pair
/// has four bytes and takes 64.
const DECODED_BYTES_PER_HEAD_BYTE: u64 = 16;

impl Access {
    const fn read_mode(self) -> ReadMode {
        match self {
            Self::Inline => ReadMode::Cached,
            Self::Blocking | Self::BlockingUpTo(_) => ReadMode::Blocking,
        }
    }

    /// Checks whether the caller can afford to decode a version that was read.
    fn check(self, found: &Stored) -> Result<(), Failure> {
        let body_len = found.body.as_ref().map_or(0, |body| body.len());
        match self {
            Self::Inline if found.head.len() > INLINE_HEAD_BYTES_MAX || body_len > INLINE_BODY_BYTES_MAX => {
                Err(Failure::WouldBlock)
            }
            Self::BlockingUpTo(bytes_max) => {
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
    /// The caller would have to wait. Nothing has happened; the same call with [`Access::Blocking`]
    /// can succeed.
    WouldBlock,
    /// The version of the key takes this many bytes, more than [`Access::BlockingUpTo`] allows.
    /// Nothing has happened.
    TooLarge(u64),
    /// The operation failed.
    Refused(Error),
}

impl Failure {
    /// The error behind a failure of a call that was allowed to block.
    pub(crate) fn of_blocking_call(self) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::WouldBlock | Self::TooLarge(_) => StoreFailure::internal("a blocking call would block").into(),
        }
    }
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
            other => Self::Refused(other.into()),
        }
    }
}
