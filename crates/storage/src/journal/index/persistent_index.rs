//! An index that a start finds on disk.

use super::key_index::KeyIndex;
use crate::error::StorageError;
use bytes::Bytes;

/// An index whose entries are on disk up to a checkpoint. Later entries are only in memory; a start
/// reads them from the journal again.
pub(crate) trait PersistentIndex: KeyIndex {
    /// The last checkpoint that is on disk; none if there is none, or if it cannot be read.
    fn durable_checkpoint(&self) -> Option<Bytes>;

    /// Whether a version that was in the index before anything was loaded may expire.
    fn may_expire(&self) -> bool;

    /// Whether enough data has gathered in memory for a checkpoint.
    fn wants_checkpoint(&self) -> bool;

    /// Whether so much data has gathered that writers should wait for the index.
    fn is_behind(&self) -> bool;

    /// Takes a checkpoint of the present state. The writer's lock is held, and no merge is running.
    fn take_checkpoint(&self, state: Bytes);

    /// Writes everything up to the last checkpoint. It is on disk when this returns.
    fn flush(&self) -> Result<(), StorageError>;

    /// Whether an earlier checkpoint could not be written. It must be written first; otherwise
    /// memory grows with every attempt.
    fn has_unwritten(&self) -> bool;
}
