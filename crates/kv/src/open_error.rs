//! Why an engine does not start.

use ombak_storage::StorageError;
use std::path::PathBuf;

/// Why an engine does not start. The text names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting makes no sense.
    #[error("{0}")]
    Config(String),
    /// Another process runs on this directory.
    #[error("{0} is in use by another ombak process; stop that one, or start this one with another data directory")]
    InUse(PathBuf),
    /// A file of the node cannot be read or written.
    #[error("cannot {op} {path}: {source}")]
    Io {
        /// `read`, `write`, `create`…
        op: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of the node does not hold what it should.
    #[error("{path}: {what}")]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The store of a partition does not open.
    #[error("partition {partition}: {source}")]
    Store {
        /// Number of the partition.
        partition: u32,
        /// Why not.
        source: StorageError,
    },
    /// The operating system gives no threads or no random bytes.
    #[error("the operating system refuses {what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}
