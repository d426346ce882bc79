//! One partition in memory.

use crate::backend::{Appended, Backend, FoldEntry, ReadMode, Snapshot, Status, Stored, Write};
use crate::error::StorageError;
use crate::limits::check_sizes;
use bytes::{Bytes, BytesMut};
use imbl::OrdMap;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that an entry is counted with beyond its key, head and body: its places in both maps, the handles and the age
/// list.
const ENTRY_OVERHEAD_BYTES: u64 = 280;
/// Expired entries that one call of `maintain` removes at most.
const EXPIRED_PER_SLICE_MAX: usize = 10_000;

/// Limits of a memory store (spec/backends.md §5).
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryConfig {
    /// `memory_backend.ttl`: versions older than this are absent.
    pub ttl_secs: Option<u32>,
    /// `memory_backend.max_memory_per_vnode`: beyond it the oldest versions are evicted.
    pub bytes_max: Option<u64>,
    /// Unix time at the start: age is judged by it until the first `maintain`.
    pub opened_at_secs: u64,
}

#[derive(Clone)]
struct Entry {
    seq: u64,
    digest: u64,
    tstamp_secs: u32,
    head_len: u32,
    /// Head and body.
    block: Bytes,
}

impl Entry {
    fn stored(&self, with_body: bool) -> Stored {
        let head_len = self.head_len as usize;
        let body = with_body.then(|| self.block.slice(head_len..));
        Stored { head: self.block.slice(..head_len), body, digest: self.digest }
    }

    fn cost_bytes(&self, key: &[u8]) -> u64 {
        (key.len() + self.block.len()) as u64 + ENTRY_OVERHEAD_BYTES
    }
}

#[derive(Default)]
struct State {
    /// For reads and writes: a look at one place where the ordered map takes several.
    entries: HashMap<Bytes, Entry>,
    /// The same in order and cheap to copy, for folds.
    ordered: OrdMap<Bytes, Entry>,
    /// Keys by append order, for eviction and expiry; empty where there is neither.
    by_age: BTreeMap<u64, Bytes>,
    bytes: u64,
    key_bytes: u64,
    bytes_written: u64,
    seq: u64,
    closed: bool,
}

impl State {
    fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.ordered.remove(key);
        self.forget(key, &entry);
        Some(entry)
    }

    /// An entry is not there any more.
    fn forget(&mut self, key: &[u8], entry: &Entry) {
        self.by_age.remove(&entry.seq);
        self.bytes -= entry.cost_bytes(key);
        self.key_bytes -= key.len() as u64;
    }

    /// A key that is there already is used again: the maps share its bytes.
    fn insert(&mut self, key: &[u8], entry: Entry, ages: bool) -> Option<Entry> {
        let key = match self.entries.get_key_value(key) {
            Some((key, _)) => key.clone(),
            None => Bytes::copy_from_slice(key),
        };
        let cost = entry.cost_bytes(&key);
        let old = self.entries.insert(key.clone(), entry.clone());
        if let Some(old) = &old {
            self.forget(&key, old);
        }
        self.bytes += cost;
        self.key_bytes += key.len() as u64;
        self.bytes_written += cost;
        if ages {
            self.by_age.insert(entry.seq, key.clone());
        }
        self.ordered.insert(key, entry);
        old
    }

    fn evict_oldest(&mut self) -> bool {
        let Some((_, key)) = self.by_age.first_key_value() else { return false };
        let key = key.clone();
        self.remove(&key).is_some()
    }
}

pub(super) struct MemoryStore {
    config: MemoryConfig,
    state: RwLock<State>,
    now_secs: AtomicU64,
}

impl MemoryStore {
    pub(super) fn new(config: MemoryConfig) -> Self {
        Self { config, state: RwLock::default(), now_secs: AtomicU64::new(config.opened_at_secs) }
    }

    fn is_expired(&self, entry: &Entry) -> bool {
        expired(self.config.ttl_secs, entry.tstamp_secs, self.now_secs.load(Ordering::Relaxed))
    }

    fn read(&self, key: &[u8], with_body: bool) -> Result<Option<Stored>, StorageError> {
        let state = self.state.read();
        if state.closed {
            return Err(StorageError::Closed);
        }
        Ok(state.entries.get(key).filter(|entry| !self.is_expired(entry)).map(|entry| entry.stored(with_body)))
    }
}

fn expired(ttl_secs: Option<u32>, tstamp_secs: u32, now_secs: u64) -> bool {
    ttl_secs.is_some_and(|ttl| u64::from(tstamp_secs) + u64::from(ttl) < now_secs)
}

impl Backend for MemoryStore {
    fn get(&self, key: &[u8], _mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.read(key, true)
    }

    fn head(&self, key: &[u8], _mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.read(key, false)
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        let body_len = check_sizes(write)?;
        let mut block = BytesMut::with_capacity(write.head.len() + body_len);
        block.extend_from_slice(write.head);
        write.body.iter().for_each(|part| block.extend_from_slice(part));
        // `check_sizes` has seen to it that a length fits.
        let (block, head_len) = (block.freeze(), u32::try_from(write.head.len()).unwrap_or(u32::MAX));

        let mut guard = self.state.write();
        let state = &mut *guard;
        if state.closed {
            return Err(StorageError::Closed);
        }
        let seq = state.seq + 1;
        let entry = Entry { seq, digest: write.digest, tstamp_secs: write.tstamp_secs, head_len, block };
        let cost = entry.cost_bytes(write.key);
        if let Some(max) = self.config.bytes_max
            && cost > max
        {
            return Err(StorageError::TooLarge(format!(
                "the object takes {cost} bytes in memory; a partition may take {max} (memory_backend.max_memory_per_vnode)"
            )));
        }
        state.seq = seq;
        let ages = self.config.ttl_secs.is_some() || self.config.bytes_max.is_some();
        let previous = state.insert(write.key, entry, ages).map(|old| old.digest);
        while self.config.bytes_max.is_some_and(|max| state.bytes > max) && state.evict_oldest() {}
        Ok(Appended { previous, seq })
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        let mut state = self.state.write();
        if state.closed {
            return Err(StorageError::Closed);
        }
        let Some(old) = state.remove(key) else { return Ok(None) };
        state.seq += 1;
        Ok(Some(Appended { previous: Some(old.digest), seq: state.seq }))
    }

    fn sync(&self, _seq: u64) -> Result<(), StorageError> {
        Ok(())
    }

    fn is_synced(&self, _seq: u64) -> bool {
        true
    }

    fn sync_each_write(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        let state = self.state.read();
        if state.closed {
            return Err(StorageError::Closed);
        }
        Ok(Box::new(MemorySnapshot {
            entries: state.ordered.clone(),
            ttl_secs: self.config.ttl_secs,
            now_secs: self.now_secs.load(Ordering::Relaxed),
            last: None,
        }))
    }

    fn status(&self) -> Status {
        let state = self.state.read();
        Status {
            backend: "memory",
            keys: state.entries.len() as u64,
            live_bytes: state.bytes,
            index_bytes: state.key_bytes + state.entries.len() as u64 * ENTRY_OVERHEAD_BYTES,
            key_bytes: state.key_bytes,
            bytes_written: state.bytes_written,
            ..Status::default()
        }
    }

    fn drop_partition(&self) -> Result<(), StorageError> {
        *self.state.write() = State { closed: true, ..State::default() };
        Ok(())
    }

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.now_secs.store(now_secs, Ordering::Relaxed);
        if self.config.ttl_secs.is_none() {
            return Ok(());
        }
        let mut state = self.state.write();
        // In append order the stamps hardly ever go back: the first version that is young enough ends the search.
        for _ in 0..EXPIRED_PER_SLICE_MAX {
            let oldest = state.by_age.first_key_value().and_then(|(_, key)| state.entries.get(key));
            if !oldest.is_some_and(|entry| self.is_expired(entry)) {
                break;
            }
            state.evict_oldest();
        }
        Ok(())
    }

    fn close(&self) -> Result<(), StorageError> {
        self.drop_partition()
    }
}

struct MemorySnapshot {
    entries: OrdMap<Bytes, Entry>,
    ttl_secs: Option<u32>,
    now_secs: u64,
    last: Option<Bytes>,
}

impl Snapshot for MemorySnapshot {
    fn next_keys(&mut self, prefix: &[u8], count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        let prefix_start = Bytes::copy_from_slice(prefix);
        let from = match &self.last {
            Some(last) if *last >= prefix_start => Bound::Excluded(last.clone()),
            _ => Bound::Included(prefix_start),
        };
        let batch: Vec<FoldEntry> = self
            .entries
            .range((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter(|(_, entry)| !expired(self.ttl_secs, entry.tstamp_secs, self.now_secs))
            .take(count_max)
            .map(|(key, entry)| FoldEntry { key: key.clone(), digest: entry.digest })
            .collect();
        if let Some(entry) = batch.last() {
            self.last = Some(entry.key.clone());
        }
        Ok(batch)
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let entry = self.entries.get(key).filter(|entry| !expired(self.ttl_secs, entry.tstamp_secs, self.now_secs));
        Ok(entry.map(|entry| entry.stored(true)))
    }
}
