//! The place of a walk over all keys of an index that keeps no snapshot.
//!
//! What it is: a shard and a place in it. A compaction moves the entries of its shard, so the shard
//! is then walked from its beginning.
//!
//! Invariant: a walk ends. After [`LAPS_MAX`] beginnings the rest of a shard is passed over.

use super::SHARDS;
use crate::journal::le_at;
use bytes::{BufMut, Bytes, BytesMut};

/// How often a shard is begun.
pub(super) const LAPS_MAX: u32 = 4;
/// What the encoded form begins with. No ledger key does.
const TAG: u8 = 0;
const ENCODED_BYTES: usize = 17;

/// The place; see the module. The default is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPlace {
    pub(super) shard: u32,
    pub(super) entry: u32,
    compactions: u32,
    laps: u32,
}

impl KeyPlace {
    /// Whether all keys were visited.
    pub(super) const fn is_end(&self) -> bool {
        self.shard as usize >= SHARDS
    }

    /// Prepares to go on in a shard that was compacted so often. False: its rest is passed over.
    pub(super) const fn is_of(&mut self, compactions: u32) -> bool {
        if self.laps > 0 && self.compactions == compactions {
            return true;
        }
        (self.entry, self.compactions, self.laps) = (0, compactions, self.laps + 1);
        self.laps <= LAPS_MAX
    }

    pub(super) const fn next_shard(&mut self) {
        *self = Self { shard: self.shard + 1, entry: 0, compactions: 0, laps: 0 };
    }

    pub(super) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(ENCODED_BYTES);
        out.put_u8(TAG);
        for part in [self.shard, self.entry, self.compactions, self.laps] {
            out.put_u32_le(part);
        }
        out.freeze()
    }

    /// None for anything else.
    pub(super) fn decode(encoded: &[u8]) -> Option<Self> {
        if encoded.len() != ENCODED_BYTES || encoded[0] != TAG {
            return None;
        }
        let part = |at: usize| le_at!(u32, encoded, at);
        Some(Self { shard: part(1), entry: part(5), compactions: part(9), laps: part(13) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_from_its_bytes() {
        let place = KeyPlace { shard: 3, entry: 70_000, compactions: 2, laps: 1 };
        assert_eq!(KeyPlace::decode(&place.encode()), Some(place));
        assert_eq!((KeyPlace::decode(b"k"), KeyPlace::decode(&[1; 17])), (None, None));
    }

    #[test]
    fn a_compaction_begins_the_shard_again_and_not_for_ever() {
        let mut place = KeyPlace::default();
        assert!(place.is_of(5));
        place.entry = 40;
        assert!(place.is_of(5) && place.entry == 40);
        assert!(place.is_of(6) && place.entry == 0);
        assert!(place.is_of(7) && place.is_of(8) && !place.is_of(9));
        place.next_shard();
        assert!(place.is_of(9) && place.shard == 1);
    }
}
