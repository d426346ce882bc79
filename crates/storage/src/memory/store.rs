//! The memory store of one partition.

use super::snapshot::{MemorySnapshot, SnapshotExpiry};
use super::terms::put_term_key;
use super::terms_check;
use crate::backend::{Backend, HeadTerms, ReadMode, Status, Stored, Write};
use crate::drops::{DropNotifier, DropObserver};
use crate::error::StorageError;
use crate::feed::{ChangesQuery, ChangesSince, CursorLost, FeedCursor, IndexChanges, PlaceNow, RemovalLog};
use crate::fold::{Expired, Snapshot};
use crate::identity::{StoreIdentity, random_id};
use crate::limits::check_sizes;
use crate::machine::Machine;
use crate::openings::Openings;
use crate::receipt::{Appended, IndexedVersion, Previous};
use crate::seq::{SeqSource, used_up};
use crate::terms_check::{TermCursor, TermStep};
use bytes::{Bytes, BytesMut};
use imbl::{OrdMap, OrdSet};
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are counted for an entry in addition to its key, head and body: for both maps, the
/// handles and the age list.
const ENTRY_OVERHEAD_BYTES: u64 = 280;
/// The most expired entries that one call of `maintain` removes.
const EXPIRED_PER_SLICE_MAX: usize = 10_000;

/// Limits of a memory store (docs/riak/backends.md §5).
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryConfig {
    /// `memory_backend.ttl`: versions older than this are absent.
    pub ttl_secs: Option<u32>,
    /// `memory_backend.max_memory_per_vnode`: when the store exceeds it, the oldest versions are
    /// evicted.
    pub bytes_max: Option<u64>,
    /// Unix seconds at the start. Expiry uses it until the first `maintain`.
    pub opened_at_secs: u64,
}

#[derive(Clone)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) digest: u64,
    /// Unix seconds; 0: never.
    pub(super) expires_secs: u32,
    /// Unix seconds of the write.
    tstamp_secs: u32,
    head_len: u32,
    has_terms: bool,
    /// Head and body together.
    block: Bytes,
}

impl Entry {
    pub(super) fn is_expired(&self, now_secs: u64) -> bool {
        self.expires_secs != 0 && u64::from(self.expires_secs) < now_secs
    }

    /// The head, if it has index entries.
    pub(super) fn head_with_terms(&self) -> &[u8] {
        if self.has_terms { &self.block[..self.head_len as usize] } else { &[] }
    }

    pub(super) fn stored(&self, with_body: bool) -> Stored {
        let head_len = self.head_len as usize;
        let body = with_body.then(|| self.block.slice(head_len..));
        let (head, stored_secs) = (self.block.slice(..head_len), Some(self.tstamp_secs));
        Stored { head, body, digest: self.digest, seq: self.seq, stored_secs }
    }

    const fn version(&self) -> IndexedVersion {
        IndexedVersion { digest: self.digest, seq: self.seq, expires_secs: self.expires_secs }
    }

    fn cost_bytes(&self, key: &[u8]) -> u64 {
        (key.len() + self.block.len()) as u64 + ENTRY_OVERHEAD_BYTES
    }
}

#[derive(Default)]
struct State {
    /// For reads and writes, because a hash map is faster than the ordered map.
    entries: HashMap<Bytes, Entry>,
    /// The same entries in order, in a map that is cheap to copy, for folds.
    ordered: OrdMap<Bytes, Entry>,
    /// Index entries in order.
    terms: OrdSet<Bytes>,
    /// Keys by sequence number, for eviction; empty if the store has no limit.
    by_age: BTreeMap<u64, Bytes>,
    /// Keys of versions that expire, by time and sequence number.
    by_expiry: BTreeMap<(u32, u64), Bytes>,
    bytes: u64,
    key_bytes: u64,
    put_bytes: u64,
    seq: u64,
    closed: bool,
    closed_to_writes: bool,
}

impl State {
    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed { Err(StorageError::Closed) } else { Ok(()) }
    }

    fn check_writable(&self) -> Result<(), StorageError> {
        self.check_open()?;
        if self.closed_to_writes { Err(StorageError::ClosedToWrites) } else { Ok(()) }
    }

    fn remove(&mut self, key: &[u8], terms: &dyn HeadTerms) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.ordered.remove(key);
        self.change_terms(key, entry.head_with_terms(), &[], terms);
        self.forget(key, &entry);
        Some(entry)
    }

    fn change_terms(&mut self, key: &[u8], old_head: &[u8], new_head: &[u8], terms: &dyn HeadTerms) {
        if !old_head.is_empty() {
            terms.visit(old_head, &mut |field, term| drop(self.terms.remove(&put_term_key(key, field, term))));
        }
        if !new_head.is_empty() {
            terms.visit(new_head, &mut |field, term| drop(self.terms.insert(put_term_key(key, field, term))));
        }
    }

    /// Updates the counts and lists after an entry was removed.
    fn forget(&mut self, key: &[u8], entry: &Entry) {
        self.by_age.remove(&entry.seq);
        self.by_expiry.remove(&(entry.expires_secs, entry.seq));
        self.bytes -= entry.cost_bytes(key);
        self.key_bytes -= key.len() as u64;
    }

    /// Inserts an entry. Reuses the bytes of an existing key, so that the maps share them.
    fn insert(&mut self, key: &[u8], entry: Entry, ages: bool, terms: &dyn HeadTerms) -> Option<Entry> {
        let key = match self.entries.get_key_value(key) {
            Some((key, _)) => key.clone(),
            None => Bytes::copy_from_slice(key),
        };
        let cost = entry.cost_bytes(&key);
        let old = self.entries.insert(key.clone(), entry.clone());
        self.change_terms(&key, old.as_ref().map_or(&[], Entry::head_with_terms), entry.head_with_terms(), terms);
        if let Some(old) = &old {
            self.forget(&key, old);
        }
        self.bytes += cost;
        self.key_bytes += key.len() as u64;
        self.put_bytes += cost;
        if ages {
            self.by_age.insert(entry.seq, key.clone());
        }
        if entry.expires_secs != 0 {
            self.by_expiry.insert((entry.expires_secs, entry.seq), key.clone());
        }
        self.ordered.insert(key, entry);
        old
    }

    /// Removes the oldest version and tells the observers.
    fn evict_oldest(&mut self, terms: &dyn HeadTerms, told: &Told<'_>) -> bool {
        let Some((_, key)) = self.by_age.first_key_value() else { return false };
        let key = key.clone();
        self.remove(&key, terms).inspect(|old| told.dropped(&key, old.version(), self.seq)).is_some()
    }

    /// Removes one expired version, if there is any, and tells the observers.
    fn remove_expired(&mut self, now_secs: u64, terms: &dyn HeadTerms, told: &Told<'_>) -> bool {
        let Some(((expires_secs, _), key)) = self.by_expiry.first_key_value() else { return false };
        if u64::from(*expires_secs) >= now_secs {
            return false;
        }
        let key = key.clone();
        self.remove(&key, terms).inspect(|old| told.dropped(&key, old.version(), self.seq)).is_some()
    }
}

/// Who learns of what the store removes by itself.
struct Told<'a> {
    drops: &'a DropNotifier,
    removals: &'a RemovalLog,
}

impl Told<'_> {
    fn dropped(&self, key: &[u8], version: IndexedVersion, seq: u64) {
        self.removals.note(key, seq, true);
        self.drops.dropped(key, version);
    }
}

pub(super) struct MemoryStore {
    id: u64,
    config: MemoryConfig,
    terms: Arc<dyn HeadTerms>,
    seqs: SeqSource,
    state: RwLock<State>,
    /// Called with the lock of the state held for writing.
    drops: DropNotifier,
    /// Changed with the same lock held.
    removals: RemovalLog,
    now_secs: AtomicU64,
    lost_ranges: AtomicU64,
}

impl MemoryStore {
    pub(super) fn new(
        config: MemoryConfig,
        terms: Arc<dyn HeadTerms>,
        seqs: SeqSource,
        machine: &dyn Machine,
    ) -> Result<Self, StorageError> {
        let now_secs = AtomicU64::new(config.opened_at_secs);
        let id = random_id(machine, Path::new("memory"))?;
        let (state, drops, lost_ranges) = (RwLock::default(), DropNotifier::default(), AtomicU64::new(0));
        let removals = RemovalLog::default();
        Ok(Self { id, config, terms, seqs, state, drops, removals, now_secs, lost_ranges })
    }

    fn told(&self) -> Told<'_> {
        Told { drops: &self.drops, removals: &self.removals }
    }

    fn place_now(&self, last_seq: u64) -> PlaceNow {
        let lost_ranges = self.lost_ranges.load(Ordering::Relaxed);
        PlaceNow { identity: self.identity(), lost_ranges, opened_seq: 0, last_seq }
    }

    fn take_seq(&self) -> Result<u64, StorageError> {
        self.seqs.take().ok_or_else(|| used_up(Path::new("memory")))
    }

    fn now_secs(&self) -> u64 {
        self.now_secs.load(Ordering::Relaxed)
    }

    fn read(&self, key: &[u8], with_body: bool, expired: Expired) -> Result<Option<Stored>, StorageError> {
        let state = self.state.read();
        state.check_open()?;
        let shows_expired = expired.shows(self.config.ttl_secs.is_some());
        let entry = state.entries.get(key).filter(|entry| shows_expired || !entry.is_expired(self.now_secs()));
        Ok(entry.map(|entry| entry.stored(with_body)))
    }

    fn expires_at(&self, write: &Write<'_>) -> u32 {
        let by_age = self.config.ttl_secs.map(|ttl| write.tstamp_secs.saturating_add(ttl).max(1));
        match (by_age, write.expires_secs) {
            (None, wanted) => wanted,
            (Some(by_age), 0) => by_age,
            (Some(by_age), wanted) => by_age.min(wanted),
        }
    }

    /// Removes a key if its version satisfies `condition`. `removed` gets that version, before any
    /// other write.
    fn delete(
        &self,
        key: &[u8],
        condition: impl Fn(&Entry) -> bool,
        removed: impl FnOnce(IndexedVersion),
    ) -> Result<Option<Appended>, StorageError> {
        let mut state = self.state.write();
        state.check_writable()?;
        if !state.entries.get(key).is_some_and(condition) {
            return Ok(None);
        }
        let seq = self.take_seq()?;
        let Some(old) = state.remove(key, &*self.terms) else { return Ok(None) };
        state.seq = seq;
        self.removals.note(key, state.seq, false);
        removed(old.version());
        Ok(Some(Appended { previous: Previous::Version(old.version()), seq: state.seq, expires_secs: 0 }))
    }
}

impl Backend for MemoryStore {
    fn get(&self, key: &[u8], _mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.read(key, true, Expired::Hidden)
    }

    fn head(&self, key: &[u8], _mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.read(key, false, Expired::Hidden)
    }

    fn get_with_expired(&self, key: &[u8], _mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.read(key, true, Expired::Kept)
    }

    fn head_with_expired(&self, key: &[u8], _mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.read(key, false, Expired::Kept)
    }

    fn check_writable(&self, _key: &[u8]) -> Result<(), StorageError> {
        self.state.read().check_writable()
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        let body_len = check_sizes(write)?;
        let mut block = BytesMut::with_capacity(write.head.len() + body_len);
        block.extend_from_slice(write.head);
        write.body.iter().for_each(|part| block.extend_from_slice(part));
        // The cast is safe: `check_sizes` has checked the length.
        let (block, head_len) = (block.freeze(), u32::try_from(write.head.len()).unwrap_or(u32::MAX));

        let mut guard = self.state.write();
        let state = &mut *guard;
        state.check_writable()?;
        let seq = self.take_seq()?;
        let entry = Entry {
            seq,
            digest: write.digest,
            expires_secs: self.expires_at(write),
            tstamp_secs: write.tstamp_secs,
            head_len,
            has_terms: write.has_terms,
            block,
        };
        let cost = entry.cost_bytes(write.key);
        if let Some(max) = self.config.bytes_max
            && cost > max
        {
            return Err(StorageError::TooLarge(format!(
                "the object takes {cost} bytes in memory; a partition may take {max} (memory_backend.max_memory_per_vnode)"
            )));
        }
        state.seq = seq;
        let ages = self.config.bytes_max.is_some();
        let expires_secs = entry.expires_secs;
        let old = state.insert(write.key, entry, ages, &*self.terms);
        let previous = old.map_or(Previous::Nothing, |old| Previous::Version(old.version()));
        while self.config.bytes_max.is_some_and(|max| state.bytes > max)
            && state.evict_oldest(&*self.terms, &self.told())
        {}
        Ok(Appended { previous, seq, expires_secs })
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        self.delete(key, |_| true, |_| {})
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        self.delete(key, |entry| entry.digest == digest, |_| {})
    }

    fn drop_if(&self, key: &[u8], digest: u64) -> Result<bool, StorageError> {
        let tell = |version| self.drops.dropped(key, version);
        Ok(self.delete(key, |entry| entry.digest == digest, tell)?.is_some())
    }

    fn observe_drops(&self, observer: Arc<dyn DropObserver>) -> bool {
        self.drops.set(observer)
    }

    fn sync(&self, _seq: u64) -> Result<(), StorageError> {
        Ok(())
    }

    fn is_synced(&self, _seq: u64) -> bool {
        true
    }

    fn synced_seq(&self) -> u64 {
        self.last_seq()
    }

    fn last_seq(&self) -> u64 {
        self.state.read().seq
    }

    fn found_seq(&self) -> u64 {
        self.seqs.found()
    }

    fn first_seq(&self) -> u64 {
        self.seqs.base() + 1
    }

    /// Each start makes another store, which has lost nothing.
    fn openings(&self) -> Openings {
        Openings::default()
    }

    fn close_to_writes(&self, closed: bool) {
        self.state.write().closed_to_writes = closed;
    }

    fn sync_each_write(&self) -> bool {
        false
    }

    fn removes_by_itself(&self) -> bool {
        self.config.ttl_secs.is_some() || self.config.bytes_max.is_some()
    }

    fn check_terms(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        let mut guard = self.state.write();
        guard.check_writable()?;
        let State { ordered, terms, .. } = &mut *guard;
        Ok(terms_check::step(ordered, terms, &*self.terms, cursor, count_max))
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        let state = self.state.read();
        state.check_open()?;
        let (entries, terms) = (state.ordered.clone(), state.terms.clone());
        let expiry = SnapshotExpiry {
            now_secs: self.now_secs(),
            may_expire: !state.by_expiry.is_empty(),
            is_forgotten: self.config.ttl_secs.is_some(),
        };
        Ok(Box::new(MemorySnapshot::new(entries, terms, expiry)))
    }

    fn ordered_snapshot(&self, _bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        self.snapshot()
    }

    fn feed_cursor(&self) -> FeedCursor {
        let state = self.state.read();
        FeedCursor::of_store(self.place_now(state.seq).place(self.removals.last()))
    }

    fn changes_since(&self, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError> {
        let (end, removed) = {
            let state = self.state.read();
            state.check_open()?;
            let now = self.place_now(state.seq);
            let place = match now.test(query.from) {
                Ok(place) => place,
                Err(why) => return Ok(ChangesSince::Lost(why)),
            };
            let removed = match self.removals.after(place.removals) {
                _ if !query.with_removals => VecDeque::new(),
                Some((mut removed, _)) => {
                    removed.retain(|gone| !state.entries.contains_key(&gone.key));
                    removed
                }
                None => return Ok(ChangesSince::Lost(CursorLost::RemovalsForgotten)),
            };
            (FeedCursor::of_store(now.place(self.removals.last())), removed)
        };
        let changes = IndexChanges::new(self.snapshot()?, query.from.clone(), end, removed, query.detail);
        Ok(ChangesSince::Found(Box::new(changes)))
    }

    fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError> {
        // No removal comes in between.
        let _state = self.state.write();
        self.removals.switch(after.is_some());
        Ok(())
    }

    fn identity(&self) -> StoreIdentity {
        StoreIdentity { store_id: self.id, boot: 1, ..StoreIdentity::default() }
    }

    fn status(&self) -> Status {
        let state = self.state.read();
        let lost = self.lost_ranges.load(Ordering::Relaxed);
        Status {
            backend: "memory",
            keys: state.entries.len() as u64,
            live_bytes: state.bytes,
            index_bytes: state.key_bytes + state.entries.len() as u64 * ENTRY_OVERHEAD_BYTES,
            key_bytes: state.key_bytes,
            put_bytes: state.put_bytes,
            lost_ranges: lost,
            lost_up_to: if lost > 0 { u64::MAX } else { 0 },
            ..Status::default()
        }
    }

    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        self.lost_ranges.fetch_add(lost_ranges, Ordering::Relaxed);
        Ok(())
    }

    fn drop_partition(&self) -> Result<(), StorageError> {
        *self.state.write() = State { closed: true, ..State::default() };
        Ok(())
    }

    fn tell_time(&self, now_secs: u64) {
        self.now_secs.fetch_max(now_secs, Ordering::Relaxed);
    }

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.now_secs.store(now_secs, Ordering::Relaxed);
        // Without a configured age, expired versions stay until they are removed like tombstones.
        if self.config.ttl_secs.is_none() || self.state.read().by_expiry.is_empty() {
            return Ok(());
        }
        let mut state = self.state.write();
        let mut left = EXPIRED_PER_SLICE_MAX;
        while left > 0 && state.remove_expired(now_secs, &*self.terms, &self.told()) {
            left -= 1;
        }
        Ok(())
    }

    fn close(&self) -> Result<(), StorageError> {
        self.drop_partition()
    }
}
