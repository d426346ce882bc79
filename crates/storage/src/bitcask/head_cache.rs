//! A cache of heads that were just written or read, so that the next write of a key need not read
//! the current head from its file.
//!
//! What it is: a table of a fixed size, one for all stores of a root. A head is found by the
//! position of its record. The record at a position never changes, so a head in the cache is never
//! wrong. A head whose version was replaced is forgotten, to make room. A head whose version was
//! moved or has expired is no longer looked up, and another one takes its slot.
//!
//! What it is not: a cache of values. The kernel's page cache does that.
//!
//! Hot path: a look-up takes one lock with little contention and touches at most four cache lines.

use crate::journal::Position;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The longest head that is cached. Longer heads, which only objects with much metadata have, are
/// read from their file.
const HEAD_BYTES_MAX: usize = 241;
/// Slots for each lock, and number of locks. Together the slots take 8 MiB, allocated on first use.
const SLOTS_PER_LOCK: usize = 512;
const LOCKS: usize = 64;
/// The slots that a head can be in. The least recently used one is replaced.
const WAYS: usize = 2;

/// Identifies a store that uses the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoreId(u32);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    store: StoreId,
    file_id: u32,
    offset: u32,
}

impl Place {
    const fn new(store: StoreId, at: Position) -> Self {
        Self { store, file_id: at.file_id, offset: at.offset }
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Slot {
    place: Place,
    /// 0: the slot is empty. No head is empty.
    head_len: u16,
    /// Whether the other slot that the head could be in was used before this one.
    is_newer: bool,
    head: [u8; HEAD_BYTES_MAX],
}

const EMPTY: Slot = Slot {
    place: Place { store: StoreId(0), file_id: 0, offset: 0 },
    head_len: 0,
    is_newer: false,
    head: [0; HEAD_BYTES_MAX],
};

impl Slot {
    fn holds(&self, place: Place) -> bool {
        self.place == place && self.head_len > 0
    }
}

/// Notes which slot of a set was used last.
fn mark_used(set: &mut [Slot], way: usize) {
    set.iter_mut().enumerate().for_each(|(i, slot)| slot.is_newer = i == way);
}

pub(super) struct HeadCache {
    stores: AtomicU32,
    parts: Vec<Mutex<Vec<Slot>>>,
}

impl HeadCache {
    pub(super) fn new() -> Self {
        Self { stores: AtomicU32::new(0), parts: (0..LOCKS).map(|_| Mutex::default()).collect() }
    }

    /// A new store id. A reopened store gets another one, because after a drop the same positions
    /// may hold other records.
    pub(super) fn enter(&self) -> StoreId {
        StoreId(self.stores.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls `use_it` with the head at a position, if the cache has it.
    pub(super) fn get_with<T>(&self, store: StoreId, at: Position, use_it: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let place = Place::new(store, at);
        let (part, first) = self.locate(place)?;
        let mut slots = part.lock();
        let set = slots.get_mut(first..first + WAYS)?;
        let way = set.iter().position(|slot| slot.holds(place))?;
        mark_used(set, way);
        let slot = set.get(way)?;
        slot.head.get(..usize::from(slot.head_len)).map(use_it)
    }

    /// Caches the head at a position.
    pub(super) fn insert(&self, store: StoreId, at: Position, head: &[u8]) {
        let place = Place::new(store, at);
        let Some((part, first)) = self.locate(place).filter(|_| head.len() <= HEAD_BYTES_MAX) else { return };
        let mut slots = part.lock();
        if slots.is_empty() {
            slots.resize(SLOTS_PER_LOCK, EMPTY);
        }
        let Some(set) = slots.get_mut(first..first + WAYS) else { return };
        let free = set.iter().position(|slot| slot.place == place || slot.head_len == 0);
        let Some(way) = free.or_else(|| set.iter().position(|slot| !slot.is_newer)) else { return };
        mark_used(set, way);
        let Some(slot) = set.get_mut(way) else { return };
        slot.place = place;
        slot.head_len = head.len() as u16; // At most HEAD_BYTES_MAX.
        if let Some(room) = slot.head.get_mut(..head.len()) {
            room.copy_from_slice(head);
        }
    }

    /// Makes room, because the version at a position was replaced.
    pub(super) fn forget(&self, store: StoreId, at: Position) {
        let place = Place::new(store, at);
        let Some((part, first)) = self.locate(place) else { return };
        let mut slots = part.lock();
        let Some(set) = slots.get_mut(first..first + WAYS) else { return };
        if let Some(slot) = set.iter_mut().find(|slot| slot.holds(place)) {
            slot.head_len = 0;
        }
    }

    /// The lock for a position, and the index of its first slot.
    fn locate(&self, place: Place) -> Option<(&Mutex<Vec<Slot>>, usize)> {
        let at = u64::from(place.file_id) << 32 | u64::from(place.offset);
        let hash = xxh3_64_with_seed(&at.to_le_bytes(), u64::from(place.store.0)) as usize;
        let set = hash / LOCKS % (SLOTS_PER_LOCK / WAYS);
        self.parts.get(hash % LOCKS).map(|part| (part, set * WAYS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(file_id: u32, offset: u32) -> Position {
        Position { file_id, offset, size: 100, head_units: 1, has_terms: false }
    }

    fn found(cache: &HeadCache, store: StoreId, position: Position) -> Option<Vec<u8>> {
        cache.get_with(store, position, <[u8]>::to_vec)
    }

    #[test]
    fn a_head_is_found_where_it_lies_and_nowhere_else() {
        let cache = HeadCache::new();
        let (one, other) = (cache.enter(), cache.enter());
        cache.insert(one, at(1, 64), b"head");
        assert_eq!(found(&cache, one, at(1, 64)).as_deref(), Some(&b"head"[..]));
        for (store, position) in [(other, at(1, 64)), (one, at(2, 64)), (one, at(1, 65))] {
            assert_eq!(found(&cache, store, position), None);
        }
        cache.insert(one, at(1, 64), b"after a truncation");
        assert_eq!(found(&cache, one, at(1, 64)).as_deref(), Some(&b"after a truncation"[..]));
    }

    #[test]
    fn it_does_not_grow_and_never_mixes_up() {
        let cache = HeadCache::new();
        let store = cache.enter();
        let head = |n: u32| vec![n as u8; 1 + n as usize % HEAD_BYTES_MAX];
        let count = 4 * (LOCKS * SLOTS_PER_LOCK) as u32;
        (0..count).for_each(|n| cache.insert(store, at(1, n), &head(n)));
        let hits = (0..count).filter(|n| found(&cache, store, at(1, *n)).is_some_and(|h| h == head(*n))).count();
        let kept = (0..count).filter(|n| found(&cache, store, at(1, *n)).is_some()).count();
        assert_eq!(hits, kept);
        assert!((LOCKS * SLOTS_PER_LOCK / 2..=LOCKS * SLOTS_PER_LOCK).contains(&kept), "{kept} kept");
        assert!(cache.parts.iter().all(|part| part.lock().len() == SLOTS_PER_LOCK));
    }

    /// Three positions whose heads share two slots.
    fn three_of_one_set(cache: &HeadCache, store: StoreId) -> [u32; 3] {
        let set_of = |offset| {
            let (part, first) = cache.locate(Place { store, file_id: 1, offset }).unwrap();
            (std::ptr::from_ref(part), first)
        };
        let same = (1..).filter(|offset| set_of(*offset) == set_of(0));
        let mut found = std::iter::once(0).chain(same);
        std::array::from_fn(|_| found.next().unwrap())
    }

    #[test]
    fn the_head_that_was_used_last_stays() {
        let cache = HeadCache::new();
        let store = cache.enter();
        let [a, b, c] = three_of_one_set(&cache, store);
        cache.insert(store, at(1, a), b"a");
        cache.insert(store, at(1, b), b"b");
        assert!(found(&cache, store, at(1, a)).is_some());
        cache.insert(store, at(1, c), b"c");
        assert_eq!([a, b, c].map(|offset| found(&cache, store, at(1, offset)).is_some()), [true, false, true]);
    }

    #[test]
    fn the_slot_of_a_replaced_version_is_taken_first() {
        let cache = HeadCache::new();
        let store = cache.enter();
        let [a, b, c] = three_of_one_set(&cache, store);
        cache.insert(store, at(1, a), b"a");
        cache.insert(store, at(1, b), b"b");
        cache.forget(store, at(1, b));
        assert_eq!(found(&cache, store, at(1, b)), None);
        cache.insert(store, at(1, c), b"c");
        assert_eq!([a, b, c].map(|offset| found(&cache, store, at(1, offset)).is_some()), [true, false, true]);
    }

    #[test]
    fn long_heads_are_left_alone() {
        let cache = HeadCache::new();
        let store = cache.enter();
        cache.insert(store, at(1, 1), &[1; HEAD_BYTES_MAX + 1]);
        assert_eq!(found(&cache, store, at(1, 1)), None);
        cache.insert(store, at(1, 2), &[1; HEAD_BYTES_MAX]);
        assert!(found(&cache, store, at(1, 2)).is_some());
    }

    #[test]
    fn a_slot_is_four_cache_lines() {
        assert_eq!(size_of::<Slot>(), 256);
    }
}
