//! The memory for packed index entries: 28 bytes each, and the part of the key that other keys of
//! its bucket do not share. Entries lie in chunks and are addressed by 32-bit handles. They
//! dominate the memory of a bitcask store, so every byte counts.
//!
//! ```text
//!   0 file_id     u32    FREE: the slot is free, and `offset` names the next free one of its size
//!   4 offset      u32
//!   8 size        u24    with its highest byte in the extension
//!  11 digest      u64
//!  19 seq         u48
//!  25 flags       u8     128 the head has index entries, 64 there is an extension,
//!                        0 … 63 head_units
//!  26 prefix      u8     which prefix the key begins with; 0: none
//!  27 len         u8     of the rest of the key; 255: see below
//!  28 long_len    u24    only where len is 255
//!     extension   5      only with its flag: expires_secs u32, highest byte of size u8
//!     rest of the key
//! ```
//!
//! Invariants:
//! * An entry never moves. An update in place (such as a relocation) keeps its handle.
//! * A walk visits entries in the order of their handles.

use crate::journal::{Entry, HEAD_UNITS_MANY, Position, le_at};
use crate::limits::SEQ_MAX;

/// The least number of bytes of an entry before its key.
const FIXED_BYTES: usize = 28;
const LONG_LEN: u8 = u8::MAX;
const LONG_LEN_BYTES: usize = 3;
const EXTENSION_BYTES: usize = 5;
/// Sizes beyond this need the extension.
const SHORT_SIZE_MAX: u32 = (1 << 24) - 1;
/// The size to which chunks grow. A longer entry gets a chunk of its own.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNK_BYTES_FIRST: usize = 256;
/// A handle counts units of this many bytes.
const HANDLE_UNIT_BYTES: usize = 2;
const OFFSET_BITS: u32 = 13;
/// In place of a file id: the slot is free. No file has this id.
const FREE: u32 = u32::MAX;
const TERMS: u8 = 0x80;
const EXTENDED: u8 = 0x40;
/// The bits for head units in the flags. All of them set: [`HEAD_UNITS_MANY`].
const HEAD_UNITS: u8 = 0x3F;
const NO_SLOT: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
    /// The first free slot of each slot size. Each free slot names the next one.
    free: Vec<(u32, u32)>,
    used_bytes: usize,
    dead_bytes: usize,
}

/// The lengths that determine the layout of a slot.
#[derive(Clone, Copy)]
struct Layout {
    rest_len: usize,
    is_extended: bool,
}

impl Layout {
    fn new(rest_len: usize, entry: &Entry) -> Self {
        Self { rest_len, is_extended: is_extended(entry) }
    }

    fn of(slot: &[u8]) -> Self {
        let rest_len = match slot[27] {
            LONG_LEN => usize::from(slot[28]) | usize::from(slot[29]) << 8 | usize::from(slot[30]) << 16,
            len => usize::from(len),
        };
        Self { rest_len, is_extended: slot[25] & EXTENDED != 0 }
    }

    fn extension_start(self) -> usize {
        FIXED_BYTES + if self.rest_len >= usize::from(LONG_LEN) { LONG_LEN_BYTES } else { 0 }
    }

    fn rest_start(self) -> usize {
        self.extension_start() + if self.is_extended { EXTENSION_BYTES } else { 0 }
    }

    fn slot_bytes(self) -> usize {
        (self.rest_start() + self.rest_len).next_multiple_of(HANDLE_UNIT_BYTES)
    }
}

fn is_extended(entry: &Entry) -> bool {
    entry.expires_secs != 0 || entry.position.size > SHORT_SIZE_MAX
}

impl Arena {
    /// Inserts an entry. `prefix` is the number of the key's prefix, `rest` is the rest of the key.
    pub(super) fn insert(&mut self, prefix: u8, rest: &[u8], entry: &Entry) -> u32 {
        let layout = Layout::new(rest.len(), entry);
        let size = layout.slot_bytes();
        let handle = self.take_free(size).unwrap_or_else(|| self.take_new(size));
        self.used_bytes += size;
        let slot = self.slot_mut(handle);
        slot[25] = if layout.is_extended { EXTENDED } else { 0 };
        slot[26] = prefix;
        slot[27] = u8::try_from(rest.len()).unwrap_or(LONG_LEN);
        if slot[27] == LONG_LEN {
            slot[28..31].copy_from_slice(&(rest.len() as u32).to_le_bytes()[..3]);
        }
        let start = layout.rest_start();
        slot[start..start + rest.len()].copy_from_slice(rest);
        self.set(handle, entry);
        handle
    }

    /// Whether an entry fits into the slot of another one.
    pub(super) fn has_room(&self, handle: u32, entry: &Entry) -> bool {
        Layout::of(self.slot(handle)).is_extended == is_extended(entry)
    }

    /// Overwrites an entry in its slot, which must [have room](Self::has_room).
    pub(super) fn set(&mut self, handle: u32, entry: &Entry) {
        assert!(entry.seq <= SEQ_MAX && entry.position.file_id != FREE, "beyond what the index can hold");
        let slot = self.slot_mut(handle);
        let layout = Layout::of(slot);
        // An entry that a merge made shorter stays in its slot, where walks expect it.
        assert!(layout.is_extended || !is_extended(entry), "an entry in a slot that is too short");
        let Position { file_id, offset, size, head_units, has_terms } = entry.position;
        slot[0..4].copy_from_slice(&file_id.to_le_bytes());
        slot[4..8].copy_from_slice(&offset.to_le_bytes());
        slot[8..11].copy_from_slice(&size.to_le_bytes()[..3]);
        slot[11..19].copy_from_slice(&entry.digest.to_le_bytes());
        slot[19..25].copy_from_slice(&entry.seq.to_le_bytes()[..6]);
        let terms = if has_terms { TERMS } else { 0 };
        slot[25] = head_units.min(HEAD_UNITS) | terms | slot[25] & EXTENDED;
        if layout.is_extended {
            let start = layout.extension_start();
            slot[start..start + 4].copy_from_slice(&entry.expires_secs.to_le_bytes());
            slot[start + 4] = (size >> 24) as u8;
        }
    }

    pub(super) fn entry(&self, handle: u32) -> Entry {
        let slot = self.slot(handle);
        let layout = Layout::of(slot);
        let (mut seq, mut size) = ([0; 8], [slot[8], slot[9], slot[10], 0]);
        seq[..6].copy_from_slice(&slot[19..25]);
        let mut expires_secs = 0;
        if layout.is_extended {
            let start = layout.extension_start();
            expires_secs = le_at!(u32, slot, start);
            size[3] = slot[start + 4];
        }
        let head_units = match slot[25] & HEAD_UNITS {
            HEAD_UNITS => HEAD_UNITS_MANY,
            units => units,
        };
        let position = Position {
            file_id: le_at!(u32, slot, 0),
            offset: le_at!(u32, slot, 4),
            size: u32::from_le_bytes(size),
            head_units,
            has_terms: slot[25] & TERMS != 0,
        };
        Entry { position, expires_secs, seq: u64::from_le_bytes(seq), digest: le_at!(u64, slot, 11) }
    }

    /// The number of the key's prefix, and the rest of the key.
    pub(super) fn key(&self, handle: u32) -> (u8, &[u8]) {
        let slot = self.slot(handle);
        let layout = Layout::of(slot);
        let start = layout.rest_start();
        (slot[26], &slot[start..start + layout.rest_len])
    }

    pub(super) fn remove(&mut self, handle: u32) {
        let size = Layout::of(self.slot(handle)).slot_bytes();
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

    /// The first entry at or after `from`, with the handle at which to continue.
    pub(super) fn walk(&self, from: u32) -> Option<(u32, u32)> {
        let mut chunk = (from >> OFFSET_BITS) as usize;
        let mut offset = (from & ((1 << OFFSET_BITS) - 1)) as usize * HANDLE_UNIT_BYTES;
        loop {
            let bytes = self.chunks.get(chunk)?;
            if offset >= bytes.len() {
                (chunk, offset) = (chunk + 1, 0);
                continue;
            }
            let slot = &bytes[offset..];
            let next = offset + Layout::of(slot).slot_bytes();
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

    /// Whether more than a quarter is free slots, so that a compaction is worthwhile.
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
        let offset = (handle & ((1 << OFFSET_BITS) - 1)) as usize * HANDLE_UNIT_BYTES;
        &self.chunks[(handle >> OFFSET_BITS) as usize][offset..]
    }

    fn slot_mut(&mut self, handle: u32) -> &mut [u8] {
        let offset = (handle & ((1 << OFFSET_BITS) - 1)) as usize * HANDLE_UNIT_BYTES;
        &mut self.chunks[(handle >> OFFSET_BITS) as usize][offset..]
    }
}

fn handle(chunk: usize, offset: usize) -> u32 {
    assert!(chunk < 1 << (32 - OFFSET_BITS), "an index shard beyond 8 GiB");
    ((chunk as u32) << OFFSET_BITS) | (offset / HANDLE_UNIT_BYTES) as u32
}
