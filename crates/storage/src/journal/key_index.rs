//! What a journal asks of the index over it: for each key, where its current version lies.
//!
//! The journal decides what is written and in which order (`seq`); an index is told of it under the writer's lock, except
//! for relocations and removals by merges, which it has to make atomic by itself.

use crate::backend::{KeyRange, LedgerStatus, ReadMode, TermRange, WriteAttrs};
use crate::backup::CutContent;
use crate::error::StorageError;
use bytes::Bytes;
use std::any::Any;
use std::path::PathBuf;

/// Longer heads are [`HEAD_UNITS_MANY`].
const HEAD_UNITS_MAX: u32 = 62;
/// In the place of the units of a head that is longer than an index says.
pub(crate) const HEAD_UNITS_MANY: u8 = 127;

/// The units of a head of `head_len` bytes.
pub(crate) fn head_units(head_len: u32) -> u8 {
    let units = head_len.div_ceil(32);
    if units <= HEAD_UNITS_MAX { units as u8 } else { HEAD_UNITS_MANY }
}

/// Where a version lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) file_id: u32,
    pub(crate) offset: u32,
    /// Length of the whole record.
    pub(crate) size: u32,
    /// The head's length in units of 32 bytes, rounded up; [`HEAD_UNITS_MANY`] when it is longer than can be said.
    pub(crate) head_units: u8,
    /// The head has index entries.
    pub(crate) has_terms: bool,
}

/// What an index knows of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    /// When it is absent by itself, in Unix seconds; 0: never.
    pub(crate) expires_secs: u32,
    pub(crate) seq: u64,
    pub(crate) digest: u64,
}

/// An index's answer: the entry and, where it holds more than that, what need not be read from the journal.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) head: Option<Bytes>,
    pub(crate) body: Option<Bytes>,
    pub(crate) attrs: Option<WriteAttrs>,
}

/// What an index may keep of a version beside its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [&'a [u8]],
    pub(crate) tstamp_secs: u32,
    /// As the writer wanted it; 0: never.
    pub(crate) expires_secs: u32,
}

/// How far a look at all entries has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct SweepCursor {
    /// In memory: a part of the index, and a place in it.
    pub(crate) shard: usize,
    pub(crate) place: u32,
    /// On disk: the last key that was looked at.
    pub(crate) passed: Option<Bytes>,
    pub(crate) is_done: bool,
}

/// How much of a version an index keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Where it lies: in memory, made anew at each start.
    Position,
    /// Its head, too: on disk.
    Head,
    /// All of it, on disk: the journal is needed only for what came after the last checkpoint.
    Everything,
}

/// What came of loading one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// It is the newest so far; the one it replaced.
    Newest(Option<Entry>),
    /// A newer one is known.
    Superseded,
}

/// Sizes of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexSizes {
    pub(crate) keys: u64,
    pub(crate) key_bytes: u64,
    /// In memory, keys included.
    pub(crate) bytes: u64,
    /// Current versions as they would lie in a journal, for an index that keeps everything.
    pub(crate) version_bytes: u64,
}

/// What one compaction of an index took and left in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
}

/// Files of an index, and what keeps them.
pub(crate) type IndexFiles = (Vec<(PathBuf, CutContent)>, Box<dyn Any + Send>);

/// Reads the head of a version of a key.
pub(crate) type ReadHead<'a> = dyn Fn(&[u8], &Entry) -> Result<Bytes, StorageError> + 'a;

/// For each key, where its current version lies.
pub(crate) trait KeyIndex: Send + Sync + 'static {
    /// A key as the index looks for it, made once a call.
    type Key<'a>: Copy;
    /// What has to be known before a version is appended, so that nothing can fail afterwards.
    type Prior<'a>;
    /// A view of one moment, and how far its walk has come.
    type View: Send;

    /// The name of a backend with this index.
    const BACKEND: &'static str;

    /// How much of a version the index keeps.
    const KEEPS: Keeps;

    fn key(bytes: &[u8]) -> Self::Key<'_>;

    /// The current version of a key; the head is of no interest.
    fn get(&self, key: Self::Key<'_>, mode: ReadMode) -> Result<Option<Found>, StorageError>;

    /// The current version of a key, with its head if that is at hand.
    fn get_head(&self, key: Self::Key<'_>, mode: ReadMode) -> Result<Option<Found>, StorageError>;

    /// Remembers a head that was read from the journal.
    fn remember_head(&self, position: Position, head: &Bytes);

    /// Before an append of a version of `key`; the writer's lock is held from here to `put` or `remove`.
    fn prior(&self, key: Self::Key<'_>) -> Result<Self::Prior<'_>, StorageError>;

    /// Takes a version that is newer than any before; the one it replaces.
    fn put(&self, key: Self::Key<'_>, entry: &Entry, version: &Version<'_>, prior: Self::Prior<'_>) -> Option<Entry>;

    /// Forgets a key.
    fn remove(&self, key: Self::Key<'_>, prior: Self::Prior<'_>) -> Option<Entry>;

    /// Forgets a key if its version satisfies `condition`.
    fn remove_if(&self, key: Self::Key<'_>, condition: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, StorageError>;

    /// Lets a version lie elsewhere; false when the key's version is not the one at `from` any more.
    fn relocate(&self, key: Self::Key<'_>, from: Position, to: Position) -> Result<bool, StorageError>;

    /// Takes a record found on disk, in any order. A tombstone has size 0 and stays until
    /// [`finish_load`](Self::finish_load). Of two copies of a version the one in the later file is taken.
    fn load(&self, key: Self::Key<'_>, entry: &Entry, version: &Version<'_>) -> Result<Loaded, StorageError>;

    /// What a load has found of a key so far, tombstones included; none where that cannot be read.
    fn loaded(&self, key: Self::Key<'_>) -> Result<Option<Entry>, StorageError>;

    /// Forgets the tombstones of a load. The store goes on behind `last_seq`.
    fn finish_load(&self, last_seq: u64) -> Result<(), StorageError>;

    /// Goes on with a look for versions that expired before `now_secs`, at about `count_max` keys; their keys. The cursor is
    /// done when all has been looked at.
    fn expired(&self, now_secs: u64, cursor: &mut SweepCursor, count_max: usize) -> Result<Vec<Bytes>, StorageError>;

    /// Work that can wait, in a bounded slice. What it compacted counts as a merge of the store.
    fn upkeep(&self) -> Result<Option<Compacted>, StorageError>;

    /// The last checkpoint that is on disk; none for an index that is in memory only.
    fn restored(&self) -> Option<Bytes> {
        None
    }

    /// Whether a version that is in the index before anything was loaded may expire by itself.
    fn may_expire(&self) -> bool {
        false
    }

    /// Whether enough has gathered in memory for a checkpoint.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// Whether it has gathered so much that writers should wait for it.
    fn is_behind(&self) -> bool {
        false
    }

    /// Takes a checkpoint of the present moment: the writer's lock is held, and no merge is at work.
    fn checkpoint(&self, _state: Bytes) {}

    /// Writes everything up to the last checkpoint: on disk when this returns.
    fn flush(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Whether an earlier checkpoint could not be written: that has to come first, or what is in memory grows with every try.
    fn has_unwritten(&self) -> bool {
        false
    }

    /// What the index has on disk, as the last [`flush`](Self::flush) left it: where each file lies and what it holds, and
    /// something that keeps them as long as it lives.
    fn files(&self) -> Result<IndexFiles, StorageError> {
        Ok((Vec::new(), Box::new(())))
    }

    /// Up to where what an index has on disk has seen the journal, where it is no checkpoint; 0: there is nothing.
    fn noted_seq(&self) -> u64 {
        0
    }

    /// Forgets everything: what is on disk does not fit the journal.
    fn begin_anew(&mut self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Removes what the index has on disk: the store is dropped.
    fn destroy(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn sizes(&self) -> IndexSizes;

    /// What there is of it on disk.
    fn ledger(&self) -> Option<LedgerStatus> {
        None
    }

    /// Begins a view of everything up to `seq`. The writer's lock is held.
    fn view(&self, seq: u64) -> Result<Self::View, StorageError>;

    fn end_view(&self, view: &Self::View);

    /// The version of a key that a view shows.
    fn get_at(&self, key: Self::Key<'_>, view: &Self::View, mode: ReadMode) -> Result<Option<Found>, StorageError>;

    /// Goes on with a view's walk until `visit` says that it has enough or all is seen. May visit keys that do not begin
    /// with `prefix`.
    fn walk(
        &self,
        view: &mut Self::View,
        prefix: &[u8],
        visit: impl FnMut(&[u8], Found) -> bool,
    ) -> Result<(), StorageError>;

    /// Whether [`make_order`](Self::make_order) has something to do that was asked for.
    fn wants_order(&self) -> bool {
        false
    }

    /// Goes on making what [`keys_in_order`](Self::keys_in_order) and [`terms_in_order`](Self::terms_in_order) need, by about
    /// `count_max` keys; true when it is there. `read_head` reads the head of a version.
    fn make_order(&self, count_max: usize, read_head: &ReadHead<'_>) -> Result<bool, StorageError>;

    /// Visits keys (whole ones) of a bucket in order until `visit` has enough.
    fn keys_in_order(
        &self,
        view: &Self::View,
        range: &KeyRange<'_>,
        visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> Result<(), StorageError>;

    /// Visits index entries, term and key within the bucket, in order until `visit` has enough.
    fn terms_in_order(
        &self,
        view: &Self::View,
        range: &TermRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError>;
}
