//! Versions that live snapshots still see although they were replaced or removed. There is at most
//! one version for each key and snapshot. A version is removed with the last snapshot that needs
//! it.

use crate::journal::Entry;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;

/// A set of snapshots, one bit each.
pub(super) type SlotMask = u64;

struct Version {
    entry: Entry,
    /// Snapshots that see this version.
    seen_by_snapshots: SlotMask,
    /// The snapshots among them whose walk had already passed the version when it was replaced.
    visited_by: SlotMask,
}

/// The replaced versions of one shard, and how far each snapshot's walk over the shard has come.
#[derive(Default)]
pub(super) struct History {
    versions: BTreeMap<Bytes, Vec<Version>>,
    /// For each snapshot, its slot and the first handle that its walk has not passed.
    walks: Vec<(u32, u32)>,
}

impl History {
    /// Keeps a replaced version that lay at `handle`, for the snapshots in `seen_by_snapshots`.
    pub(super) fn keep(&mut self, key: &[u8], entry: Entry, handle: u32, seen_by_snapshots: SlotMask) {
        let versions = self.versions.entry(Bytes::copy_from_slice(key)).or_default();
        // A snapshot that needs an older version does not see this one. Without this check, a
        // snapshot without an upper `seq` would keep every change.
        let seen_by_snapshots = versions.iter().fold(seen_by_snapshots, |mask, older| mask & !older.seen_by_snapshots);
        if seen_by_snapshots == 0 {
            return;
        }
        let visited_by =
            self.walks.iter().filter(|(_, next)| handle < *next).fold(0, |mask, (slot, _)| mask | 1 << slot);
        let version = Version { entry, seen_by_snapshots, visited_by: visited_by & seen_by_snapshots };
        versions.push(version);
    }

    pub(super) fn set_walk(&mut self, slot: u32, next: u32) {
        match self.walks.iter_mut().find(|(other, _)| *other == slot) {
            Some((_, position)) => *position = next,
            None => self.walks.push((slot, next)),
        }
    }

    pub(super) fn get(&self, key: &[u8], slot: u32) -> Option<Entry> {
        let version = self.versions.get(key)?.iter().find(|version| version.seen_by_snapshots & (1 << slot) != 0)?;
        Some(version.entry)
    }

    /// The next version after the key `last` that a snapshot sees and its walk did not visit, with
    /// its key.
    pub(super) fn next_unvisited(&self, last: Option<&Bytes>, slot: u32) -> Option<(&Bytes, Entry)> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.versions.range::<Bytes, _>((from, Bound::Unbounded)).find_map(|(key, versions)| {
            let seen = |version: &&Version| version.seen_by_snapshots & !version.visited_by & (1 << slot) != 0;
            versions.iter().find(seen).map(|version| (key, version.entry))
        })
    }

    /// Removes a snapshot; true if nothing is left.
    pub(super) fn release(&mut self, slot: u32) -> bool {
        self.walks.retain(|(other, _)| *other != slot);
        self.versions.retain(|_, versions| {
            versions.iter_mut().for_each(|version| {
                version.seen_by_snapshots &= !(1 << slot);
                version.visited_by &= !(1 << slot);
            });
            versions.retain(|version| version.seen_by_snapshots != 0);
            !versions.is_empty()
        });
        self.walks.is_empty() && self.versions.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        // An estimate for a tree node, plus the key and the list.
        self.versions.iter().map(|(key, list)| key.len() + 64 + list.capacity() * size_of::<Version>()).sum()
    }
}
