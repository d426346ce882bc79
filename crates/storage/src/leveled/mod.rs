//! Leveled: values in a journal, and over it a ledger of keys and heads (docs/riak/backends.md §4).
//!
//! What it is: puts write a value to disk once, however many keys the store has. A read of a head
//! never touches the journal. Keys are in order, with the secondary indexes beside them.
//!
//! What it is not: it does not read the files of Riak's leveled. Data comes from Riak through the
//! API.

mod factory;
mod policy;

pub use factory::LeveledFactory;

use crate::journal::{JournalConfig, MergeConfig};

/// The journal options with Riak's defaults (docs/riak/backends.md §4.5).
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
