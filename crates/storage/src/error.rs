//! The errors of stores.

use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::io;
use std::path::{Path, PathBuf};

/// A failed storage call.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The data is on the disk, and the caller asked not to wait ([`crate::ReadMode::Cached`]).
    #[error("not in the page cache")]
    WouldBlock,
    /// A version is there, but does not match its checksum or cannot be decoded.
    #[error("damaged record in {file} at byte {offset}: {what}")]
    Damaged {
        /// The data file.
        file: PathBuf,
        /// Where the record starts.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// A version is there, and the disk does not give it back, also when it is asked twice
    /// ([`crate::fs::is_media_error`]).
    #[error("the disk cannot read {file} at byte {offset}: {source}")]
    MediaError {
        /// The data file, or the directory of the ledger.
        file: PathBuf,
        /// Where the record starts; 0 if the place is not known.
        offset: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A version is there, and not all of its body.
    #[error("a version is incomplete: {0}")]
    Incomplete(&'static str),
    /// The operating system reported an error.
    #[error("{op} {path}: {source}")]
    Io {
        /// The operation that failed: `read`, `write`, `fsync`, `open`, `rename`…
        op: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An earlier write or sync failed. The store takes no writes until it is opened again.
    #[error("the store takes no writes since an earlier failure: {0}")]
    Poisoned(String),
    /// The disk is full. Writes are refused until there is room; reads go on.
    #[error("no space left for {path}")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The memory backend, a key or a value exceeds its limit.
    #[error("{0}")]
    TooLarge(String),
    /// Too many operations of this kind are under way. The caller may try again later.
    #[error("{0}")]
    Busy(String),
    /// A snapshot was open for longer than allowed and has been released.
    #[error(
        "the view of the store was taken away after {secs_max} s: ask for less at once, or raise the snapshot timeout"
    )]
    SnapshotTimeout {
        /// How long a snapshot may be open.
        secs_max: u32,
    },
    /// A bucket is configured to a backend that the node does not have. The text names the backend
    /// and the remedy.
    #[error("{0}")]
    NoBackend(String),
    /// The store takes no writes while it is handed over ([`crate::Backend::close_to_writes`]).
    #[error("the store is being handed over and takes no writes")]
    ClosedToWrites,
    /// The store was closed or dropped.
    #[error("the store is closed")]
    Closed,
    /// Files of another format version, or a directory that is not a store.
    #[error("{path}: {what}")]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and the remedy.
        what: String,
    },
}

impl StorageError {
    /// The kind of the failure, for callers above the store.
    pub fn kind(&self) -> StoreFailureKind {
        match self {
            Self::Busy(_) => StoreFailureKind::Busy,
            Self::ClosedToWrites => StoreFailureKind::ClosedToWrites,
            Self::DiskFull { .. } => StoreFailureKind::DiskFull,
            Self::Poisoned(_) => StoreFailureKind::Poisoned,
            Self::Damaged { .. } | Self::MediaError { .. } | Self::Incomplete(_) => StoreFailureKind::Unreadable,
            Self::TooLarge(_) => StoreFailureKind::TooLarge,
            Self::SnapshotTimeout { .. } => StoreFailureKind::SnapshotTimeout,
            Self::NoBackend(_) => StoreFailureKind::NoBackend,
            Self::Closed => StoreFailureKind::Closed,
            Self::Io { .. } | Self::Unusable { .. } => StoreFailureKind::Io,
            // A caller that asked not to wait handles this itself.
            Self::WouldBlock => StoreFailureKind::Internal,
        }
    }

    /// Whether the error is about the version of one key, which is there and cannot be read. Other
    /// keys of the store may be read nevertheless.
    pub fn is_unreadable_version(&self) -> bool {
        self.kind() == StoreFailureKind::Unreadable
    }

    /// A file of a format version that this build does not read.
    pub(crate) fn other_format(path: &Path, version: u16) -> Self {
        let what = format!("written in format {version}, which this build does not read: use the newer one again");
        Self::Unusable { path: path.to_owned(), what }
    }
}

impl From<StorageError> for StoreFailure {
    fn from(error: StorageError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        Self::Storage(error.into())
    }
}

pub(crate) fn io_error(op: &'static str, path: &Path, source: io::Error) -> StorageError {
    StorageError::Io { op, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_reaches_the_client_as_one_text() {
        use StoreFailureKind as Kind;
        let path = || PathBuf::from("d/1.data");
        let source = || io::Error::other("broken");
        let damaged = StorageError::Damaged { file: path(), offset: 7, what: "checksum" };
        let cases = [
            (damaged, Kind::Unreadable, "damaged record in d/1.data at byte 7: checksum"),
            (
                StorageError::MediaError { file: path(), offset: 7, source: source() },
                Kind::Unreadable,
                "the disk cannot read d/1.data at byte 7: broken",
            ),
            (StorageError::Io { op: "read", path: path(), source: source() }, Kind::Io, "read d/1.data: broken"),
            (
                StorageError::Poisoned("fsync".into()),
                Kind::Poisoned,
                "the store takes no writes since an earlier failure: fsync",
            ),
            (StorageError::DiskFull { path: path() }, Kind::DiskFull, "no space left for d/1.data"),
            (StorageError::TooLarge("too long".into()), Kind::TooLarge, "too long"),
            (StorageError::Busy("too many snapshots".into()), Kind::Busy, "too many snapshots"),
            (
                StorageError::SnapshotTimeout { secs_max: 9 },
                Kind::SnapshotTimeout,
                "the view of the store was taken away after 9 s: ask for less at once, or raise the snapshot timeout",
            ),
            (StorageError::NoBackend("no backend x".into()), Kind::NoBackend, "no backend x"),
            (StorageError::ClosedToWrites, Kind::ClosedToWrites, "the store is being handed over and takes no writes"),
            (StorageError::Closed, Kind::Closed, "the store is closed"),
            (StorageError::Unusable { path: path(), what: "is none".into() }, Kind::Io, "d/1.data: is none"),
        ];
        for (error, kind, text) in cases {
            let failure = StoreFailure::from(error);
            assert_eq!((failure.kind, &*failure.text), (kind, text));
            assert_eq!(Error::from(failure).to_string(), format!("{{storage_error,\"{text}\"}}"));
        }
    }
}
