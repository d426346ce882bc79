//! The interface that the journal needs from the index over it: for each key, where its current
//! version lies.
//!
//! The journal decides what is written and in which order (`seq`). It calls the index under the
//! writer's lock, except for relocations and removals by merges, which the index must make atomic
//! by itself.

use crate::backend::{KeyRange, LedgerStatus, ReadMode, TermRange, WriteAttrs};
use crate::backup::CutContent;
use crate::error::StorageError;
use bytes::Bytes;
use std::any::Any;
use std::path::PathBuf;

/// The longest head in units; longer heads are stored as [`HEAD_UNITS_MANY`].
const HEAD_UNITS_MAX: u32 = 62;
/// Marks a head that is longer than an index can record.
pub(crate) const HEAD_UNITS_MANY: u8 = 127;

/// The length of a head in units of 32 bytes.
pub(crate) fn head_units(head_len: u32) -> u8 {
    let units = head_len.div_ceil(32);
    if units <= HEAD_UNITS_MAX { units as u8 } else { HEAD_UNITS_MANY }
}

/// Where a version lies in the data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) file_id: u32,
    pub(crate) offset: u32,
    /// Length of the whole record in bytes.
    pub(crate) size: u32,
    /// The length of the head in units of 32 bytes, rounded up; [`HEAD_UNITS_MANY`] if it is too
    /// long to be recorded.
    pub(crate) head_units: u8,
    /// Whether the head has index entries.
    pub(crate) has_terms: bool,
}

/// What an index stores about a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    /// When the version expires, in Unix seconds; 0: never.
    pub(crate) expires_secs: u32,
    pub(crate) seq: u64,
    pub(crate) digest: u64,
}

/// The answer of an index: the entry and, if the index keeps more, the parts that need not be read
/// from the journal.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) head: Option<Bytes>,
    pub(crate) body: Option<Bytes>,
    pub(crate) attrs: Option<WriteAttrs>,
}

/// The parts of a version that an index may keep besides its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [&'a [u8]],
    pub(crate) tstamp_secs: u32,
    /// As the writer asked; 0: never.
    pub(crate) expires_secs: u32,
}

/// The progress of a sweep over all entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct SweepCursor {
    /// For an index in memory: the shard, and the place in it.
    pub(crate) shard: usize,
    pub(crate) place: u32,
    /// For an index on disk: the last key that was visited.
    pub(crate) passed: Option<Bytes>,
    pub(crate) is_done: bool,
}

/// How much of a version an index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// The position of the version, in memory. The index is rebuilt at each start.
    Position,
    /// The position and the head, on disk.
    Head,
    /// The whole version, on disk. The journal is needed only for the appends after the last
    /// checkpoint.
    Everything,
}

/// The result of loading one record into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// It is the newest version of its key so far; holds the entry that it replaced.
    Newest(Option<Entry>),
    /// A newer version is known.
    Superseded,
}

/// Sizes of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexSizes {
    pub(crate) keys: u64,
    pub(crate) key_bytes: u64,
    /// Memory in bytes, keys included.
    pub(crate) bytes: u64,
    /// Bytes of the current versions as records of a journal, for an index that keeps everything.
    pub(crate) version_bytes: u64,
}

/// Input and output sizes of one compaction of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
}

/// The files of an index, and a value that keeps them in place while it lives.
pub(crate) type IndexFiles = (Vec<(PathBuf, CutContent)>, Box<dyn Any + Send>);

/// Reads the head of a version of a key.
pub(crate) type ReadHead<'a> = dyn Fn(&[u8], &Entry) -> Result<Bytes, StorageError> + 'a;

/// An index that knows, for each key, where its current version lies.
pub(crate) trait KeyIndex: Send + Sync + 'static {
    /// A key in the form that the index uses for look-ups, computed once for each call.
    type Key<'a>: Copy;
    /// What the index must read before a version is appended, so that nothing can fail after the
    /// append.
    type Prior<'a>;
    /// A snapshot of the index, with the progress of its walk.
    type View: Send;

    /// The name of the backend that uses this index.
    const BACKEND: &'static str;

    /// How much of a version the index keeps.
    const KEEPS: Keeps;

    fn key(bytes: &[u8]) -> Self::Key<'_>;

    /// The current version of a key. The caller does not need the head.
    fn get(&self, key: Self::Key<'_>, mode: ReadMode) -> Result<Option<Found>, StorageError>;

    /// The current version of a key, with its head if the index has it.
    fn get_head(&self, key: Self::Key<'_>, mode: ReadMode) -> Result<Option<Found>, StorageError>;

    /// Caches a head that was read from the journal.
    fn remember_head(&self, position: Position, head: &Bytes);

    /// Prepares an append of a version of `key`. The writer's lock is held from here to `put` or
    /// `remove`.
    fn prior(&self, key: Self::Key<'_>) -> Result<Self::Prior<'_>, StorageError>;

    /// Stores a version that is newer than any before; returns the entry that it replaces.
    fn put(&self, key: Self::Key<'_>, entry: &Entry, version: &Version<'_>, prior: Self::Prior<'_>) -> Option<Entry>;

    /// Removes a key.
    fn remove(&self, key: Self::Key<'_>, prior: Self::Prior<'_>) -> Option<Entry>;

    /// Removes a key if its version satisfies `condition`.
    fn remove_if(&self, key: Self::Key<'_>, condition: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, StorageError>;

    /// Changes the position of a version; false if the key's version is no longer the one at
    /// `from`.
    fn relocate(&self, key: Self::Key<'_>, from: Position, to: Position) -> Result<bool, StorageError>;

    /// Loads a record that was found on disk. Records come in any order. A tombstone has size 0 and
    /// stays until [`finish_load`](Self::finish_load). Of two copies of a version, the one in the
    /// file with the higher id is taken.
    fn load(&self, key: Self::Key<'_>, entry: &Entry, version: &Version<'_>) -> Result<Loaded, StorageError>;

    /// The newest entry of a key that the load has found so far, tombstones included; none if the
    /// index cannot read it.
    fn loaded(&self, key: Self::Key<'_>) -> Result<Option<Entry>, StorageError>;

    /// Removes the tombstones of a load. The next append of the store gets a number above
    /// `last_seq`.
    fn finish_load(&self, last_seq: u64) -> Result<(), StorageError>;

    /// Continues a sweep for versions that expired before `now_secs`, by about `count_max` keys,
    /// and returns the keys of such versions. The cursor is done when all keys were visited.
    fn expired(&self, now_secs: u64, cursor: &mut SweepCursor, count_max: usize) -> Result<Vec<Bytes>, StorageError>;

    /// Does a bounded amount of background work. A compaction counts as a merge of the store.
    fn upkeep(&self) -> Result<Option<Compacted>, StorageError>;

    /// The last checkpoint that is on disk; none for an index that is only in memory.
    fn restored(&self) -> Option<Bytes> {
        None
    }

    /// Whether a version that was in the index before anything was loaded may expire.
    fn may_expire(&self) -> bool {
        false
    }

    /// Whether enough data has gathered in memory for a checkpoint.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// Whether so much data has gathered that writers should wait for the index.
    fn is_behind(&self) -> bool {
        false
    }

    /// Takes a checkpoint of the present state. The writer's lock is held, and no merge is running.
    fn checkpoint(&self, _state: Bytes) {}

    /// Writes everything up to the last checkpoint. It is on disk when this returns.
    fn flush(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Whether an earlier checkpoint could not be written. It must be written first; otherwise
    /// memory grows with every attempt.
    fn has_unwritten(&self) -> bool {
        false
    }

    /// The files of the index on disk, as the last [`flush`](Self::flush) left them: the path and
    /// the content of each, and a value that keeps them in place while it lives.
    fn files(&self) -> Result<IndexFiles, StorageError> {
        Ok((Vec::new(), Box::new(())))
    }

    /// Up to which `seq` the files of an index have seen the journal, for an index without a
    /// checkpoint; 0: there are no files.
    fn noted_seq(&self) -> u64 {
        0
    }

    /// Empties the index, because its files on disk do not match the journal.
    fn begin_anew(&mut self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Removes the index's files on disk, because the store is dropped.
    fn destroy(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn sizes(&self) -> IndexSizes;

    /// Sizes of the index on disk, if it has any files.
    fn ledger(&self) -> Option<LedgerStatus> {
        None
    }

    /// Begins a snapshot of everything up to `seq`. The writer's lock is held.
    fn view(&self, seq: u64) -> Result<Self::View, StorageError>;

    fn end_view(&self, view: &Self::View);

    /// The version of a key in a snapshot.
    fn get_at(&self, key: Self::Key<'_>, view: &Self::View, mode: ReadMode) -> Result<Option<Found>, StorageError>;

    /// Continues the walk of a snapshot until `visit` returns false (it has enough) or all keys
    /// were visited. May visit keys that do not begin with `prefix`.
    fn walk(
        &self,
        view: &mut Self::View,
        prefix: &[u8],
        visit: impl FnMut(&[u8], Found) -> bool,
    ) -> Result<(), StorageError>;

    /// Whether somebody asked for the ordered index and [`make_order`](Self::make_order) has not
    /// completed it.
    fn wants_order(&self) -> bool {
        false
    }

    /// Continues to build what [`keys_in_order`](Self::keys_in_order) and
    /// [`terms_in_order`](Self::terms_in_order) need, by about `count_max` keys; true when it is
    /// complete. `read_head` reads the head of a version.
    fn make_order(&self, count_max: usize, read_head: &ReadHead<'_>) -> Result<bool, StorageError>;

    /// Visits the storage keys of a bucket in order until `visit` has enough.
    fn keys_in_order(
        &self,
        view: &Self::View,
        range: &KeyRange<'_>,
        visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> Result<(), StorageError>;

    /// Visits index entries in order until `visit` has enough. `visit` gets the term, and the key
    /// within the bucket.
    fn terms_in_order(
        &self,
        view: &Self::View,
        range: &TermRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError>;
}
