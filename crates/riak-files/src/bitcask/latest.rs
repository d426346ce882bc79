//! Which record of each key is current.

use super::key::canonical;
use super::record::Tombstone;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;
use xxhash_rust::xxh3::xxh3_128;

/// Marks an entry whose record is a tombstone. File numbers are below it, because they count the
/// files of a directory.
const TOMBSTONE_BIT: u32 = 1 << 31;

/// The current record of each key of one directory: Riak's keydir, without the keys themselves. A
/// key is identified by a 128-bit hash, so that each takes about 50 bytes and millions of them fit.
#[derive(Default)]
pub struct Latest {
    entries: HashTable<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    key: (u64, u64),
    tstamp_secs: u32,
    /// The index of the file among the directory's files in the order of their ids, and
    /// [`TOMBSTONE_BIT`].
    file: u32,
    offset: u64,
}

impl Entry {
    fn is_tombstone(&self) -> bool {
        self.file & TOMBSTONE_BIT != 0
    }
}

fn fingerprint(key: &[u8]) -> (u64, u64) {
    let hash = xxh3_128(&canonical(key));
    ((hash >> 64) as u64, hash as u64)
}

impl Latest {
    /// Adds a value. Records are added in the order of files and offsets.
    pub(super) fn put(&mut self, key: &[u8], tstamp_secs: u32, file: u32, offset: u64) {
        self.replace(Entry { key: fingerprint(key), tstamp_secs, file, offset }, |current, _| {
            // The later record wins, unless its time stamp is older (docs/riak/backends.md §2.5).
            tstamp_secs >= current.tstamp_secs
        });
    }

    /// Adds a tombstone. `shadows` returns how many files, counted from the first, the tombstone
    /// covers. It is called only if the result depends on it.
    pub(super) fn remove(
        &mut self,
        key: &[u8],
        tstamp_secs: u32,
        file: u32,
        offset: u64,
        shadows: impl FnOnce() -> u32,
    ) {
        let new = Entry { key: fingerprint(key), tstamp_secs, file: file | TOMBSTONE_BIT, offset };
        self.replace(new, |current, same_file| {
            // In Riak, a put that replaces a record of an earlier file also writes a tombstone for
            // that record, in the same second. A merge may copy this tombstone to a place after the
            // new value. So the file that the tombstone names decides (docs/riak/backends.md §2.4).
            if current.is_tombstone() || same_file || tstamp_secs != current.tstamp_secs {
                return tstamp_secs >= current.tstamp_secs;
            }
            current.file < shadows()
        });
    }

    fn replace(&mut self, new: Entry, wins: impl FnOnce(&Entry, bool) -> bool) {
        match self.entries.entry(new.key.0, |e| e.key == new.key, |e| e.key.0) {
            Slot::Vacant(slot) => {
                slot.insert(new);
            }
            Slot::Occupied(mut slot) => {
                let current = slot.get_mut();
                let same_file = (current.file | TOMBSTONE_BIT) == (new.file | TOMBSTONE_BIT);
                if wins(current, same_file) {
                    *current = new;
                }
            }
        }
    }

    /// Whether the record of `key` at this offset is its current value.
    pub(super) fn is_current(&self, key: &[u8], file: u32, offset: u64) -> bool {
        let key = fingerprint(key);
        self.entries.find(key.0, |e| e.key == key).is_some_and(|e| e.file == file && e.offset == offset)
    }

    /// The number of keys, removed ones included.
    pub fn keys(&self) -> usize {
        self.entries.len()
    }
}

/// How many files, counted from the first, a tombstone covers. `ids` are the ids of a directory's
/// files in ascending order.
pub(super) fn shadowed_files(tombstone: Tombstone, ids: impl Iterator<Item = u32>) -> u32 {
    match tombstone {
        Tombstone::Older => u32::MAX,
        Tombstone::UpToFile(last) => ids.take_while(|&id| id <= last).fold(0, |n, _| n + 1),
    }
}
