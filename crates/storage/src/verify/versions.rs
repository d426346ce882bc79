//! The expected state of a partition: for each key, its newest version that can be read, and its
//! newest version that cannot.
//!
//! Keys are identified by a 128-bit hash. A key that is needed itself is read from its record.

use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_128;

/// An intact record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntactRecord {
    pub(super) seq: u64,
    pub(super) digest: u64,
    /// The hash of the head.
    pub(super) head: u64,
    /// The sum of the hashes of the index entries.
    pub(super) terms: u64,
    pub(super) file_id: u32,
    pub(super) offset: u32,
    pub(super) size: u32,
    pub(super) tstamp_secs: u32,
    /// Unix seconds, as the writer asked.
    pub(super) expires_secs: u32,
    pub(super) is_tombstone: bool,
}

/// A version that is known to have existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostVersion {
    pub(super) seq: u64,
    pub(super) file_id: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyState {
    pub(super) good: Option<IntactRecord>,
    pub(super) lost: Option<LostVersion>,
    /// Whether the index has the key.
    pub(super) is_seen: bool,
}

impl KeyState {
    /// Whether neither the newest version nor a copy of it can be read.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some_and(|lost| self.good.is_none_or(|good| good.seq < lost.seq))
    }

    /// The current version, if it can be read.
    pub(super) fn current(&self) -> Option<&IntactRecord> {
        self.good.as_ref().filter(|good| !good.is_tombstone && !self.is_lost())
    }
}

/// The expected state of a partition; see the module.
#[derive(Default)]
pub(super) struct Versions {
    by_key: HashMap<u128, KeyState>,
}

impl Versions {
    /// Adds an intact record. Of two copies of a version, the one in the file with the higher id
    /// counts, as at a start.
    pub(super) fn add(&mut self, key: &[u8], good: IntactRecord) {
        let state = self.by_key.entry(xxh3_128(key)).or_default();
        if state.good.is_none_or(|other| (other.seq, other.file_id) < (good.seq, good.file_id)) {
            state.good = Some(good);
        }
    }

    pub(super) fn add_lost(&mut self, key: &[u8], lost: LostVersion) {
        let state = self.by_key.entry(xxh3_128(key)).or_default();
        if state.lost.is_none_or(|other| (other.seq, other.file_id) < (lost.seq, lost.file_id)) {
            state.lost = Some(lost);
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> KeyState {
        self.by_key.get(&xxh3_128(key)).copied().unwrap_or_default()
    }

    /// The state of a key that the index has. Marks the key as seen.
    pub(super) fn see(&mut self, key: &[u8]) -> KeyState {
        match self.by_key.get_mut(&xxh3_128(key)) {
            Some(state) => {
                state.is_seen = true;
                *state
            }
            None => KeyState::default(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &KeyState> {
        self.by_key.values()
    }
}
