//! The hash of a storage key by which replicas compare what they hold.
//!
//! Peers exchange ranges of these hashes, so the function is a part of the protocol between nodes:
//! it is `xxh3_64` with seed 0 over the bytes of the storage key. Another function would be another
//! [`KEY_HASH_VERSION`]. Nothing on disk depends on it.

use xxhash_rust::xxh3::xxh3_64;

/// The version of [`key_hash`]. Two nodes may compare ranges only if they use the same version.
pub const KEY_HASH_VERSION: u16 = 1;

/// The hash of a storage key.
pub fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A range of key hashes. Both ends belong to it; it is empty if `first` is above `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHashRange {
    /// The lowest hash.
    pub first: u64,
    /// The highest hash.
    pub last: u64,
}

impl KeyHashRange {
    /// Every hash.
    pub const ALL: Self = Self { first: 0, last: u64::MAX };

    /// Whether a hash is in the range.
    pub const fn contains(self, hash: u64) -> bool {
        self.first <= hash && hash <= self.last
    }

    /// Whether some hash of the range has this value in its bits from `shift` on, modulo `count`.
    /// `count` is a power of two.
    pub(crate) fn meets(self, shift: u32, count: usize, value: usize) -> bool {
        if self.first > self.last {
            return false;
        }
        let (first, last) = (self.first >> shift, self.last >> shift);
        // The values of `count` successive numbers are all values.
        last - first >= count as u64 || (first..=last).any(|bits| bits as usize % count == value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two releases that run in one cluster must agree on these.
    #[test]
    fn the_hash_of_version_1_does_not_change() {
        let bucket_and_key = b"\x07default\x01bkey";
        let vectors: [(&[u8], u64); 4] = [
            (b"", 0x2D06_8005_38D3_94C2),
            (b"a", 0xE6C6_32B6_1E96_4E1F),
            (bucket_and_key, 0xD1D1_E911_DEA7_C27B),
            (&[0xFF; 300], 0xA6EB_8A92_D637_E066),
        ];
        for (key, hash) in vectors {
            assert_eq!(key_hash(key), hash, "{key:?}: {:#018X}", key_hash(key));
        }
        assert_eq!(KEY_HASH_VERSION, 1);
    }

    proptest! {
        #[test]
        fn a_range_meets_the_values_of_its_hashes(
            first in any::<u64>(), length in 0u64..1 << 50, at in any::<prop::sample::Index>(),
        ) {
            let range = KeyHashRange { first, last: first.saturating_add(length) };
            let hash = first.saturating_add(at.index(length as usize + 1) as u64);
            prop_assert!(range.contains(hash));
            prop_assert!(range.meets(40, 32, (hash >> 40) as usize % 32));
        }
    }

    #[test]
    fn a_narrow_range_meets_few_values() {
        let meets = |range: KeyHashRange| (0..32).filter(|value| range.meets(40, 32, *value)).count();
        assert_eq!(meets(KeyHashRange { first: 5 << 40, last: (6 << 40) - 1 }), 1);
        assert_eq!(meets(KeyHashRange { first: 31 << 40, last: 32 << 40 }), 2);
        assert_eq!(meets(KeyHashRange::ALL), 32);
        assert_eq!(meets(KeyHashRange { first: 1, last: 0 }), 0);
    }
}
