//! Packed index entries: 34 bytes and the key, in chunks, addressed by 32-bit handles.
//!
//! Invariants: an entry never moves; an update in place keeps its handle; the order of handles is the order of a walk.

use crate::journal::{Entry, Position, le_at};
use crate::limits::SEQ_MAX;

/// Bytes of an entry before its key.
pub(super) const FIXED_BYTES: usize = 34;
/// Chunks grow to this size; a longer entry gets a chunk of its own.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNK_BYTES_FIRST: usize = 256;
/// Handles count pairs of bytes.
const GRAIN_BYTES: usize = 2;
const OFFSET_BITS: u32 = 13;
/// In the place of a file id: the slot is free. No file has this id.
const FREE: u32 = u32::MAX;
/// Beside the length of the head.
const TERMS: u8 = 0x80;
const NO_SLOT: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// First free slot of each slot size; the next one is named in the slot.
    free: Vec<(u32, u32)>,
    used_bytes: usize,
    dead_bytes: usize,
}

fn slot_bytes(key_len: usize) -> usize {
    (FIXED_BYTES + key_len).next_multiple_of(GRAIN_BYTES)
}

impl Arena {
    pub(super) fn insert(&mut self, key: &[u8], entry: &Entry) -> u32 {
        let size = slot_bytes(key.len());
        let handle = self.take_free(size).unwrap_or_else(|| self.take_new(size));
        self.used_bytes += size;
        let slot = self.slot_mut(handle);
        slot[30..33].copy_from_slice(&(key.len() as u32).to_le_bytes()[..3]);
        slot[FIXED_BYTES..FIXED_BYTES + key.len()].copy_from_slice(key);
        self.set(handle, entry);
        handle
    }

    pub(super) fn set(&mut self, handle: u32, entry: &Entry) {
        assert!(entry.seq <= SEQ_MAX && entry.position.file_id != FREE, "beyond what the index can hold");
        let slot = self.slot_mut(handle);
        slot[0..4].copy_from_slice(&entry.position.file_id.to_le_bytes());
        slot[4..8].copy_from_slice(&entry.position.offset.to_le_bytes());
        slot[8..12].copy_from_slice(&entry.position.size.to_le_bytes());
        slot[12..16].copy_from_slice(&entry.expires_secs.to_le_bytes());
        slot[16..24].copy_from_slice(&entry.digest.to_le_bytes());
        slot[24..30].copy_from_slice(&entry.seq.to_le_bytes()[..6]);
        slot[33] = entry.position.head_units | if entry.position.has_terms { TERMS } else { 0 };
    }

    pub(super) fn entry(&self, handle: u32) -> Entry {
        let slot = self.slot(handle);
        let mut seq = [0; 8];
        seq[..6].copy_from_slice(&slot[24..30]);
        Entry {
            position: Position {
                file_id: le_at!(u32, slot, 0),
                offset: le_at!(u32, slot, 4),
                size: le_at!(u32, slot, 8),
                head_units: slot[33] & !TERMS,
                has_terms: slot[33] & TERMS != 0,
            },
            expires_secs: le_at!(u32, slot, 12),
            digest: le_at!(u64, slot, 16),
            seq: u64::from_le_bytes(seq),
        }
    }

    pub(super) fn key(&self, handle: u32) -> &[u8] {
        let slot = self.slot(handle);
        &slot[FIXED_BYTES..FIXED_BYTES + key_len(slot)]
    }

    pub(super) fn remove(&mut self, handle: u32) {
        let size = slot_bytes(key_len(self.slot(handle)));
        let class = size as u32;
        let next = match self.free.binary_search_by_key(&class, |(size, _)| *size) {
            Ok(at) => std::mem::replace(&mut self.free[at].1, handle),
            Err(at) => {
                self.free.insert(at, (class, handle));
                NO_SLOT
            }
        };
        let slot = self.slot_mut(handle);
        slot[0..4].copy_from_slice(&FREE.to_le_bytes());
        slot[4..8].copy_from_slice(&next.to_le_bytes());
        self.used_bytes -= size;
        self.dead_bytes += size;
    }

    /// The first entry at or after `from`, with the handle at which to go on.
    pub(super) fn walk(&self, from: u32) -> Option<(u32, u32)> {
        let mut chunk = (from >> OFFSET_BITS) as usize;
        let mut offset = (from & ((1 << OFFSET_BITS) - 1)) as usize * GRAIN_BYTES;
        loop {
            let bytes = self.chunks.get(chunk)?;
            if offset >= bytes.len() {
                (chunk, offset) = (chunk + 1, 0);
                continue;
            }
            let slot = &bytes[offset..];
            let next = offset + slot_bytes(key_len(slot));
            if le_at!(u32, slot, 0) != FREE {
                let following = if next >= bytes.len() { handle(chunk + 1, 0) } else { handle(chunk, next) };
                return Some((handle(chunk, offset), following));
            }
            offset = next;
        }
    }

    pub(super) fn capacity_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        chunks + self.chunks.capacity() * size_of::<Vec<u8>>() + self.free.capacity() * size_of::<(u32, u32)>()
    }

    /// More than a quarter is free slots: worth copying.
    pub(super) fn is_sparse(&self) -> bool {
        self.dead_bytes > CHUNK_BYTES && self.dead_bytes > (self.used_bytes + self.dead_bytes) / 4
    }

    fn take_free(&mut self, size: usize) -> Option<u32> {
        let at = self.free.binary_search_by_key(&(size as u32), |(size, _)| *size).ok()?;
        let handle = self.free[at].1;
        match le_at!(u32, self.slot(handle), 4) {
            NO_SLOT => drop(self.free.remove(at)),
            next => self.free[at].1 = next,
        }
        self.dead_bytes -= size;
        Some(handle)
    }

    fn take_new(&mut self, size: usize) -> u32 {
        let fits = self.chunks.last().is_some_and(|chunk| chunk.len() + size <= CHUNK_BYTES);
        if !fits {
            self.chunks.push(Vec::new());
        }
        let index = self.chunks.len() - 1;
        let first = index == 0;
        let chunk = &mut self.chunks[index];
        let offset = chunk.len();
        let needed = offset + size;
        if needed > chunk.capacity() {
            let wanted = if first { (offset * 2).clamp(CHUNK_BYTES_FIRST, CHUNK_BYTES) } else { CHUNK_BYTES };
            chunk.reserve_exact(wanted.max(needed) - offset);
        }
        chunk.resize(needed, 0);
        handle(index, offset)
    }

    fn slot(&self, handle: u32) -> &[u8] {
        let offset = (handle & ((1 << OFFSET_BITS) - 1)) as usize * GRAIN_BYTES;
        &self.chunks[(handle >> OFFSET_BITS) as usize][offset..]
    }

    fn slot_mut(&mut self, handle: u32) -> &mut [u8] {
        let offset = (handle & ((1 << OFFSET_BITS) - 1)) as usize * GRAIN_BYTES;
        &mut self.chunks[(handle >> OFFSET_BITS) as usize][offset..]
    }
}

fn handle(chunk: usize, offset: usize) -> u32 {
    assert!(chunk < 1 << (32 - OFFSET_BITS), "an index shard beyond 8 GiB");
    ((chunk as u32) << OFFSET_BITS) | (offset / GRAIN_BYTES) as u32
}

fn key_len(slot: &[u8]) -> usize {
    usize::from(slot[30]) | usize::from(slot[31]) << 8 | usize::from(slot[32]) << 16
}
