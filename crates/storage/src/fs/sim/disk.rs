//! The content of the simulated disk, and what programs see of it.

use crate::fs::BLOCK_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A disk usually writes a sector as a whole.
pub(super) const SECTOR_BYTES: usize = 512;

/// A read through the page cache fails for a whole page.
const UNREADABLE_BYTES: usize = BLOCK_BYTES as usize;

#[derive(Clone)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Clone, Default)]
pub(super) struct FileNode {
    /// The content that programs see.
    pub(super) bytes: Vec<u8>,
    /// The content on the disk.
    pub(super) disk: Vec<u8>,
    /// Sectors that the next sync writes to the disk.
    pub(super) dirty: BTreeSet<usize>,
    /// Blocks that cannot be read until they are written anew as a whole.
    pub(super) unreadable: BTreeSet<usize>,
}

#[derive(Clone, Default)]
pub(super) struct DirNode {
    pub(super) names: BTreeMap<String, usize>,
    disk: BTreeMap<String, usize>,
    /// Changes since the last sync. Each one survives a loss of power as a whole or not at all.
    pending: Vec<Vec<(String, Option<usize>)>>,
}

fn part_of(bytes: &[u8], start: usize, length: usize) -> &[u8] {
    let start = start.min(bytes.len());
    &bytes[start..(start + length).min(bytes.len())]
}

impl FileNode {
    /// Writes the first `length` bytes of a sector to the disk.
    fn write_part_to_disk(&mut self, sector: usize, length: usize) {
        let start = sector * SECTOR_BYTES;
        if self.disk.len() < start + SECTOR_BYTES {
            self.disk.resize(start + SECTOR_BYTES, 0);
        }
        let content = part_of(&self.bytes, start, length);
        self.disk[start..start + length].fill(0);
        self.disk[start..start + content.len()].copy_from_slice(content);
    }

    pub(super) fn write_sector_to_disk(&mut self, sector: usize) {
        self.write_part_to_disk(sector, SECTOR_BYTES);
    }

    pub(super) fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            self.write_sector_to_disk(sector);
        }
        self.disk.resize(self.bytes.len(), 0);
    }

    /// Writes bytes at an offset, extending the file if needed.
    pub(super) fn put(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        self.mark_dirty(offset, end);
    }

    /// Whether all bytes of a range can be read.
    pub(super) fn is_readable(&self, start: usize, length: usize) -> bool {
        let blocks = start / UNREADABLE_BYTES..(start + length).div_ceil(UNREADABLE_BYTES);
        length == 0 || self.unreadable.range(blocks).next().is_none()
    }

    /// Makes a range unreadable, and everything that a disk loses with it.
    pub(super) fn set_unreadable(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.unreadable.extend(range.start / UNREADABLE_BYTES..=(range.end - 1) / UNREADABLE_BYTES);
        }
    }

    fn mark_dirty(&mut self, start: usize, end: usize) {
        if end > start {
            // A disk puts what is written to a bad place into another one.
            let whole = start.div_ceil(UNREADABLE_BYTES)..end / UNREADABLE_BYTES;
            self.unreadable.retain(|block| !whole.contains(block));
            self.dirty.extend(start / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES);
        }
    }

    /// Extends the file with zeros to at least `length` bytes.
    pub(super) fn extend(&mut self, length: usize) {
        let old = self.bytes.len();
        if old < length {
            self.bytes.resize(length, 0);
            self.mark_dirty(old, length);
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        let old = self.bytes.len();
        self.bytes.resize(length, 0);
        self.dirty.extend(length / SECTOR_BYTES..=old.max(length) / SECTOR_BYTES);
    }

    /// Loses unsynced data. With `random`, a random part of it survives.
    pub(super) fn lose(&mut self, random: Option<&mut dyn FnMut() -> u64>) {
        if let Some(random) = random {
            let (disk_len, len) = (self.disk.len(), self.bytes.len());
            for sector in self.dirty.clone() {
                match random() % 8 {
                    0..4 => {}
                    4..7 => self.write_sector_to_disk(sector),
                    // A torn write within the sector.
                    _ => self.write_part_to_disk(sector, (random() % SECTOR_BYTES as u64) as usize),
                }
            }
            let (low, high) = (disk_len.min(len), disk_len.max(len));
            // Usually one of the two lengths, sometimes one in between.
            let kept = match random() % 4 {
                0 => disk_len,
                1 | 2 => len,
                _ => low + (random() % (high - low + 1) as u64) as usize,
            };
            self.disk.resize(kept, 0);
        }
        self.bytes = self.disk.clone();
        self.dirty.clear();
    }
}

impl DirNode {
    pub(super) fn change(&mut self, changes: Vec<(String, Option<usize>)>) {
        apply(&mut self.names, &changes);
        self.pending.push(changes);
    }

    pub(super) fn sync(&mut self) {
        self.pending.clear();
        self.disk = self.names.clone();
    }

    /// Loses unsynced changes. With `random`, random ones survive.
    pub(super) fn lose(&mut self, mut random: Option<&mut dyn FnMut() -> u64>) {
        for changes in std::mem::take(&mut self.pending) {
            if random.as_mut().is_some_and(|random| random() % 2 == 1) {
                apply(&mut self.disk, &changes);
            }
        }
        self.names = self.disk.clone();
    }
}

fn apply(names: &mut BTreeMap<String, usize>, changes: &[(String, Option<usize>)]) {
    for (name, node) in changes {
        match node {
            Some(node) => drop(names.insert(name.clone(), *node)),
            None => drop(names.remove(name)),
        }
    }
}
