//! Why an engine fails to start.

use ombak_storage::StorageError;
use std::path::PathBuf;

/// Why an engine fails to start. The text names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting is invalid.
    #[error("{0}")]
    Config(String),
    /// Another process uses this directory.
    #[error("{0} is in use by another ombak process; stop that one, or start this one with another data directory")]
    InUse(PathBuf),
    /// A file of the node cannot be read or written.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// `read`, `write`, `create`…
        op: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file of the node has invalid content.
    #[error("{path}: {what}")]
    Unusable {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The store of a partition cannot be opened.
    #[error("partition {partition}: {source}")]
    Store {
        /// Number of the partition.
        partition: u32,
        /// The error of the store.
        source: StorageError,
    },
    /// The operating system provides no threads or no random bytes.
    #[error("the operating system refuses {what}: {source}")]
    System {
        /// What the node asked for.
        what: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
