//! Riak's bitcask directories, read for import (docs/riak/backends.md §2). This is not the
//! format of Ombak's bitcask.
//!
//! What it is: [`PartitionDir`] finds the files of one partition. [`PartitionDir::load_latest`]
//! learns which record of each key is current, from hint files where they can be trusted.
//! [`Records`] reads the current records in file order, and can resume at any of them. Whatever
//! cannot be read is reported.
//!
//! What it is not: it changes nothing in the directory, and it does not decode the stored objects.
//!
//! Invariants:
//! * No length in a file is trusted: a record is returned only if its checksum matches.
//! * Memory is about 50 bytes for each key of one partition, plus the largest record.

pub mod hint;
pub mod key;
mod latest;
mod partition_dir;
pub mod record;
mod records;
mod root;
pub mod scan;
mod source;
#[cfg(test)]
mod tests;
pub mod writer;

pub use latest::Latest;
pub use partition_dir::{DataFile, PartitionDir};
pub use records::{Cursor, Event, Records, Version};
pub use root::partition_dirs;
pub use source::Source;

use std::path::PathBuf;

/// A part of a file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The offset at which the part begins.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The defect.
    pub what: &'static str,
}

/// Why a directory cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// What should be a data file is none.
    #[error("{path} is not a regular file, so it is no data file of bitcask: remove it, or import a copy without it")]
    NotAFile {
        /// What has the name of a data file.
        path: PathBuf,
    },
    /// A Riak node is running on the directory.
    #[error(
        "{lock} says that process {pid} writes here, and that process runs: stop the Riak node first, or import a copy of \
         its data (without the lock file)"
    )]
    InUse {
        /// The lock file.
        lock: PathBuf,
        /// The process that holds it.
        pid: u32,
    },
    /// The directory is not a data directory of bitcask.
    #[error("{path}: {what}")]
    NoBitcask {
        /// The directory.
        path: PathBuf,
        /// What is wrong, and the remedy.
        what: String,
    },
}
