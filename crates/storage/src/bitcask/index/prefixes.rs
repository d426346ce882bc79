//! Prefixes that all keys of a bucket share, stored once.

use ombak_types::names::split_storage_key;

/// The most prefixes of one shard. Keys of further buckets are stored whole, because each prefix
/// costs memory in every shard.
const PREFIXES_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Prefixes {
    known: Vec<Box<[u8]>>,
}

impl Prefixes {
    /// The prefix for a number from [`split`](Self::split).
    pub(super) fn get(&self, number: u8) -> &[u8] {
        match number {
            0 => &[],
            number => &self.known[usize::from(number) - 1],
        }
    }

    /// Splits a key into the number of its prefix, from 1, and the rest of the key; 0 and the whole
    /// key if it has no prefix.
    pub(super) fn split<'a>(&mut self, key: &'a [u8]) -> (u8, &'a [u8]) {
        let Ok((_, _, rest)) = split_storage_key(key) else { return (0, key) };
        let prefix = &key[..key.len() - rest.len()];
        match self.known.iter().position(|known| **known == *prefix) {
            Some(at) => (at as u8 + 1, rest),
            None if self.known.len() < PREFIXES_MAX => {
                self.known.push(prefix.into());
                (self.known.len() as u8, rest)
            }
            None => (0, key),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.known.capacity() * size_of::<Box<[u8]>>() + self.known.iter().map(|prefix| prefix.len()).sum::<usize>()
    }
}
