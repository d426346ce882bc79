//! One shard of an index: a table of handles over an arena, under one lock.

use super::arena::Arena;
use super::history::{History, SlotMask};
use super::prefixes::Prefixes;
use crate::journal::{Entry, Position};
use bytes::Bytes;
use hashbrown::HashTable;
use std::cell::RefCell;
use xxhash_rust::xxh3::xxh3_64;

#[derive(Default)]
pub(super) struct Shard {
    table: HashTable<u32>,
    arena: Arena,
    prefixes: Prefixes,
    key_bytes: u64,
    history: Option<Box<History>>,
    /// How often it was compacted. Places in it are those of one arena.
    compactions: u32,
}

/// The progress of a snapshot's walk over one shard.
#[derive(Default)]
pub(super) struct ShardWalk {
    next: u32,
    arena_done: bool,
    last_key: Option<Bytes>,
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn compactions(&self) -> u32 {
        self.compactions
    }

    pub(super) fn key_bytes(&self) -> u64 {
        self.key_bytes
    }

    pub(super) fn capacity_bytes(&self) -> usize {
        let history = self.history.as_ref().map_or(0, |history| history.bytes());
        let entries = self.arena.capacity_bytes() + self.prefixes.bytes();
        size_of::<Self>() + self.table.allocation_size() + entries + history
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let is_it = |handle: &u32| {
            let (prefix, rest) = self.arena.key(*handle);
            key.strip_prefix(self.prefixes.get(prefix)) == Some(rest)
        };
        self.table.find(hash, is_it).copied()
    }

    /// Copies the whole key of an entry into `key`.
    fn key(&self, handle: u32, key: &mut Vec<u8>) {
        let (prefix, rest) = self.arena.key(handle);
        key.clear();
        key.extend_from_slice(self.prefixes.get(prefix));
        key.extend_from_slice(rest);
    }

    fn insert(&mut self, hash: u64, key: &[u8], entry: &Entry) {
        let (prefix, rest) = self.prefixes.split(key);
        let handle = self.arena.insert(prefix, rest, entry);
        let (arena, prefixes) = (&self.arena, &self.prefixes);
        let scratch = RefCell::new(Vec::new());
        self.table.insert_unique(hash, handle, |handle| {
            let (prefix, rest) = arena.key(*handle);
            let mut key = scratch.borrow_mut();
            key.clear();
            key.extend_from_slice(prefixes.get(prefix));
            key.extend_from_slice(rest);
            xxh3_64(&key)
        });
        self.key_bytes += key.len() as u64;
    }

    fn take_out(&mut self, hash: u64, handle: u32, key_len: usize) {
        if let Ok(occupied) = self.table.find_entry(hash, |other| *other == handle) {
            occupied.remove();
        }
        self.arena.remove(handle);
        self.key_bytes -= key_len as u64;
    }

    pub(super) fn get(&self, hash: u64, key: &[u8]) -> Option<Entry> {
        self.find(hash, key).map(|handle| self.arena.entry(handle))
    }

    /// The version that a snapshot sees.
    pub(super) fn get_at(&self, hash: u64, key: &[u8], slot: u32, seq: u64) -> Option<Entry> {
        self.get(hash, key)
            .filter(|entry| entry.seq <= seq)
            .or_else(|| self.history.as_ref().and_then(|history| history.get(key, slot)))
    }

    /// Inserts or replaces an entry. `seen_by_snapshots` says which snapshots see a version with a
    /// given `seq`.
    pub(super) fn put(
        &mut self,
        hash: u64,
        key: &[u8],
        entry: &Entry,
        seen_by_snapshots: impl Fn(u64) -> SlotMask,
    ) -> Option<Entry> {
        if let Some(handle) = self.find(hash, key) {
            let old = self.arena.entry(handle);
            self.keep(key, old, handle, seen_by_snapshots(old.seq));
            if self.arena.has_room(handle, entry) {
                self.arena.set(handle, entry);
            } else {
                self.take_out(hash, handle, key.len());
                self.insert(hash, key, entry);
            }
            return Some(old);
        }
        self.insert(hash, key, entry);
        None
    }

    /// Removes a key if its current version satisfies `condition`.
    pub(super) fn remove_if(
        &mut self,
        hash: u64,
        key: &[u8],
        condition: impl Fn(&Entry) -> bool,
        seen_by_snapshots: impl Fn(u64) -> SlotMask,
    ) -> Option<Entry> {
        let handle = self.find(hash, key)?;
        let old = self.arena.entry(handle);
        if !condition(&old) {
            return None;
        }
        self.keep(key, old, handle, seen_by_snapshots(old.seq));
        self.take_out(hash, handle, key.len());
        Some(old)
    }

    /// Changes the position of a key's version, if it lies at `from`.
    pub(super) fn relocate(&mut self, hash: u64, key: &[u8], from: Position, to: Position) -> bool {
        let Some(handle) = self.find(hash, key) else { return false };
        let mut entry = self.arena.entry(handle);
        if (entry.position.file_id, entry.position.offset) != (from.file_id, from.offset) {
            return false;
        }
        entry.position = to;
        self.arena.set(handle, &entry);
        true
    }

    fn keep(&mut self, key: &[u8], old: Entry, handle: u32, seen_by_snapshots: SlotMask) {
        if seen_by_snapshots != 0 {
            self.history.get_or_insert_default().keep(key, old, handle, seen_by_snapshots);
        }
    }

    /// Visits up to `visits_max` entries that the snapshot sees; false when the shard is done.
    pub(super) fn walk(
        &mut self,
        walk: &mut ShardWalk,
        slot: u32,
        seq: u64,
        visits_max: usize,
        mut visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> bool {
        let mut more = true;
        let mut visits = 0;
        let mut key = Vec::new();
        while more && !walk.arena_done {
            if visits >= visits_max {
                break;
            }
            visits += 1;
            match self.arena.walk(walk.next) {
                Some((handle, next)) => {
                    let entry = self.arena.entry(handle);
                    if entry.seq <= seq {
                        self.key(handle, &mut key);
                        more = visit(&key, &entry);
                    }
                    walk.next = next;
                }
                None => {
                    walk.next = u32::MAX;
                    walk.arena_done = true;
                }
            }
        }
        let history = self.history.get_or_insert_default();
        history.set_walk(slot, walk.next);
        while more && walk.arena_done {
            if visits >= visits_max {
                return true;
            }
            visits += 1;
            let Some((key, entry)) = history.next_unvisited(walk.last_key.as_ref(), slot) else { return false };
            more = visit(key, &entry);
            walk.last_key = Some(key.clone());
        }
        true
    }

    /// The first entry at or after a place, and the place at which to continue. Its key is put into
    /// `key`. The place is 0, or one that came from here since the last compaction.
    pub(super) fn look(&self, place: u32, key: &mut Vec<u8>) -> Option<(Entry, u32)> {
        let (handle, next) = self.arena.walk(place)?;
        self.key(handle, key);
        Some((self.arena.entry(handle), next))
    }

    pub(super) fn release(&mut self, slot: u32) {
        if self.history.as_mut().is_some_and(|history| history.release(slot)) {
            self.history = None;
        }
    }

    /// Removes every entry that satisfies `condition`. Only for a load, while nothing else uses the
    /// index.
    pub(super) fn remove_all(&mut self, condition: impl Fn(&Entry) -> bool) {
        let (mut next, mut key) = (0, Vec::new());
        while let Some((handle, following)) = self.arena.walk(next) {
            next = following;
            if condition(&self.arena.entry(handle)) {
                self.key(handle, &mut key);
                self.remove_if(xxh3_64(&key), &key, |_| true, |_| 0);
            }
        }
    }

    /// Compacts the arena if much of it is free and no snapshot may be walking it.
    pub(super) fn compact(&mut self) {
        if !self.arena.is_sparse() || self.history.is_some() {
            return;
        }
        let mut fresh = Self { compactions: self.compactions.wrapping_add(1), ..Self::default() };
        let (mut next, mut key) = (0, Vec::new());
        while let Some((entry, following)) = self.look(next, &mut key) {
            next = following;
            fresh.put(xxh3_64(&key), &key, &entry, |_| 0);
        }
        *self = fresh;
    }
}
