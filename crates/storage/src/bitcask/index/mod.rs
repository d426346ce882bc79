//! The in-memory index of a store: for each key, where its current version lies.
//!
//! What it is: 32 hash tables of packed entries, each under its own lock. An entry takes at most 42
//! bytes plus the part of its key that other keys of its bucket do not share. For snapshots, the
//! index keeps versions that were replaced.
//!
//! Invariants:
//! * The newest `seq` of a key wins.
//! * A snapshot sees exactly the versions that were current when it began.
//! * A lock is held for a bounded number of entries only.

mod arena;
mod history;
mod key_place;
mod memory_index;
mod prefixes;
mod shard;
mod terms_check;

pub(crate) use memory_index::MemoryIndex;

use crate::journal::{Entry, IndexSizes, Loaded, Position, SweepCursor};
use crate::key_hash::{KeyHashRange, key_hash};
use crate::polite_lock::{lock_politely, write_politely};
use bytes::Bytes;
use history::SlotMask;
use key_place::KeyPlace;
use parking_lot::{Mutex, RwLock};
use shard::{Shard, ShardWalk};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 32;
/// The lowest bit of a hash that chooses the shard.
const SHARD_BITS_FROM: u32 = 40;
/// The most snapshots at the same time: one bit each.
pub(crate) const SNAPSHOTS_MAX: usize = 64;
/// Entries that a sweep for expired versions visits under one lock.
const VISITS_PER_LOCK: usize = 1024;
/// Entries that the walk of a snapshot visits under one lock. It keeps gets and puts out, and the
/// thread that walks may give way to others.
const WALK_VISITS_PER_LOCK: usize = 64;

/// A key with its hash, computed once for each call.
#[derive(Clone, Copy)]
pub(crate) struct HashedKey<'a> {
    pub(crate) key: &'a [u8],
    hash: u64,
}

impl<'a> HashedKey<'a> {
    pub(crate) fn new(key: &'a [u8]) -> Self {
        Self { key, hash: key_hash(key) }
    }

    /// The shard is chosen by bits in the middle of the hash, because the tables use its lowest and
    /// highest bits.
    fn shard(self) -> usize {
        (self.hash >> SHARD_BITS_FROM) as usize % SHARDS
    }
}

pub(crate) struct Index {
    shards: Vec<RwLock<Shard>>,
    /// The bits of the live snapshots.
    live: AtomicU64,
    /// For each snapshot, the `seq` up to which it sees versions.
    slots: Mutex<[Option<u64>; SNAPSHOTS_MAX]>,
    compact_next: AtomicUsize,
}

/// A snapshot's place in the index, and the progress of its walk.
pub(crate) struct SnapshotSlot {
    slot: u32,
    seq: u64,
    shard: usize,
    walk: ShardWalk,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            live: AtomicU64::new(0),
            slots: Mutex::new([None; SNAPSHOTS_MAX]),
            compact_next: AtomicUsize::new(0),
        }
    }

    pub(crate) fn get(&self, key: HashedKey<'_>) -> Option<Entry> {
        self.shards[key.shard()].read().get(key.hash, key.key)
    }

    /// Stores a version that is newer than any before; returns the entry that it replaces.
    pub(crate) fn put(&self, key: HashedKey<'_>, entry: &Entry) -> Option<Entry> {
        self.shards[key.shard()].write().put(key.hash, key.key, entry, |seq| self.seen_by_snapshots(seq))
    }

    pub(crate) fn remove_if(&self, key: HashedKey<'_>, condition: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let mut shard = self.shards[key.shard()].write();
        shard.remove_if(key.hash, key.key, condition, |seq| self.seen_by_snapshots(seq))
    }

    /// Changes the position of a version; false if the key's version is no longer the one at
    /// `from`.
    pub(crate) fn relocate(&self, key: HashedKey<'_>, from: Position, to: Position) -> bool {
        self.shards[key.shard()].write().relocate(key.hash, key.key, from, to)
    }

    /// Loads a record that was found on disk. Records come in any order. A tombstone has size 0 and
    /// stays until [`finish_load`](Self::finish_load). Of two copies of a version, the one in the
    /// file with the higher id is taken.
    pub(crate) fn load(&self, key: HashedKey<'_>, entry: &Entry) -> Loaded {
        let mut shard = self.shards[key.shard()].write();
        let newer = |old: Entry| (old.seq, old.position.file_id) > (entry.seq, entry.position.file_id);
        if shard.get(key.hash, key.key).is_some_and(newer) {
            return Loaded::Superseded;
        }
        Loaded::Newest(shard.put(key.hash, key.key, entry, |_| 0))
    }

    /// Removes the tombstones of a load.
    pub(crate) fn finish_load(&self) {
        for shard in &self.shards {
            let mut shard = shard.write();
            shard.remove_all(|entry| entry.position.size == 0);
            shard.compact();
        }
    }

    /// Continues a sweep for versions that expired before `now_secs`. A shard that was compacted
    /// meanwhile is swept from its beginning.
    pub(crate) fn expired(&self, now_secs: u64, cursor: &mut SweepCursor, count_max: usize) -> Vec<Bytes> {
        let (mut keys, mut key) = (Vec::new(), Vec::new());
        let mut visits = 0;
        while visits < count_max {
            let Some(shard) = self.shards.get(cursor.shard) else {
                cursor.is_done = true;
                break;
            };
            let shard = shard.read();
            if cursor.compactions != shard.compactions() {
                (cursor.place, cursor.compactions) = (0, shard.compactions());
            }
            for _ in 0..VISITS_PER_LOCK {
                visits += 1;
                let Some((entry, next)) = shard.look(cursor.place, &mut key) else {
                    (cursor.shard, cursor.place) = (cursor.shard + 1, 0);
                    break;
                };
                if entry.expires_secs != 0 && u64::from(entry.expires_secs) < now_secs {
                    keys.push(Bytes::copy_from_slice(&key));
                }
                cursor.place = next;
            }
        }
        keys
    }

    /// Goes on with a walk over all keys that keeps no snapshot, and returns up to `count_max` of
    /// them. A key that is there all the time is met, unless it moves within its shard: because its
    /// expiry comes or goes, or by more than [`key_place::LAPS_MAX`] compactions. A key may be met
    /// twice.
    pub(crate) fn keys_from(&self, place: &mut KeyPlace, count_max: usize) -> Vec<Bytes> {
        let (mut keys, mut key) = (Vec::new(), Vec::new());
        while keys.len() < count_max {
            let Some(shard) = self.shards.get(place.shard as usize) else { break };
            let shard = shard.read();
            if !place.is_of(shard.compactions()) {
                place.next_shard();
                continue;
            }
            match shard.look(place.entry, &mut key) {
                Some((_, next)) => {
                    keys.push(Bytes::copy_from_slice(&key));
                    place.entry = next;
                }
                None => place.next_shard(),
            }
        }
        keys
    }

    /// Compacts the next shard if it is sparse.
    pub(crate) fn compact_some(&self) {
        if self.live.load(Ordering::Acquire) == 0 {
            let next = self.compact_next.fetch_add(1, Ordering::Relaxed) % SHARDS;
            self.shards[next].write().compact();
        }
    }

    pub(crate) fn sizes(&self) -> IndexSizes {
        let mut sizes = IndexSizes { bytes: size_of::<Self>() as u64, ..IndexSizes::default() };
        for shard in &self.shards {
            let shard = shard.read();
            sizes.keys += shard.len() as u64;
            sizes.key_bytes += shard.key_bytes();
            sizes.bytes += shard.capacity_bytes() as u64;
        }
        sizes
    }

    /// Begins a snapshot of everything up to `seq`; none if too many are live. No put may run at
    /// the same time.
    pub(crate) fn begin_snapshot(&self, seq: u64) -> Option<SnapshotSlot> {
        // The caller keeps puts out, so this waits in line.
        let mut slots = self.slots.lock();
        let slot = slots.iter().position(Option::is_none)?;
        slots[slot] = Some(seq);
        self.live.fetch_or(1 << slot, Ordering::AcqRel);
        Some(SnapshotSlot { slot: slot as u32, seq, shard: 0, walk: ShardWalk::default() })
    }

    pub(crate) fn end_snapshot(&self, snapshot: &SnapshotSlot) {
        self.live.fetch_and(!(1 << snapshot.slot), Ordering::AcqRel);
        for shard in &self.shards {
            write_politely(shard).release(snapshot.slot);
        }
        // Only now may another snapshot use the bit.
        lock_politely(&self.slots)[snapshot.slot as usize] = None;
    }

    pub(crate) fn get_at(&self, key: HashedKey<'_>, snapshot: &SnapshotSlot) -> Option<Entry> {
        self.shards[key.shard()].read().get_at(key.hash, key.key, snapshot.slot, snapshot.seq)
    }

    /// Continues a snapshot's walk until `visit` has enough (true) or all entries were visited
    /// (false). Shards without keys whose hash is in the range are skipped.
    pub(crate) fn walk(
        &self,
        snapshot: &mut SnapshotSlot,
        hashes: KeyHashRange,
        mut visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> bool {
        let mut enough = false;
        while let Some(shard) = self.shards.get(snapshot.shard) {
            if !hashes.meets(SHARD_BITS_FROM, SHARDS, snapshot.shard) {
                snapshot.shard += 1;
                continue;
            }
            let SnapshotSlot { walk, slot, seq, .. } = snapshot;
            let more = write_politely(shard).walk(walk, *slot, *seq, WALK_VISITS_PER_LOCK, |key, entry| {
                let more = visit(key, entry);
                enough = !more;
                more
            });
            if !more {
                snapshot.shard += 1;
                snapshot.walk = ShardWalk::default();
            }
            if enough {
                return true;
            }
        }
        false
    }

    fn seen_by_snapshots(&self, seq: u64) -> SlotMask {
        let live = self.live.load(Ordering::Acquire);
        if live == 0 {
            return 0;
        }
        let slots = self.slots.lock();
        let seeing = |(slot, seen): (usize, &Option<u64>)| seen.filter(|seen| *seen >= seq).map(|_| 1u64 << slot);
        slots.iter().enumerate().filter_map(seeing).fold(0, |mask, bit| mask | bit) & live
    }
}

#[cfg(test)]
mod tests;
