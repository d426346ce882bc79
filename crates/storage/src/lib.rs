//! Where objects lie: one store per partition, behind the [`Backend`] trait.
//!
//! What it is: bitcask (append-only files and an in-memory index) and memory, the file system behind a trait with a
//! twin that tests can break, and a reader of Riak's bitcask directories.
//!
//! What it is not: it knows nothing of clocks, siblings, buckets' properties or quorums. Keys, heads, bodies and digests
//! are bytes and numbers that come from above.
//!
//! Invariants:
//! * a version that was acknowledged is found again, or its loss is reported as an error: never a silent "not found";
//! * a store that lacks what it has durably promised does not start (`inventory`);
//! * of two versions of a key the one appended last (`seq`) wins, whatever file it lies in;
//! * a failed write or sync poisons the store: it stops acknowledging and goes on reading.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod backend;
mod backup;
pub mod bitcask;
pub mod error;
pub mod fs;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod identity;
mod inventory;
mod journal;
mod ledger;
pub mod leveldb;
pub mod leveled;
pub mod limits;
pub mod memory;
pub mod multi;
pub mod riak_bitcask;
mod seq;
pub mod verify;

pub use backend::{
    Appended, Backend, BackendFactory, Class, Detail, FoldEntry, HeadTerms, KeyRange, LastMerge, LedgerStatus, NoTerms,
    ReadMode, Scope, Snapshot, Status, Stored, TermEntry, TermRange, Write, WriteAttrs,
};
pub use backup::{CutContent, CutFile, StoreBackup, StoreCut};
pub use bitcask::BitcaskFactory;
pub use error::StorageError;
pub use identity::StoreIdentity;
pub use inventory::{InventoryConfig, begin_restored, check_root, promises_anything};
pub use journal::{Compression, CompressionPoint, JournalConfig, MergeConfig, MergePolicy, SyncStrategy};
pub use ledger::{LedgerConfig, LedgerFactory};
pub use leveldb::LeveldbFactory;
pub use leveled::LeveledFactory;
pub use memory::{MemoryConfig, MemoryFactory};
pub use multi::{MultiFactory, Selector};
pub use seq::SeqSource;
