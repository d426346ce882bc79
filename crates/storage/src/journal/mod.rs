//! The journal: append-only files of versions. Every store on disk is built on one.
//!
//! What it is: one directory for each partition, with
//!
//! * data files with checksums (`<id>.data`; `<id>.fresh` before the first sync; `<id>.merging` for
//!   the output of a merge);
//! * the commit file of a merge (`<id>.merged`), which lives until its input files are removed;
//! * hint files (`<id>.hint`) that list the records of a data file;
//! * the identity of the store (`identity`);
//! * which storage tombstones merges have dropped, once the store has had a consumer of its change
//!   feed (`feed`);
//!
//! and the code for syncs (one fsync for all waiting callers), recovery, merging under an I/O
//! budget, scrubbing, and snapshots.
//!
//! What it is not: the journal does not know where the current version of a key lies. That is the
//! task of the [`KeyIndex`]: in memory for bitcask, an ordered ledger on disk for
//! leveled and leveldb.
//!
//! Invariants:
//! * A closed file is never appended to again.
//! * A hint file exists only if its data file was synced as a whole.
//! * An index points only at records whose write call has returned.
//!
//! Calls go one way: `background` schedules work and calls `merge`, and both call `store`. Each
//! backend has a policy (`policy`) that says what differs for it. The code here has no switch
//! between backends.

mod background;
mod backup;
mod budget;
mod checkpoint;
mod coding;
mod config;
mod data_file;
mod feed;
pub(crate) mod format;
mod identity;
mod index;
pub(crate) mod index_must_have_seen;
mod inventory_keeper;
mod inventory_of_store;
mod lost_note;
mod media_errors;
mod merge;
mod openings_file;
mod policy;
mod read;
mod recovery;
mod root;
mod scrub;
mod shared;
mod small_file;
mod snapshot;
mod space;
mod status;
mod store;
mod synced_extent;
mod writer;

pub(crate) use background::{MergeScheduler, RoomRetry};
pub(crate) use backup::JournalFiles;
pub(crate) use checkpoint::{Checkpoint, FileState, is_checkpoint};
pub(crate) use coding::decompress;
pub use coding::{Compression, CompressionPoint};
pub use config::{JournalConfig, MergeConfig, MergePolicy, SyncStrategy};
pub(crate) use data_file::{data_path, hint_path, hint_temporary_path, merging_path, take_file_id, unsynced_path};
pub(crate) use format::le_at;
#[cfg(any(test, fuzzing))]
pub(crate) use identity::Record as IdentityRecord;
pub(crate) use identity::begin_restored as begin_restored_identity;
pub(crate) use identity::{NAME as IDENTITY_NAME, identity_is_damaged, identity_path};
pub(crate) use index::{
    Compacted, Entry, HEAD_UNITS_MANY, IndexAnswer, IndexDamage, IndexSizes, IndexTable, IndexTables, KeyIndex, Loaded,
    OrderedIndex, PersistentIndex, Position, ReadHead, SweepCursor, TermsSource, Version,
};
pub(crate) use index_must_have_seen::NAME as INDEX_MUST_HAVE_SEEN_NAME;
pub(crate) use lost_note::{LOST_NOTE as LOST_NAME, LostNote, missing_file, place_fingerprint};
pub(crate) use merge::{COMMIT_SUFFIX, finish_commit, read_commit, write_commit};
#[cfg(any(test, fuzzing))]
pub(crate) use merge::{decode as decode_commit, encode as encode_commit};
pub(crate) use policy::{BackupFiles, DataSizes, JournalPolicy, RecordParts, RecoveryPolicy};
pub(crate) use recovery::{FoundFiles, Losses, LostSeqs, Newest, hint_id, is_lost_version, parse_name};
pub(crate) use root::{DROPPED_SUFFIX, create_root};
pub(crate) use shared::Shared;
pub(crate) use small_file::Frame;
pub(crate) use store::{Core, Store};
pub(crate) use synced_extent::has_appends;
pub(crate) use writer::Writer;
