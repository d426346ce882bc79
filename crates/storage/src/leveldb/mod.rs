//! Leveldb: keys, heads, values and index entries in one log-structured merge tree (docs/riak/backends.md §3).
//!
//! What it is: for values that are small, and read in the order of their keys. The journal is only the log of what the tree
//! has in memory, and goes when that is on disk.
//!
//! What it is not: Riak's files of that name are not read; its data comes over through the API.

use crate::journal::JournalConfig;
use crate::ledger::LedgerFactory;

/// Opens leveldb stores.
pub type LeveldbFactory = LedgerFactory<true>;

/// The log behind the tree: small files, so that what is covered goes soon.
pub fn default_journal() -> JournalConfig {
    JournalConfig { file_bytes_max: 64 << 20, ..JournalConfig::default() }
}
