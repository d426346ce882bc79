//! The ledger: an ordered index on disk, for stores whose keys do not all fit into memory and for
//! secondary indexes.
//!
//! What it is: a log-structured merge tree for each partition. It has the keys of the store with
//! their heads and positions, the index terms, and a checkpoint that says up to which append the
//! tree has seen the journal. The tree of leveldb has the values as well.
//!
//! What it is not: it is not a log. Writes since the last flush are only in memory; the next start
//! reads them from the journal again. A ledger that is lost or damaged is rebuilt from the journal.
//! The exception is leveldb, whose tree is the only copy of values whose journal files have been
//! removed.
//!
//! Invariants:
//! * The checkpoint in a ledger is as old as the newest entry on its disk: both are flushed
//!   together.
//! * In every snapshot, a version's key and its terms change together.
//! * Nothing that an open snapshot can see is garbage-collected.

mod config;
mod differences;
mod entry;
mod index;
mod keys;
mod lookups;
mod opening;
mod persistence;
mod root;
mod terms;
mod terms_check;
mod tree;

pub use config::LedgerConfig;
pub(crate) use differences::{Difference, visit_differences};
#[cfg(any(test, fuzzing))]
pub(crate) use entry::encode as encode_entry;
pub(crate) use entry::{LedgerEntry, decode as decode_entry};
pub(crate) use index::{CHECKPOINT, LedgerIndex, NOTES, ORDERED_UP_TO};
pub(crate) use keys::{KeyBounds, LedgerKey, note, put_escaped, put_term_prefix, store_key};
pub(crate) use opening::{check_only_copy, partitions_with_trees, remove_dir, seen_seq, tree_is_behind};
pub(crate) use persistence::durable_checkpoint;
pub(crate) use root::{LedgerRoot, ledger_dir};
pub(crate) use terms::{TermBounds, term_keys, visit_terms};
pub(crate) use terms_check::{CheckedTree, owner_of};
pub(crate) use tree::{Change, Tree, TreeDamage, TreeFiles, TreeShared, TreeView};
