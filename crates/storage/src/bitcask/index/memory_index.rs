//! The index in memory behind the journal's interface, with a cache of recent heads and, once it is
//! needed, the ordered index of keys and index entries.

use super::terms_check::TermsCheck;
use super::{HashedKey, Index, SNAPSHOTS_MAX, SnapshotSlot};
use crate::backend::{LedgerStatus, ReadMode};
use crate::bitcask::head_cache::{HeadCache, StoreId};
use crate::bitcask::ordered_index::{OrderedIndexShared, OrderedIndexTree};
use crate::error::{StorageError, io_error};
use crate::fold::{KeyRange, Scope, TermRange};
use crate::fs::{FileSystem, RealFs};
use crate::journal::{
    Compacted, Entry, IndexAnswer, IndexDamage, IndexSizes, IndexTables, KeyIndex, Loaded, OrderedIndex, Position,
    ReadHead, SweepCursor, TermsSource, Version,
};
use crate::key_hash::KeyHashRange;
use crate::ledger::{TreeFiles, TreeView, remove_dir};
use crate::limits::SEQ_MAX;
use crate::seq::SeqSource;
use crate::terms_check::{TermCursor, TermStep};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The most keys, changed after the ordered index was last written, that a start remembers. With
/// more, the ordered index is rebuilt.
const CHANGED_MAX: usize = 2_000_000;

pub(crate) struct MemoryIndex {
    index: Index,
    heads: Arc<HeadCache>,
    store: StoreId,
    order_dir: PathBuf,
    orders: Arc<OrderedIndexShared>,
    /// The ordered index. From the moment at which it is begun, it gets every change.
    order: RwLock<Option<Arc<OrderedIndexTree>>>,
    /// Whether the ordered index is complete.
    has_ordered_index: AtomicBool,
    /// Whether the ordered index is wanted: an index entry was written, or it existed before.
    wants_ordered_index: AtomicBool,
    build_state: Mutex<BuildState>,
    /// The ordered index has got all changes up to this `seq`.
    last_seq: AtomicU64,
    /// None during the load.
    load_end: OnceLock<LoadEnd>,
}

/// What a load has found, and where later appends get their numbers from.
struct LoadEnd {
    last_seq: u64,
    keys: u64,
    /// How many changes the ordered index on disk had not seen.
    changes: u64,
    seqs: SeqSource,
}

/// What is left to do until the ordered index is complete.
enum BuildState {
    /// Nothing was begun, or nothing is left.
    Idle,
    /// During a load: gathers the keys that changed after the ordered index on disk was written.
    Loading { seen_seq: u64, changed: Vec<Bytes> },
    /// These keys must be compared with the index.
    CatchingUp(Vec<Bytes>),
    /// The entries that this walk has not visited yet must be added.
    Walking(SnapshotSlot),
}

/// A snapshot of the index, with a snapshot of the ordered index at the same moment.
pub(crate) struct MemoryView {
    slot: SnapshotSlot,
    order: Option<(Arc<OrderedIndexTree>, TreeView)>,
}

impl MemoryIndex {
    /// An empty index. `order_dir` is the directory of the ordered index, whether it exists or not.
    pub(crate) fn new(
        heads: Arc<HeadCache>,
        orders: Arc<OrderedIndexShared>,
        order_dir: PathBuf,
    ) -> Result<Self, StorageError> {
        let store = heads.enter();
        let opened = OrderedIndexTree::open(&order_dir, &orders)?;
        let (order, build_state) = match opened {
            Some((order, seen_seq)) => (Some(Arc::new(order)), BuildState::Loading { seen_seq, changed: Vec::new() }),
            None => (None, BuildState::Idle),
        };
        Ok(Self {
            index: Index::new(),
            heads,
            store,
            order_dir,
            orders,
            wants_ordered_index: AtomicBool::new(order.is_some()),
            order: RwLock::new(order),
            has_ordered_index: AtomicBool::new(false),
            build_state: Mutex::new(build_state),
            last_seq: AtomicU64::new(0),
            load_end: OnceLock::new(),
        })
    }

    /// Whether enough changes have gathered in the ordered index to be written.
    pub(crate) fn ordered_index_wants_writing(&self) -> bool {
        let order = self.order.read().clone();
        order.is_some_and(|order| order.wants_writing(|seen_seq| self.appends_since(seen_seq)))
    }

    /// About how many appends there were after a `seq`; 0: since ever. Each start skips numbers, so
    /// the difference of two numbers does not say it.
    fn appends_since(&self, seq: u64) -> u64 {
        let Some(end) = self.load_end.get() else { return 0 };
        let before_start = match seq {
            0 => end.keys,
            _ if seq < end.last_seq => end.changes,
            _ => 0,
        };
        let last_seq = self.last_seq.load(Ordering::Acquire);
        before_start + last_seq.saturating_sub(seq.max(end.seqs.base()))
    }

    /// Notes in the ordered index how far it has seen the journal. The writer's lock is held.
    pub(crate) fn rotate_ordered_index(&self) {
        let Some(order) = self.order.read().clone() else { return };
        let whole = self.has_ordered_index.load(Ordering::Acquire);
        order.rotate(whole.then(|| self.last_seq.load(Ordering::Acquire)));
    }

    /// Writes the ordered index up to its last rotation. It is on disk when this returns.
    pub(crate) fn flush_ordered_index(&self) -> Result<(), StorageError> {
        let order = self.order.read().clone();
        order.map_or(Ok(()), |order| order.flush())
    }

    /// The append up to which the ordered index on disk has seen the journal; 0: there is none.
    pub(crate) fn seen_seq_on_disk(&self) -> u64 {
        self.order.read().as_ref().map_or(0, |order| order.seen_seq_on_disk())
    }

    /// Removes the ordered index, because it does not match the journal. It is built again when it
    /// is needed.
    pub(crate) fn remove_ordered_index(&mut self) -> Result<(), StorageError> {
        tracing::warn!(dir = %self.order_dir.display(), "the ordered index does not fit its journal: it is rebuilt when it is needed");
        self.discard_ordered_index();
        remove_dir(&self.order_dir)?;
        // The removal must survive a loss of power, because the evidence that the index does not
        // match may be gone by then.
        let root = self.order_dir.parent().unwrap_or(&self.order_dir);
        RealFs.sync_dir(root).map_err(|source| io_error("fsync", root, source))
    }

    /// Passes a change to the ordered index, if there is one.
    fn update_ordered_index(&self, key: &[u8], head: Option<&[u8]>) {
        let Some(order) = self.order.read().clone() else { return };
        if let Err(error) = order.set(key, head) {
            // The ordered index may be wrong now. It is rebuilt when it is needed.
            tracing::error!(dir = %self.order_dir.display(), %error, "the ordered index is damaged: it is rebuilt when it is needed");
            self.discard_ordered_index();
        }
    }

    /// Checks the result of a read of the ordered index: a damaged one is discarded, and rebuilt
    /// when it is needed.
    fn discard_if_damaged<T>(&self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        if result.as_ref().is_err_and(StorageError::is_unreadable_version) {
            self.discard_ordered_index();
        }
        result
    }

    fn discard_ordered_index(&self) {
        let mut build_state = self.build_state.lock();
        self.has_ordered_index.store(false, Ordering::Release);
        if let BuildState::Walking(slot) = std::mem::replace(&mut *build_state, BuildState::Idle) {
            self.index.end_snapshot(&slot);
        }
        *self.order.write() = None;
    }

    /// Makes the ordered index agree with the index about a key.
    fn set_in_ordered_index(
        &self,
        order: &OrderedIndexTree,
        key: &[u8],
        read_head: &ReadHead<'_>,
    ) -> Result<(), StorageError> {
        order.set_to_present(key, || match self.index.get(HashedKey::new(key)) {
            None => Ok(None),
            Some(entry) if !entry.position.has_terms => Ok(Some(Bytes::new())),
            Some(entry) => match read_head(key, &entry) {
                // The index entries of a version are lost with it, until it is repaired. A single
                // version must not keep queries from all others.
                Err(error) if error.is_unreadable_version() => Ok(Some(Bytes::new())),
                head => head.map(Some),
            },
        })
    }

    /// The ordered index; begins it if needed.
    fn begin_ordered_index(&self, build_state: &mut BuildState) -> Result<Arc<OrderedIndexTree>, StorageError> {
        if let Some(order) = self.order.read().clone() {
            return Ok(order);
        }
        let order = Arc::new(OrderedIndexTree::create(&self.order_dir, &self.orders)?);
        // From here on the ordered index gets every change. The walk adds what was there before.
        *self.order.write() = Some(order.clone());
        let slot = self.index.begin_snapshot(SEQ_MAX).ok_or_else(too_many_views);
        *build_state = BuildState::Walking(slot.inspect_err(|_| *self.order.write() = None)?);
        Ok(order)
    }
}

fn too_many_views() -> StorageError {
    StorageError::Busy(format!("{SNAPSHOTS_MAX} folds run on this partition already: try again when one has ended"))
}

fn ordered_index_is_missing() -> StorageError {
    StorageError::Busy("the ordered index is being built: try again".into())
}

impl KeyIndex for MemoryIndex {
    type Key<'a> = HashedKey<'a>;
    type EntryBeforeWrite<'a> = ();
    type View = MemoryView;

    fn key(bytes: &[u8]) -> HashedKey<'_> {
        HashedKey::new(bytes)
    }

    fn get(&self, key: HashedKey<'_>, _mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError> {
        Ok(self.index.get(key).map(IndexAnswer::of_entry))
    }

    fn get_head(&self, key: HashedKey<'_>, _mode: ReadMode) -> Result<Option<IndexAnswer>, StorageError> {
        let Some(entry) = self.index.get(key) else { return Ok(None) };
        let head = self.heads.get_with(self.store, entry.position, Bytes::copy_from_slice);
        Ok(Some(IndexAnswer { entry, head, body: None, attrs: None }))
    }

    fn cache_head(&self, position: Position, head: &Bytes) {
        self.heads.insert(self.store, position, head);
    }

    fn read_before_write(&self, _key: HashedKey<'_>) -> Result<(), StorageError> {
        Ok(())
    }

    fn is_unknown((): &()) -> bool {
        false
    }

    fn put(&self, key: HashedKey<'_>, entry: &Entry, version: &Version<'_>, (): ()) -> Option<Entry> {
        self.heads.insert(self.store, entry.position, version.head);
        let previous = self.index.put(key, entry);
        if let Some(previous) = &previous {
            self.heads.forget(self.store, previous.position);
        }
        let had_terms = previous.is_some_and(|previous| previous.position.has_terms);
        if previous.is_none() || had_terms || entry.position.has_terms {
            if entry.position.has_terms && !self.wants_ordered_index.load(Ordering::Relaxed) {
                self.wants_ordered_index.store(true, Ordering::Relaxed);
            }
            let head = if entry.position.has_terms { version.head } else { &[] };
            self.update_ordered_index(key.key, Some(head));
        }
        self.last_seq.store(entry.seq, Ordering::Release);
        previous
    }

    fn remove(&self, key: HashedKey<'_>, (): ()) -> Option<Entry> {
        let removed = self.index.remove_if(key, |_| true);
        self.update_ordered_index(key.key, None);
        removed
    }

    fn remove_if(&self, key: HashedKey<'_>, condition: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, StorageError> {
        let removed = self.index.remove_if(key, condition);
        if removed.is_some() {
            self.update_ordered_index(key.key, None);
        }
        Ok(removed)
    }

    fn relocate(&self, key: HashedKey<'_>, from: Position, to: Position) -> Result<bool, StorageError> {
        Ok(self.index.relocate(key, from, to))
    }

    fn load(&self, key: HashedKey<'_>, entry: &Entry, _version: &Version<'_>) -> Result<Loaded, StorageError> {
        self.last_seq.fetch_max(entry.seq, Ordering::AcqRel);
        if entry.position.has_terms {
            self.wants_ordered_index.store(true, Ordering::Relaxed);
        }
        if let BuildState::Loading { seen_seq, changed } = &mut *self.build_state.lock()
            && entry.seq > *seen_seq
            && changed.len() <= CHANGED_MAX
        {
            changed.push(Bytes::copy_from_slice(key.key));
        }
        Ok(self.index.load(key, entry))
    }

    fn loaded(&self, key: HashedKey<'_>) -> Result<Option<Entry>, StorageError> {
        Ok(self.index.get(key))
    }

    fn finish_load(&self, last_seq: u64, seqs: &SeqSource) -> Result<(), StorageError> {
        self.last_seq.fetch_max(last_seq, Ordering::AcqRel);
        self.index.finish_load();
        let mut build_state = self.build_state.lock();
        let changes = if let BuildState::Loading { changed, .. } = &*build_state { changed.len() as u64 } else { 0 };
        let _ = self.load_end.set(LoadEnd { last_seq, keys: self.index.sizes().keys, changes, seqs: seqs.clone() });
        if let BuildState::Loading { seen_seq, changed } = std::mem::replace(&mut *build_state, BuildState::Idle) {
            if seen_seq > last_seq {
                // The journal has lost appends that this ordered index has seen.
                tracing::warn!(dir = %self.order_dir.display(), "the ordered index is ahead of its journal: it is rebuilt when it is needed");
                *self.order.write() = None;
                remove_dir(&self.order_dir)?;
            } else if changed.len() > CHANGED_MAX {
                *self.order.write() = None;
            } else {
                *build_state = BuildState::CatchingUp(changed);
            }
        }
        Ok(())
    }

    fn expired(&self, now_secs: u64, cursor: &mut SweepCursor, count_max: usize) -> Result<Vec<Bytes>, StorageError> {
        Ok(self.index.expired(now_secs, cursor, count_max))
    }

    fn do_background_work(&self) -> Result<Option<Compacted>, StorageError> {
        self.index.compact_some();
        let order = self.order.read().clone();
        order.map_or(Ok(()), |order| order.compact())?;
        Ok(None)
    }

    fn destroy(&self) -> Result<(), StorageError> {
        self.discard_ordered_index();
        remove_dir(&self.order_dir)
    }

    /// A store whose ordered index was never needed has nothing to compare.
    fn check_terms(
        &self,
        cursor: &TermCursor,
        count_max: usize,
        source: &TermsSource<'_>,
    ) -> Result<TermStep, StorageError> {
        // An ordered index that is being built has only some of its keys.
        let order = self.order.read().clone().filter(|_| self.has_ordered_index.load(Ordering::Acquire));
        let Some(order) = order else {
            // One that was just found to be damaged is built anew by the next step.
            return Ok(if self.wants_ordered_index() { TermStep::at(cursor) } else { TermStep::nothing() });
        };
        let check = TermsCheck { index: &self.index, order: &order, source };
        self.discard_if_damaged(check.step(cursor, count_max))
    }

    fn sizes(&self) -> IndexSizes {
        let order_bytes = self.order.read().as_ref().map_or(0, |order| order.memory_bytes());
        let sizes = self.index.sizes();
        IndexSizes { bytes: sizes.bytes + order_bytes, ..sizes }
    }

    fn ledger_status(&self) -> Option<LedgerStatus> {
        self.order.read().as_ref().map(|order| order.status())
    }

    fn tables_on_disk(&self) -> IndexTables {
        let order = self.order.read().clone();
        order.map_or_else(|| IndexTables { tables: Vec::new(), _pin: Box::new(()) }, |order| order.tables())
    }

    fn check_tables_list(&self) -> Result<Option<IndexDamage>, StorageError> {
        let order = self.order.read().clone();
        order.map_or(Ok(None), |order| order.check_list())
    }

    fn damaged_blocks(path: &Path) -> io::Result<Vec<IndexDamage>> {
        TreeFiles::damaged_parts(path)
    }

    /// The index in memory has everything, so the ordered index is built anew at once.
    fn note_damage_on_disk(&self, damage: &IndexDamage) -> &'static str {
        if let Some(order) = self.order.read().clone() {
            order.note_damage_on_disk(damage);
        }
        self.discard_ordered_index();
        "the ordered index is built anew when it is needed"
    }

    fn view(&self, seq: u64) -> Result<MemoryView, StorageError> {
        let slot = self.index.begin_snapshot(seq).ok_or_else(too_many_views)?;
        let order = self.order.read().clone().filter(|_| self.has_ordered_index.load(Ordering::Acquire));
        let order = order.map(|order| {
            let view = order.view();
            (order, view)
        });
        Ok(MemoryView { slot, order })
    }

    fn end_view(&self, view: &MemoryView) {
        self.index.end_snapshot(&view.slot);
    }

    fn get_at(
        &self,
        key: HashedKey<'_>,
        view: &MemoryView,
        _mode: ReadMode,
    ) -> Result<Option<IndexAnswer>, StorageError> {
        Ok(self.index.get_at(key, &view.slot).map(IndexAnswer::of_entry))
    }

    fn walk(
        &self,
        view: &mut MemoryView,
        scope: &Scope<'_>,
        mut visit: impl FnMut(&[u8], IndexAnswer) -> bool,
    ) -> Result<(), StorageError> {
        let hashes = scope.hashes.unwrap_or(KeyHashRange::ALL);
        self.index.walk(&mut view.slot, hashes, |key, entry| visit(key, IndexAnswer::of_entry(*entry)));
        Ok(())
    }
}

impl OrderedIndex for MemoryIndex {
    fn wants_ordered_index(&self) -> bool {
        self.wants_ordered_index.load(Ordering::Relaxed) && !self.has_ordered_index.load(Ordering::Acquire)
    }

    fn build_ordered_index(&self, count_max: usize, read_head: &ReadHead<'_>) -> Result<bool, StorageError> {
        if self.has_ordered_index.load(Ordering::Acquire) {
            return Ok(true);
        }
        let mut build_state = self.build_state.lock();
        let order = self.begin_ordered_index(&mut build_state)?;
        let mut keys: Vec<Bytes> = Vec::new();
        let more = match &mut *build_state {
            // Another thread has just completed it.
            BuildState::Idle | BuildState::Loading { .. } => return Ok(self.has_ordered_index.load(Ordering::Acquire)),
            BuildState::CatchingUp(changed) => {
                let rest = changed.len().saturating_sub(count_max);
                keys.extend(changed.drain(rest..));
                !changed.is_empty()
            }
            BuildState::Walking(slot) => self.index.walk(slot, KeyHashRange::ALL, |key, _| {
                keys.push(Bytes::copy_from_slice(key));
                keys.len() < count_max
            }),
        };
        for key in keys {
            if let Err(error) = self.set_in_ordered_index(&order, &key, read_head) {
                // An ordered index that lacks the rest of these keys must never count as complete.
                // The next use begins a new one.
                drop(build_state);
                self.discard_ordered_index();
                self.wants_ordered_index.store(false, Ordering::Relaxed);
                return Err(error);
            }
        }
        if !more {
            if let BuildState::Walking(slot) = std::mem::replace(&mut *build_state, BuildState::Idle) {
                self.index.end_snapshot(&slot);
            }
            self.wants_ordered_index.store(true, Ordering::Relaxed);
            self.has_ordered_index.store(true, Ordering::Release);
        }
        Ok(!more)
    }

    fn keys_in_order(
        &self,
        view: &MemoryView,
        range: &KeyRange<'_>,
        mut visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> Result<(), StorageError> {
        let (order, tree) = view.order.as_ref().ok_or_else(ordered_index_is_missing)?;
        let visited = order.keys(tree, range, |key| {
            let entry = self.index.get_at(HashedKey::new(key), &view.slot);
            entry.is_none_or(|entry| visit(key, &entry))
        });
        self.discard_if_damaged(visited)
    }

    fn terms_in_order(
        &self,
        view: &MemoryView,
        range: &TermRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StorageError> {
        let (order, tree) = view.order.as_ref().ok_or_else(ordered_index_is_missing)?;
        self.discard_if_damaged(order.terms(tree, range, visit))
    }
}
