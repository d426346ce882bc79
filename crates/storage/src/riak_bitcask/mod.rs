//! Riak's own bitcask directories, for reading them in (docs/riak/backends.md §2). Not the format of Ombak's bitcask.
//!
//! What it is: [`PartitionDir`] finds the files of one partition, [`PartitionDir::load_latest`] learns which record of
//! each key is the current one (from hint files where they can be trusted), and [`Records`] reads these in file order,
//! resumable at any of them. What cannot be read is reported, never passed over in silence.
//!
//! What it is not: it changes nothing in the directory, and it does not look into the stored objects.
//!
//! Invariants:
//! * no length in a file is trusted: a record is handed out only if its checksum matches;
//! * memory is about 50 bytes for each key of one partition, plus the largest record.

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
    /// Which file.
    pub file: PathBuf,
    /// Where the part begins.
    pub offset: u64,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// What is wrong with it.
    pub what: &'static str,
}

/// Why a directory cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A Riak node runs on it.
    #[error(
        "{lock} says that process {pid} writes here, and that process runs: stop the Riak node first, or import a copy of \
         its data (without the lock file)"
    )]
    InUse {
        /// The lock file.
        lock: PathBuf,
        /// Who holds it.
        pid: u32,
    },
    /// It is no data directory of bitcask.
    #[error("{path}: {what}")]
    NoBitcask {
        /// Which directory.
        path: PathBuf,
        /// What is wrong and what would be right.
        what: String,
    },
}
