//! Why a backup cannot be taken or restored.

use ombak_storage::StorageError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a backup cannot be taken or restored. The text names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The request cannot be executed.
    #[error("{0}")]
    Refused(String),
    /// The backup is unusable.
    #[error("{path}: {what}")]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The operating system reported an error.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// `read`, `write`, `create`…
        op: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store of a partition failed.
    #[error("partition {partition}: {source}")]
    Store {
        /// Number of the partition.
        partition: u32,
        /// The error of the store.
        source: StorageError,
    },
    /// The node is stopping.
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
