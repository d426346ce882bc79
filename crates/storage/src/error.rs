//! What can go wrong in a store.

use std::io;
use std::path::{Path, PathBuf};

/// A failed storage call.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The answer is on the disk and the caller asked not to wait ([`crate::ReadMode::Cached`]).
    #[error("not in the page cache")]
    WouldBlock,
    /// A version is there but does not match its checksum or does not decode.
    #[error("damaged record in {file} at byte {offset}: {what}")]
    Damaged {
        /// The data file.
        file: PathBuf,
        /// Where the record starts.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The operating system refused.
    #[error("{op} {path}: {source}")]
    Io {
        /// What was tried: `read`, `write`, `fsync`, `open`, `rename`…
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An earlier write or sync failed: the store takes no writes until it is opened again.
    #[error("the store takes no writes since an earlier failure: {0}")]
    Poisoned(String),
    /// The disk is full: writes are refused until there is room, reads go on.
    #[error("no space left for {path}")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The memory backend, or a key or value, is beyond its limit.
    #[error("{0}")]
    TooLarge(String),
    /// Too much of this kind is under way: try again later.
    #[error("{0}")]
    Busy(String),
    /// A view was open for longer than it may be, and holds nothing back any more.
    #[error(
        "the view of the store was taken away after {secs_max} s: ask for less at once, or raise the snapshot timeout"
    )]
    SnapshotTimeout {
        /// For how long it could be open.
        secs_max: u32,
    },
    /// A bucket is to lie in a backend that the node does not have. Holds which, and what to do.
    #[error("{0}")]
    NoBackend(String),
    /// The store takes no writes while it is handed over ([`crate::Backend::close_to_writes`]).
    #[error("the store is being handed over and takes no writes")]
    ClosedToWrites,
    /// The store was closed or dropped.
    #[error("the store is closed")]
    Closed,
    /// Files of another format version, or a directory that is no store.
    #[error("{path}: {what}")]
    Unusable {
        /// Which file or directory.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
}

impl StorageError {
    /// A file of a format version that this build does not read.
    pub(crate) fn other_format(path: &Path, version: u16) -> Self {
        let what = format!("written in format {version}, which this build does not read: use the newer one again");
        Self::Unusable { path: path.to_owned(), what }
    }
}

pub(crate) fn io_error(op: &'static str, path: &Path, source: io::Error) -> StorageError {
    StorageError::Io { op, path: path.to_owned(), source }
}
