//! Why the log cannot be opened or written.

use ombak_storage::fs::is_disk_full;
use std::io;
use std::path::PathBuf;

/// Why what this node knows of the cluster's metadata cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be read or written.
    #[error("cannot {op} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file is damaged or missing, or a later version of the program wrote it. A person has to
    /// decide what happens to it: going on could forget what this node has promised to others.
    #[error("{path} {what}", path = .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, in words that follow its name.
        what: String,
    },
    /// An earlier write or sync failed. It is unknown what reached the disk, so nothing is written
    /// until the log is opened again.
    #[error("an earlier write of the metadata log failed")]
    Poisoned,
    /// The caller's entries do not follow the last one, or an entry is too long.
    #[error("the metadata log refuses entry {index}: {why}")]
    Refused {
        /// The index of the entry.
        index: u64,
        /// Why.
        why: &'static str,
    },
}

impl LogError {
    /// Whether the disk had no room. Nothing was written, and the same write may be tried again.
    pub fn is_full_disk(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_disk_full(source))
    }
}
