//! A ledger as the index over a journal. A key's entry (with its head) and its index terms change
//! together.
//!
//! Invariant: `writes` is held from the read of a key's entry to the change that is based on it, so
//! that a merge and a put of the same key do not miss each other's changes.

use super::differences::{Difference, visit_differences};
use super::entry::{self, LedgerEntry};
use super::keys::{KeyBounds, LedgerKey, after_prefix, keys_from, note, store_key};
use super::opening::open_usable;
use super::terms::{term_keys, visit_terms};
use super::terms_check::CheckedTree;
use super::tree::{Change, Tree, TreeFiles, TreeShared, TreeView};
use crate::backend::{HeadTerms, LedgerStatus, ReadMode};
use crate::error::StorageError;
use crate::fold::{KeyRange, Scope, TermRange, WriteAttrs};
use crate::journal::{
    Compacted, Entry, IndexAnswer, IndexDamage, IndexSizes, IndexTables, JournalConfig, KeyIndex, Loaded, OrderedIndex,
    Position, ReadHead, SweepCursor, TermsSource, Version,
};
use crate::seq::SeqSource;
use crate::terms_check::{TermCursor, TermStep};
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The note that says how far the ledger has seen the journal.
pub(crate) const CHECKPOINT: &[u8] = b"checkpoint";
/// The note of an order of bitcask: how far it has seen the journal, a `seq`.
pub(crate) const ORDERED_UP_TO: &[u8] = b"order";
pub(super) const SIZES: &[u8] = b"sizes";
const EXPIRES: &[u8] = b"expires";
/// The notes that a ledger stores about itself.
pub(crate) const NOTES: [&[u8]; 3] = [CHECKPOINT, SIZES, EXPIRES];

/// The most tombstones of a load that are remembered one by one. With more, the end of the load
/// scans the whole ledger for tombstones.
const TOMBSTONES_LISTED_MAX: usize = 100_000;
/// With more runs of tables than this in the first level, writers wait, because each read has to
/// look into all of them.
const FIRST_LEVEL_RUNS_MAX: usize = 16;
/// How many keys a scan for tombstones visits before it applies its changes.
const SWEEP_BATCH: usize = 1000;

/// What the ledgers of a root share.
pub(crate) struct LedgerShared {
    pub(crate) trees: TreeShared,
    pub(crate) terms: Arc<dyn HeadTerms>,
    /// Bytes that a ledger gathers in memory before it writes them.
    pub(crate) memory_bytes_max: u64,
    /// While all ledgers together are smaller than this on disk, they are assumed to be in the page
    /// cache.
    pub(crate) cached_bytes_max: u64,
    pub(crate) journal: JournalConfig,
    disk_bytes: AtomicU64,
}

impl LedgerShared {
    pub(crate) fn new(
        trees: TreeShared,
        terms: Arc<dyn HeadTerms>,
        memory_bytes_max: u64,
        cached_bytes_max: u64,
        journal: JournalConfig,
    ) -> Self {
        Self { trees, terms, memory_bytes_max, cached_bytes_max, journal, disk_bytes: AtomicU64::new(0) }
    }
}

/// The index of a store with a ledger. With `HAS_VALUES`, the ledger has the bodies, too.
pub(crate) struct LedgerIndex<const HAS_VALUES: bool> {
    pub(super) shared: Arc<LedgerShared>,
    pub(super) dir: PathBuf,
    pub(super) tree: Tree,
    pub(super) writes: Mutex<()>,
    pub(super) keys: AtomicU64,
    pub(super) key_bytes: AtomicU64,
    pub(super) version_bytes: AtomicU64,
    tombstones: Mutex<Tombstones>,
    /// The part of the shared count that this tree has added.
    disk_bytes: AtomicU64,
    /// Whether compaction has not kept up.
    pub(super) has_many_tables: AtomicBool,
    /// Whether the ledger notes, also on disk, that it holds versions that expire.
    pub(super) expires: AtomicBool,
}

/// Keys of which a load has found a tombstone.
#[derive(Default)]
struct Tombstones {
    listed: Vec<Bytes>,
    overflown: bool,
}

/// A key's entry before a write. While this lives, no other thread can change the entry.
pub(crate) struct EntryBeforeWrite<'a> {
    _writes: MutexGuard<'a, ()>,
    entry: Option<LedgerEntry>,
    /// Whether there is an entry that cannot be read.
    is_unknown: bool,
}

/// A snapshot of the ledger, and the last key that its walk has passed.
pub(crate) struct LedgerView {
    pub(super) tree: TreeView,
    passed: Option<Bytes>,
}

impl<const HAS_VALUES: bool> LedgerIndex<HAS_VALUES> {
    /// Opens the ledger in a directory, whatever state it is in.
    pub(crate) fn open(dir: &Path, shared: &Arc<LedgerShared>) -> Result<Self, StorageError> {
        Self::with_tree(open_usable(dir, &shared.trees, HAS_VALUES)?, dir, shared)
    }

    pub(super) fn with_tree(tree: Tree, dir: &Path, shared: &Arc<LedgerShared>) -> Result<Self, StorageError> {
        let expires = shared.journal.expiry_secs.is_some() || tree.get(&note(EXPIRES))?.is_some();
        let sizes = tree.get(&note(SIZES))?;
        let count = |n: usize| {
            let bytes = sizes.as_ref().and_then(|sizes| sizes.get(n * 8..n * 8 + 8)).and_then(|b| b.try_into().ok());
            AtomicU64::new(bytes.map_or(0, u64::from_le_bytes))
        };
        let index = Self {
            shared: shared.clone(),
            dir: dir.to_owned(),
            keys: count(0),
            key_bytes: count(1),
            version_bytes: count(2),
            tree,
            writes: Mutex::default(),
            tombstones: Mutex::default(),
            disk_bytes: AtomicU64::new(0),
            has_many_tables: AtomicBool::new(false),
            expires: AtomicBool::new(expires),
        };
        index.note_tables();
        Ok(index)
    }

    pub(super) fn note_tables(&self) {
        self.has_many_tables.store(self.tree.first_level_tables() > FIRST_LEVEL_RUNS_MAX, Ordering::Relaxed);
        let now = self.tree.disk_bytes();
        let before = self.disk_bytes.swap(now, Ordering::Relaxed);
        self.shared.disk_bytes.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether the ledger may be read in this mode. The library cannot say whether a block is in
    /// memory, so reads that must not wait are allowed only while all ledgers are small.
    fn check_mode(&self, mode: ReadMode) -> Result<(), StorageError> {
        let small = self.shared.disk_bytes.load(Ordering::Relaxed) <= self.shared.cached_bytes_max;
        if small || mode == ReadMode::Blocking { Ok(()) } else { Err(StorageError::WouldBlock) }
    }

    fn entry(&self, key: &LedgerKey) -> Result<Option<LedgerEntry>, StorageError> {
        self.tree.get(&key.bytes)?.map(|bytes| self.decode(&bytes)).transpose()
    }

    pub(super) fn decode(&self, bytes: &Bytes) -> Result<LedgerEntry, StorageError> {
        let mut decoded = entry::decode(bytes).ok_or_else(|| self.tree.damaged("an entry that cannot be read"))?;
        decoded.entry.expires_secs = self.shared.journal.expires_at(decoded.tstamp_secs, decoded.entry.expires_secs);
        Ok(decoded)
    }

    pub(super) fn answer(entry: LedgerEntry) -> Option<IndexAnswer> {
        (entry.entry.position.size != 0).then_some(IndexAnswer {
            entry: entry.entry,
            head: Some(entry.head),
            body: entry.body,
            attrs: Some(WriteAttrs {
                tstamp_secs: entry.tstamp_secs,
                expires_secs: entry.wanted_expires_secs,
                has_terms: entry.entry.position.has_terms,
            }),
        })
    }

    /// Replaces a key's entry and its index terms.
    fn replace(&self, key: &[u8], old: Option<&LedgerEntry>, new: Option<(&Entry, &Version<'_>)>) {
        let ledger_key = LedgerKey::of_key(key);
        let mut changes: Vec<Change> = Vec::with_capacity(1);
        let old_head = old.filter(|old| old.entry.position.has_terms).map_or(&[][..], |old| &old.head);
        let new_head = new.filter(|(entry, _)| entry.position.has_terms).map_or(&[][..], |(_, version)| version.head);
        if !old_head.is_empty() || !new_head.is_empty() {
            self.change_terms(key, old_head, new_head, &mut changes);
        }
        let value = new.map(|(entry, version)| {
            let wanted = Entry { expires_secs: version.expires_secs, ..*entry };
            entry::encode(&ledger_key, &wanted, version.tstamp_secs, version.head, HAS_VALUES.then_some(version.body))
        });
        changes.push((ledger_key.bytes, value));
        let expires = new.is_some_and(|(_, version)| version.expires_secs != 0);
        if expires && !self.expires.swap(true, Ordering::Relaxed) {
            changes.push((note(EXPIRES), Some(Bytes::new())));
        }
        self.tree.apply(changes);
        let size = |entry: Option<&Entry>| entry.map_or(0, |entry| u64::from(entry.position.size));
        self.version_bytes.fetch_add(size(new.map(|(entry, _)| entry)), Ordering::Relaxed);
        self.version_bytes.fetch_sub(size(old.map(|old| &old.entry)), Ordering::Relaxed);
        let (had, has) =
            (old.is_some_and(|old| old.entry.position.size != 0), new.is_some_and(|(e, _)| e.position.size != 0));
        match (had, has) {
            (false, true) => {
                self.keys.fetch_add(1, Ordering::Relaxed);
                self.key_bytes.fetch_add(key.len() as u64, Ordering::Relaxed);
            }
            (true, false) => {
                self.keys.fetch_sub(1, Ordering::Relaxed);
                self.key_bytes.fetch_sub(key.len() as u64, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    fn change_terms(&self, key: &[u8], old_head: &[u8], new_head: &[u8], changes: &mut Vec<Change>) {
        let terms = &*self.shared.terms;
        let (old, new) = (term_keys(key, old_head, terms), term_keys(key, new_head, terms));
        visit_differences(
            &old,
            &new,
            |one, other| one.bytes.cmp(&other.bytes),
            |difference| {
                changes.push(match difference {
                    Difference::Removed(term) => (term.bytes.clone(), None),
                    Difference::Added(term) => (term.bytes.clone(), Some(term.whole.clone().unwrap_or_default())),
                });
            },
        );
    }

    /// Visits entries with their ledger key and key.
    fn visit_entries(
        &self,
        view: &TreeView,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mut visit: impl FnMut(&[u8], &[u8], IndexAnswer) -> bool,
    ) -> Result<(), StorageError> {
        let mut failed = None;
        self.tree.scan(view, from, to, |ledger_key, value| {
            let entry = match self.decode(&value) {
                Ok(entry) => entry,
                Err(error) => {
                    failed = Some(error);
                    return false;
                }
            };
            let whole = entry.whole_key.clone();
            match (store_key(whole.as_deref().unwrap_or(ledger_key)), Self::answer(entry)) {
                (Some(key), Some(found)) => visit(ledger_key, key, found),
                _ => true,
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn remember_tombstone(&self, key: &[u8]) {
        let mut tombstones = self.tombstones.lock();
        if tombstones.listed.len() < TOMBSTONES_LISTED_MAX {
            tombstones.listed.push(Bytes::copy_from_slice(key));
        } else {
            tombstones.overflown = true;
        }
    }

    /// Scans the whole ledger and removes the entries of tombstones that a load has found.
    fn sweep_tombstones(&self) -> Result<(), StorageError> {
        let mut passed: Option<Bytes> = None;
        loop {
            let view = self.tree.view();
            let from = keys_from(&[]);
            let to = after_prefix(&from);
            let mut gone: Vec<Change> = Vec::new();
            let mut visited = 0;
            let start = passed.clone();
            let bounds = (lower(start.as_ref(), &from), upper(to.as_ref()));
            self.tree.scan(&view, bounds.0, bounds.1, |key, value| {
                if entry::decode(&value).is_some_and(|entry| entry.entry.position.size == 0) {
                    gone.push((Bytes::copy_from_slice(key), None));
                }
                passed = Some(Bytes::copy_from_slice(key));
                visited += 1;
                visited < SWEEP_BATCH
            })?;
            drop(view);
            self.tree.apply(gone);
            if visited < SWEEP_BATCH {
                return Ok(());
            }
        }
    }
}

impl<const HAS_VALUES: bool> Drop for LedgerIndex<HAS_VALUES> {
    fn drop(&mut self) {
        self.shared.disk_bytes.fetch_sub(self.disk_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl<const HAS_VALUES: bool> KeyIndex for LedgerIndex<HAS_VALUES> {
    type Key<'a> = &'a [u8];
    type EntryBeforeWrite<'a> = EntryBeforeWrite<'a>;
    type View = LedgerView;

    fn key(bytes: &[u8]) -> &[u8] {
        bytes
    }

    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError> {
        self.check_mode(mode)?;
        Ok(self.entry(&LedgerKey::of_key(key))?.and_then(Self::answer))
    }

    fn get_head(&self, key: &[u8], mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError> {
        self.get(key, mode)
    }

    /// A ledger has all heads itself.
    fn cache_head(&self, _position: Position, _head: &Bytes) {}

    fn read_before_write(&self, key: &[u8]) -> Result<EntryBeforeWrite<'_>, StorageError> {
        let writes = self.writes.lock();
        let (entry, is_unknown) = match self.entry(&LedgerKey::of_key(key)) {
            // An entry that cannot be read may be overwritten.
            Err(error) if error.is_unreadable_version() => (None, true),
            entry => (entry?, false),
        };
        Ok(EntryBeforeWrite { _writes: writes, entry, is_unknown })
    }

    fn is_unknown(before: &EntryBeforeWrite<'_>) -> bool {
        before.is_unknown
    }

    fn put(&self, key: &[u8], entry: &Entry, version: &Version<'_>, before: EntryBeforeWrite<'_>) -> Option<Entry> {
        self.replace(key, before.entry.as_ref(), Some((entry, version)));
        before.entry.map(|old| old.entry)
    }

    fn remove(&self, key: &[u8], before: EntryBeforeWrite<'_>) -> Option<Entry> {
        self.replace(key, before.entry.as_ref(), None);
        before.entry.map(|old| old.entry)
    }

    fn remove_if(&self, key: &[u8], condition: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, StorageError> {
        let before = self.read_before_write(key)?;
        match &before.entry {
            Some(old) if condition(&old.entry) => Ok(self.remove(key, before)),
            _ => Ok(None),
        }
    }

    fn relocate(&self, key: &[u8], from: Position, to: Position) -> Result<bool, StorageError> {
        let _writes = self.writes.lock();
        let key = LedgerKey::of_key(key);
        let Some(value) = self.tree.get(&key.bytes)? else { return Ok(false) };
        let at = self.decode(&value)?.entry.position;
        if (at.file_id, at.offset) != (from.file_id, from.offset) {
            return Ok(false);
        }
        self.tree.apply([(key.bytes, Some(entry::moved(&value, to)))]);
        Ok(true)
    }

    fn load(&self, key: &[u8], entry: &Entry, version: &Version<'_>) -> Result<Loaded, StorageError> {
        let before = self.read_before_write(key)?;
        if let Some(old) = &before.entry
            && (old.entry.seq, old.entry.position.file_id) > (entry.seq, entry.position.file_id)
        {
            return Ok(Loaded::Superseded);
        }
        if entry.position.size == 0 {
            self.remember_tombstone(key);
        }
        Ok(Loaded::Newest(self.put(key, entry, version, before)))
    }

    fn loaded(&self, key: &[u8]) -> Result<Option<Entry>, StorageError> {
        Ok(self.read_before_write(key)?.entry.map(|found| found.entry))
    }

    fn finish_load(&self, _last_seq: u64, _seqs: &SeqSource) -> Result<(), StorageError> {
        let tombstones = std::mem::take(&mut *self.tombstones.lock());
        if tombstones.overflown {
            return self.sweep_tombstones();
        }
        for key in tombstones.listed {
            self.remove_if(&key, |entry| entry.position.size == 0)?;
        }
        Ok(())
    }

    fn expired(&self, now_secs: u64, cursor: &mut SweepCursor, count_max: usize) -> Result<Vec<Bytes>, StorageError> {
        let view = self.tree.view();
        let from = keys_from(&[]);
        let to = after_prefix(&from);
        let start = cursor.passed.take();
        let (mut keys, mut visits, mut passed) = (Vec::new(), 0, None);
        self.visit_entries(&view, lower(start.as_ref(), &from), upper(to.as_ref()), |place, key, found| {
            visits += 1;
            if found.entry.expires_secs != 0 && u64::from(found.entry.expires_secs) < now_secs {
                keys.push(Bytes::copy_from_slice(key));
            }
            if visits == count_max {
                passed = Some(Bytes::copy_from_slice(place));
            }
            visits < count_max
        })?;
        cursor.is_done = passed.is_none();
        cursor.passed = passed;
        Ok(keys)
    }

    fn do_background_work(&self) -> Result<Option<Compacted>, StorageError> {
        let compacted = self.tree.compact()?;
        self.note_tables();
        // A ledger of heads is small beside the values, so the merges of such a store are those of
        // its journal.
        Ok(compacted.filter(|_| HAS_VALUES))
    }

    /// The ledger has the heads, and it changes together with its index entries.
    fn check_terms(
        &self,
        cursor: &TermCursor,
        count_max: usize,
        _source: &TermsSource<'_>,
    ) -> Result<TermStep, StorageError> {
        let justified = |ledger_key: &[u8], value: &Bytes| {
            let entry = self.decode(value)?;
            let position = &entry.entry.position;
            if position.size == 0 || !position.has_terms {
                return Ok(Vec::new());
            }
            let key = store_key(entry.whole_key.as_deref().unwrap_or(ledger_key)).unwrap_or_default();
            Ok(term_keys(key, &entry.head, &*self.shared.terms))
        };
        let checked = CheckedTree { tree: &self.tree, writes: &self.writes, justified: &justified };
        let step = checked.step(cursor, count_max);
        self.note_tables();
        step
    }

    fn sizes(&self) -> IndexSizes {
        IndexSizes {
            keys: self.keys.load(Ordering::Relaxed),
            key_bytes: self.key_bytes.load(Ordering::Relaxed),
            bytes: self.tree.memory_bytes() + self.tree.pinned_bytes(),
        }
    }

    fn ledger_status(&self) -> Option<LedgerStatus> {
        Some(self.tree.status())
    }

    fn tables_on_disk(&self) -> IndexTables {
        self.tree.tables()
    }

    fn check_tables_list(&self) -> Result<Option<IndexDamage>, StorageError> {
        self.tree.check_list()
    }

    fn damaged_blocks(path: &Path) -> io::Result<Vec<IndexDamage>> {
        TreeFiles::damaged_parts(path)
    }

    fn note_damage_on_disk(&self, damage: &IndexDamage) -> &'static str {
        if HAS_VALUES {
            return "the tree has the only copy of its values on this node: stop the node and run 'ombak admin backend \
                    verify --repair'";
        }
        self.tree.note_damage_on_disk(damage);
        "the next start builds the ledger anew from the journal"
    }

    fn view(&self, _seq: u64) -> Result<LedgerView, StorageError> {
        Ok(LedgerView { tree: self.tree.view(), passed: None })
    }

    fn end_view(&self, _view: &LedgerView) {}

    fn get_at(&self, key: &[u8], view: &LedgerView, mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError> {
        self.check_mode(mode)?;
        let value = self.tree.get_at(&LedgerKey::of_key(key).bytes, &view.tree)?;
        Ok(value.map(|value| self.decode(&value)).transpose()?.and_then(Self::answer))
    }

    fn entries_at(&self, keys: &[&[u8]], view: &LedgerView) -> Result<Vec<Option<Entry>>, StorageError> {
        self.look_up_in_order(keys, view)
    }

    fn walk(
        &self,
        view: &mut LedgerView,
        scope: &Scope<'_>,
        mut visit: impl FnMut(&[u8], IndexAnswer) -> bool,
    ) -> Result<(), StorageError> {
        let from = keys_from(scope.prefix);
        let to = after_prefix(&from);
        let LedgerView { tree, passed } = view;
        let start = passed.clone();
        self.visit_entries(tree, lower(start.as_ref(), &from), upper(to.as_ref()), |ledger_key, key, found| {
            *passed = Some(Bytes::copy_from_slice(ledger_key));
            visit(key, found)
        })
    }

    fn destroy(&self) -> Result<(), StorageError> {
        self.tree.clear()
    }
}

impl<const HAS_VALUES: bool> OrderedIndex for LedgerIndex<HAS_VALUES> {
    /// A ledger is in order at any time.
    fn wants_ordered_index(&self) -> bool {
        false
    }

    fn build_ordered_index(&self, _count_max: usize, _read_head: &ReadHead<'_>) -> Result<bool, StorageError> {
        Ok(true)
    }

    fn keys_in_order(
        &self,
        view: &LedgerView,
        range: &KeyRange<'_>,
        mut visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> Result<(), StorageError> {
        let bounds = KeyBounds::new(range);
        self.visit_entries(&view.tree, bounds.from(), bounds.to(), |_, key, found| visit(key, &found.entry))
    }

    fn terms_in_order(
        &self,
        view: &LedgerView,
        range: &TermRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        visit_terms(&self.tree, &view.tree, range, visit)
    }
}

fn lower<'a>(passed: Option<&'a Bytes>, from: &'a Bytes) -> Bound<&'a [u8]> {
    passed.map_or(Bound::Included(&from[..]), |passed| Bound::Excluded(&passed[..]))
}

fn upper(to: Option<&Bytes>) -> Bound<&[u8]> {
    to.map_or(Bound::Unbounded, |to| Bound::Excluded(&to[..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::NoTerms;
    use crate::ledger::tree::TreeLimits;

    /// Whoever counts versions must not take it for the put of a new key.
    #[test]
    fn an_entry_that_cannot_be_read_is_not_an_absent_one() {
        let dir = tempfile::tempdir().unwrap();
        let trees = TreeShared::new(TreeLimits::default());
        let shared = LedgerShared::new(trees, Arc::new(NoTerms), 1 << 20, 1 << 20, JournalConfig::default());
        let index = LedgerIndex::<false>::open(&dir.path().join("1.ledger"), &Arc::new(shared)).unwrap();
        let is_unknown = |key: &[u8]| LedgerIndex::<false>::is_unknown(&index.read_before_write(key).unwrap());
        assert!(!is_unknown(b"k"));
        index.tree.apply([(LedgerKey::of_key(b"k").bytes, Some(Bytes::from_static(b"damaged")))]);
        assert!(is_unknown(b"k") && !is_unknown(b"other"));
    }
}
