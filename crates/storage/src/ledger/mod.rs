//! The ledger: an ordered index on disk, for stores whose keys do not all fit into memory and for secondary indexes.
//!
//! What it is: the keys of a store with heads and positions, its index terms, and a note of how much of the journal it
//! has seen, in a log-structured merge tree of its own for each partition.
//!
//! What it is not: it is no log. What was put since it was last flushed is in memory only, and comes back from the journal
//! at the next start; a ledger that is lost or damaged is made anew from there, unless it has the values: then it is the only
//! copy of what the journal let go.
//!
//! Invariants:
//! * the checkpoint in a ledger is as old as the newest entry on its disk: both are flushed together;
//! * a version's key and its terms change together in every view;
//! * nothing that an open view can see is collected.

mod diff;
mod entry;
mod factory;
mod index;
mod keys;
mod opening;
mod terms;
mod tree;
mod tree_files;

pub(crate) use diff::{Difference, visit_differences};
#[cfg(any(test, fuzzing))]
pub(crate) use entry::encode as encode_entry;
pub(crate) use entry::{LedgerEntry, decode as decode_entry};
pub(crate) use factory::ledger_dir;
pub use factory::{LedgerConfig, LedgerFactory};
pub(crate) use index::{CHECKPOINT, NOTES};
pub(crate) use keys::{KeyBounds, LedgerKey, note, put_escaped, put_term_prefix, store_key};
pub(crate) use opening::{check_only_copy, remove_dir};
pub(crate) use terms::{TermBounds, term_keys, visit_terms};
pub(crate) use tree::{Change, Tree, TreeShared, TreeView};
pub(crate) use tree_files::{TreeDamage, TreeFiles};
