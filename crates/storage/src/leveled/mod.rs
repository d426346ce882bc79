//! Leveled: values in a journal, and a ledger of keys and heads over it (docs/riak/backends.md §4).
//!
//! What it is: a value is written to disk once, however many keys there are; reading a head never touches the journal; keys
//! are in order, and secondary indexes beside them.
//!
//! What it is not: Riak's files of that name are not read; its data comes over through the API.

use crate::journal::{JournalConfig, MergeConfig};
use crate::ledger::LedgerFactory;

/// Opens leveled stores.
pub type LeveledFactory = LedgerFactory<false>;

/// Riak's defaults (docs/riak/backends.md §4.5).
pub fn default_journal() -> JournalConfig {
    JournalConfig {
        file_bytes_max: 1_000_000_000,
        file_records_max: 200_000,
        merge: MergeConfig::leveled(),
        snapshot_secs_max: Some(86_400),
        ordered_snapshot_secs_max: Some(1800),
        ..JournalConfig::default()
    }
}
