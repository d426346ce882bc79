//! Ranges of key hashes, by which two nodes compare what they hold of a class.

use ombak_kv::replica::range_of;
use ombak_storage::key_hash;
use std::sync::Arc;

/// Ranges of key hashes.
#[derive(Clone, Debug)]
pub(crate) struct Ranges {
    is_wanted: Arc<[bool]>,
}

impl Ranges {
    /// Some of `ranges` ranges. Numbers beyond them are ignored.
    pub(crate) fn of(ranges: u32, wanted: &[u32]) -> Self {
        let mut is_wanted = vec![false; ranges as usize];
        for number in wanted {
            if let Some(range) = is_wanted.get_mut(*number as usize) {
                *range = true;
            }
        }
        Self { is_wanted: is_wanted.into() }
    }

    pub(crate) fn include(&self, key: &[u8]) -> bool {
        let number = range_of(key_hash(key), self.is_wanted.len() as u32);
        self.is_wanted.get(number as usize).copied().unwrap_or(false)
    }
}
