//! Why a backup is not taken, or not restored.

use ombak_storage::StorageError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a backup is not taken, or not restored. The text names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// What was asked for cannot be.
    #[error("{0}")]
    Refused(String),
    /// The backup is not what it should be.
    #[error("{path}: {what}")]
    Unusable {
        /// Which file or directory.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The operating system refused.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// `read`, `write`, `create`…
        op: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A store cannot be cut.
    #[error("partition {partition}: {source}")]
    Store {
        /// Number of the partition.
        partition: u32,
        /// Why not.
        source: StorageError,
    },
    /// The node stops.
    #[error("the node is stopping: the backup is not complete")]
    Stopping,
}

pub(super) fn io_error(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io { op, path, source }
}

pub(super) fn unusable(path: &Path, what: impl Into<String>) -> BackupError {
    BackupError::Unusable { path: path.to_owned(), what: what.into() }
}
