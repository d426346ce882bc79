//! The journal: append-only files of versions. Every store on disk is built on one.
//!
//! What it is: one directory for each partition, with
//!
//! * data files with checksums (`<id>.data`; `<id>.fresh` before the first sync; `<id>.merging` for
//!   the output of a merge);
//! * the commit file of a merge (`<id>.merged`), which lives until its input files are removed;
//! * hint files (`<id>.hint`) that list the records of a data file;
//! * the identity of the store (`identity`);
//!
//! and the code for syncs (one fsync for all waiting callers), recovery, merging under an I/O
//! budget, and snapshots.
//!
//! What it is not: the journal does not know where the current version of a key lies. That is the
//! task of the [`KeyIndex`]: in memory for bitcask, an ordered ledger on disk for leveled and
//! leveldb.
//!
//! Invariants:
//! * A closed file is never appended to again.
//! * A hint file exists only if its data file was synced as a whole.
//! * An index points only at records whose write call has returned.

mod backup;
mod budget;
mod checkpoint;
mod coding;
mod config;
pub(crate) mod covered;
mod data_file;
pub(crate) mod format;
mod identity;
mod inventory_keeper;
mod inventory_of_store;
mod key_index;
mod lost_note;
mod merge;
mod promise;
mod read;
mod recovery;
mod root;
mod shared;
mod small_file;
mod snapshot;
mod space;
mod status;
mod store;
mod upkeep;
mod writer;

pub(crate) use checkpoint::{Checkpoint, FileState, is_checkpoint};
pub(crate) use coding::decompress;
pub use coding::{Compression, CompressionPoint};
pub use config::{JournalConfig, MergeConfig, MergePolicy, SyncStrategy};
pub(crate) use covered::NAME as COVERED_NAME;
pub(crate) use data_file::{data_path, fresh_path, hint_path, hint_temporary_path, merging_path, take_file_id};
pub(crate) use format::le_at;
#[cfg(any(test, fuzzing))]
pub(crate) use identity::Record as IdentityRecord;
pub(crate) use identity::begin_restored as begin_restored_identity;
pub(crate) use identity::{NAME as IDENTITY_NAME, identity_is_damaged, identity_path};
pub(crate) use key_index::{
    Compacted, Entry, Found, HEAD_UNITS_MANY, IndexFiles, IndexSizes, Keeps, KeyIndex, Loaded, Position, ReadHead,
    SweepCursor, Version,
};
pub(crate) use lost_note::{LOST_NOTE as LOST_NAME, LostNote, missing_file, place};
pub(crate) use merge::{COMMIT_SUFFIX, finish_commit, read_commit, write_commit};
#[cfg(any(test, fuzzing))]
pub(crate) use merge::{decode as decode_commit, encode as encode_commit};
pub(crate) use recovery::{Newest, hint_id, is_missed, parse_name, tree_is_behind};
pub(crate) use root::{DROPPED_SUFFIX, create_root};
pub(crate) use shared::Shared;
pub(crate) use small_file::Frame;
pub(crate) use store::Store;
