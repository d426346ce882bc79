//! How large an index is.

use std::time::Duration;

/// How large an index is, and how it fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Documents that can be found.
    pub documents: u64,
    /// Documents that were removed and still take room.
    pub documents_deleted: u64,
    /// Documents that were not taken since the start, because their ids or keys are too long.
    pub documents_refused: u64,
    /// Bytes of all files.
    pub bytes_on_disk: u64,
    /// Parts that a search looks through one by one.
    pub segments: u64,
    /// How long the last write took, from its first change to the disk.
    pub last_commit: Option<Duration>,
}
