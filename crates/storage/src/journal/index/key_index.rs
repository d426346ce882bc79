//! What the journal needs from every index.

use super::entry::{Compacted, Entry, IndexAnswer, IndexSizes, Loaded, Position, SweepCursor, Version};
use super::ordered_index::TermsSource;
use super::tables::{IndexDamage, IndexTables};
use crate::backend::{LedgerStatus, ReadMode};
use crate::error::StorageError;
use crate::fold::Scope;
use crate::seq::SeqSource;
use crate::terms_check::{TermCursor, TermStep};
use bytes::Bytes;
use std::io;
use std::path::Path;

/// An index that knows, for each key, where its current version lies.
pub(crate) trait KeyIndex: Send + Sync + 'static {
    /// A key in the form that the index uses for look-ups, computed once for each call.
    type Key<'a>: Copy;
    /// What the index must read before a version is appended, so that nothing can fail after the
    /// append.
    type EntryBeforeWrite<'a>;
    /// A snapshot of the index, with the progress of its walk.
    type View: Send;

    fn key(bytes: &[u8]) -> Self::Key<'_>;

    /// The current version of a key. The caller does not need the head.
    fn get(&self, key: Self::Key<'_>, mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError>;

    /// The current version of a key, with its head if the index has it.
    fn get_head(&self, key: Self::Key<'_>, mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError>;

    /// Takes a head that had to be read from the journal, for later calls of
    /// [`get_head`](Self::get_head).
    fn cache_head(&self, position: Position, head: &Bytes);

    /// Prepares an append of a version of `key`. The writer's lock is held from here to `put` or
    /// `remove`.
    fn read_before_write(&self, key: Self::Key<'_>) -> Result<Self::EntryBeforeWrite<'_>, StorageError>;

    /// Whether the index has an entry of the key that it cannot read. An append overwrites it.
    fn is_unknown(before: &Self::EntryBeforeWrite<'_>) -> bool;

    /// Stores a version that is newer than any before; returns the entry that it replaces.
    fn put(
        &self,
        key: Self::Key<'_>,
        entry: &Entry,
        version: &Version<'_>,
        before: Self::EntryBeforeWrite<'_>,
    ) -> Option<Entry>;

    /// Removes a key.
    fn remove(&self, key: Self::Key<'_>, before: Self::EntryBeforeWrite<'_>) -> Option<Entry>;

    /// Removes a key if its version satisfies `condition`. The writer's lock is held, except during
    /// a load.
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

    /// Removes the tombstones of a load, which has found appends up to `last_seq`. Later appends
    /// get their numbers from `seqs`.
    fn finish_load(&self, last_seq: u64, seqs: &SeqSource) -> Result<(), StorageError>;

    /// Continues a sweep for versions that expired before `now_secs`, by about `count_max` keys,
    /// and returns the keys of such versions. The cursor is done when all keys were visited.
    fn expired(&self, now_secs: u64, cursor: &mut SweepCursor, count_max: usize) -> Result<Vec<Bytes>, StorageError>;

    /// Does a bounded amount of background work. A compaction that is returned counts as a merge of
    /// the store.
    fn do_background_work(&self) -> Result<Option<Compacted>, StorageError>;

    /// Removes the index's files on disk, because the store is dropped.
    fn destroy(&self) -> Result<(), StorageError>;

    /// Compares index entries with the heads of their keys, and mends what differs
    /// ([`crate::Backend::check_terms`]). An order that has to be built first is complete.
    fn check_terms(
        &self,
        cursor: &TermCursor,
        count_max: usize,
        source: &TermsSource<'_>,
    ) -> Result<TermStep, StorageError>;

    fn sizes(&self) -> IndexSizes;

    /// Sizes of the index on disk; none if it has no files there.
    fn ledger_status(&self) -> Option<LedgerStatus>;

    /// The tables that the index has on disk now; none without files there.
    fn tables_on_disk(&self) -> IndexTables;

    /// Whether the list of its tables on disk is damaged.
    fn check_tables_list(&self) -> Result<Option<IndexDamage>, StorageError>;

    /// The damaged parts of a table that does not match its checksum.
    fn damaged_blocks(path: &Path) -> io::Result<Vec<IndexDamage>>;

    /// Notes damage that was found on disk. Returns what becomes of it, in words.
    fn note_damage_on_disk(&self, damage: &IndexDamage) -> &'static str;

    /// Begins a snapshot of everything up to `seq`. The writer's lock is held.
    fn view(&self, seq: u64) -> Result<Self::View, StorageError>;

    fn end_view(&self, view: &Self::View);

    /// The version of a key in a snapshot.
    fn get_at(
        &self,
        key: Self::Key<'_>,
        view: &Self::View,
        mode: ReadMode,
    ) -> Result<Option<IndexAnswer>, StorageError>;

    /// The entries of keys in a snapshot: one answer for each key, in the order of `keys`. They may
    /// be in any order, and a key may be there twice. Blocks.
    fn entries_at(&self, keys: &[&[u8]], view: &Self::View) -> Result<Vec<Option<Entry>>, StorageError> {
        let entry = |key: &&[u8]| Ok(self.get_at(Self::key(key), view, ReadMode::Blocking)?.map(|found| found.entry));
        keys.iter().map(entry).collect()
    }

    /// Continues the walk of a snapshot until `visit` returns false (it has enough) or all keys
    /// were visited. May visit keys that are not in the scope; may skip only such keys.
    fn walk(
        &self,
        view: &mut Self::View,
        scope: &Scope<'_>,
        visit: impl FnMut(&[u8], IndexAnswer) -> bool,
    ) -> Result<(), StorageError>;
}
