//! Leveldb: keys, heads, values and index entries in one log-structured merge tree
//! (docs/riak/backends.md §3).
//!
//! What it is: a backend for values that are small and are read in the order of their keys. The
//! journal is only the log of what the tree has in memory; its files are removed when the tree has
//! that on disk.
//!
//! What it is not: it does not read the files of Riak's leveldb. Data comes from Riak through the
//! API.

mod factory;
mod policy;

pub use factory::LeveldbFactory;

use crate::journal::JournalConfig;

/// The options of the log behind the tree. Its files are small, so that each is removed soon after
/// the tree has its content.
pub fn default_journal() -> JournalConfig {
    JournalConfig { file_bytes_max: 64 << 20, ..JournalConfig::default() }
}
