//! The storage layer: one store for each partition, behind the [`Backend`] trait.
//!
//! What it is: the backends `bitcask`, `leveled`, `leveldb` and `memory`; `multi`, which puts
//! several of them behind one store; the `journal` and the ledger that the backends on disk are
//! built from; bodies that grow in `parted`; the inventory that finds missing files; the
//! verification and repair of stores, and the scrubbing of running ones; the change feed; and the
//! file system behind a trait, with a simulated one that tests can break.
//!
//! What it is not: this crate does not know clocks, siblings, bucket properties or quorums. Keys,
//! heads, bodies and digests come from the layer above and are opaque bytes and numbers here.
//!
//! Invariants:
//! * A version that was acknowledged is found again, or its loss is reported as an error. It is
//!   never silently "not found".
//! * A store that lacks something it has durably promised does not start (`inventory`).
//! * Of two versions of a key, the one that was appended last (the higher `seq`) wins, whichever
//!   files they lie in.
//! * A store gives no sequence number twice, whatever it has lost (`seq`).
//! * A failed write or sync poisons the store: it acknowledges no further writes, and reads go on.
//! * A place that the disk does not give back makes the versions in it unreadable, each for itself.
//!   Many such places within a minute poison the store, and are no matter of single versions.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod append_marks;
pub mod backend;
mod backup;
pub mod bitcask;
mod drops;
pub mod error;
pub mod feed;
mod fold;
pub mod fs;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod identity;
mod inventory;
mod journal;
mod key_hash;
mod ledger;
pub mod leveldb;
pub mod leveled;
pub mod limits;
mod machine;
pub mod memory;
pub mod multi;
mod openings;
mod parted;
mod polite_lock;
mod receipt;
pub mod scrub;
mod seq;
mod terms_check;
mod unreadable;
pub mod verify;

pub use append_marks::AppendMarks;
pub use backend::{
    Backend, BackendFactory, HeadTerms, LastMerge, LedgerStatus, NoTerms, ReadMode, Status, Stored, Write,
};
pub use backup::{CutContent, CutFile, StoreBackup, StoreCut};
pub use bitcask::BitcaskFactory;
pub use drops::DropObserver;
pub use error::StorageError;
pub use feed::{
    Change, Changes, ChangesQuery, ChangesSince, CursorLost, FeedCursor, FeedStep, KeyState, Origin, Reach,
};
pub use fold::{Class, Detail, Expired, FoldEntry, KeyRange, Scope, Snapshot, TermEntry, TermRange, WriteAttrs};
pub use identity::StoreIdentity;
pub use inventory::{InventoryConfig, begin_restored, check_root, has_moved_to, promises_anything};
pub use journal::{Compression, CompressionPoint, JournalConfig, MergeConfig, MergePolicy, SyncStrategy};
pub use key_hash::{KEY_HASH_VERSION, KeyHashRange, key_hash};
pub use ledger::LedgerConfig;
pub use leveldb::LeveldbFactory;
pub use leveled::LeveledFactory;
pub use machine::{Machine, RealMachine};
pub use memory::{MemoryConfig, MemoryFactory};
pub use multi::{MultiFactory, Selector};
pub use openings::{OPENINGS_MAX, Opening, Openings};
pub use receipt::{Appended, IndexedVersion, Previous};
pub use scrub::{ScrubCursor, ScrubFound, ScrubLimits, ScrubStep};
pub use seq::SeqSource;
pub use terms_check::{TermCursor, TermStep};
pub use unreadable::UnreadableObserver;
