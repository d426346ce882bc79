//! Why a store could not read or write, in kinds that callers can tell apart.

use crate::stored_object::Corrupt;
use std::fmt;

/// The kind of a store's failure. A coordinator treats the kinds differently; a client sees only
/// the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreFailureKind {
    /// Too many operations of this kind are under way. The same call may succeed soon.
    Busy,
    /// The store takes no writes while it is handed over to another node.
    ClosedToWrites,
    /// The disk is full. Writes may succeed again when there is room; reads go on.
    DiskFull,
    /// An earlier write or sync failed. The store takes no writes until the next start; reads go
    /// on.
    Poisoned,
    /// The version is there, but its bytes are damaged, or the disk does not give them back. It is
    /// not an absent version.
    Unreadable,
    /// The key, the value or the store exceeds a limit of the backend.
    TooLarge,
    /// A snapshot was open for too long and was released.
    SnapshotTimeout,
    /// The bucket is configured to a backend that the node does not have.
    NoBackend,
    /// The store was closed, this node does not have the partition open, or a file of it cannot be
    /// opened. The call has changed nothing.
    Closed,
    /// The node that has the store cannot be reached, and the call was not delivered.
    Unreachable,
    /// The operating system reported an error, or files are not those of a store.
    Io,
    /// The node itself failed: a defect.
    Internal,
}

/// The failure of a store: its kind, and the cause in words. The same words were logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFailure {
    /// The kind.
    pub kind: StoreFailureKind,
    /// The cause in words.
    pub text: String,
}

impl StoreFailure {
    /// Creates a failure.
    pub fn new(kind: StoreFailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Creates the failure of a node with a defect.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::new(StoreFailureKind::Internal, text)
    }
}

impl fmt::Display for StoreFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Corrupt> for StoreFailure {
    fn from(corrupt: Corrupt) -> Self {
        Self::new(StoreFailureKind::Unreadable, corrupt.to_string())
    }
}
