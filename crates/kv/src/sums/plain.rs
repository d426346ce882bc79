//! The sums of a class as plain values: of a fold, or of one moment.

use super::by_range::ByRange;
use super::mix::{NOTHING, one, plus};
use crate::replica::{RangeSum, SUMMARY_RANGES_MAX, range_of};
use ombak_storage::{IndexedVersion, key_hash};
use std::collections::BTreeMap;

/// The seconds of one slot of expiry.
pub const SLOT_SECS: u32 = 1 << SLOT_SHIFT;
const SLOT_SHIFT: u32 = 12;
pub(super) const RANGES: usize = SUMMARY_RANGES_MAX as usize;

/// The slot of a version that expires at these Unix seconds; none for a version that does not
/// expire as a whole. The largest time stands for an object with some siblings that expire.
///
/// The slot depends on the version alone, so replicas agree on it whatever their clocks say.
pub const fn slot_of(expires_secs: u32) -> Option<u32> {
    match expires_secs {
        0 | u32::MAX => None,
        secs => Some(secs >> SLOT_SHIFT),
    }
}

/// The sums of the versions of a class. See the module for what `f(index)` covers.
///
/// Each version is in the sum of the range of its key's hash. A version that expires is also in the
/// sum of the slot of its expiry. Copies of such a version may disappear at different moments, so
/// two replicas compare the slots that have not begun to pass, and of the ranges what does not
/// expire ([`lasting`](Self::lasting)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// All versions by range.
    pub(super) all: ByRange,
    /// Those that expire by range.
    pub(super) expiring: ByRange,
    /// Those that expire by slot. A slot without versions is left out.
    pub(super) slots: BTreeMap<u32, RangeSum>,
}

impl Sums {
    /// Adds a version.
    pub(crate) fn add(&mut self, key: &[u8], version: IndexedVersion) {
        let hash = key_hash(key);
        let (at, one) = (range_of(hash, SUMMARY_RANGES_MAX) as usize, one(hash, version.digest));
        self.all.add(at, one);
        if let Some(slot) = slot_of(version.expires_secs) {
            self.expiring.add(at, one);
            let sum = self.slots.entry(slot).or_insert(NOTHING);
            *sum = plus(*sum, one);
        }
    }

    /// The sums of all versions, by this number of ranges: a power of two up to
    /// [`SUMMARY_RANGES_MAX`]. Expired versions that the store keeps are in them, as in the answer
    /// to the question of another node ([`Summary`](crate::Summary)).
    pub fn ranges(&self, count: u32) -> Vec<RangeSum> {
        let mut joined = vec![NOTHING; (count as usize).clamp(1, RANGES)];
        let each = RANGES / joined.len();
        for (range, sum) in self.all.iter() {
            if let Some(of_more) = joined.get_mut(range as usize / each) {
                *of_more = plus(*of_more, sum);
            }
        }
        joined
    }

    /// The sums of the versions that do not expire, by the [`SUMMARY_RANGES_MAX`] ranges. Ranges
    /// without versions are left out.
    pub fn lasting(&self) -> impl Iterator<Item = (u32, RangeSum)> + '_ {
        self.all.minus(&self.expiring)
    }

    /// The sums of the versions that expire in the slots after that of `now_secs`, by slot. A slot
    /// without versions is left out. A slot that is passing is not compared: some replica may have
    /// removed a part of its versions already.
    pub fn slots_after(&self, now_secs: u64) -> impl Iterator<Item = (u32, RangeSum)> + '_ {
        let now = u32::try_from(now_secs >> SLOT_SHIFT).unwrap_or(u32::MAX);
        self.slots_from(now.saturating_add(1))
    }

    /// The sums of the versions that expire in this slot or a later one, by slot. A slot without
    /// versions is left out.
    pub fn slots_from(&self, first_slot: u32) -> impl Iterator<Item = (u32, RangeSum)> + '_ {
        self.slots.range(first_slot..).map(|(slot, sum)| (*slot, *sum))
    }

    /// The sum of all versions.
    pub fn total(&self) -> RangeSum {
        self.all.iter().fold(NOTHING, |total, (_, sum)| plus(total, sum))
    }

    /// Makes a difference at the range of a key. Whoever holds a version that it cannot read counts
    /// it so: equal sums would say that it has the version.
    pub fn doubt(&mut self, key: &[u8]) {
        let range = range_of(key_hash(key), SUMMARY_RANGES_MAX) as usize;
        self.all.add(range, RangeSum { versions: 0, sum: 1 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(digest: u64, expires_secs: u32) -> IndexedVersion {
        IndexedVersion { digest, seq: 1, expires_secs }
    }

    fn lasting(sums: &Sums) -> u64 {
        sums.lasting().map(|(_, sum)| sum.versions).sum()
    }

    #[test]
    fn fewer_ranges_are_the_sums_of_more() {
        let mut sums = Sums::default();
        let mut expected = [vec![NOTHING; 1], vec![NOTHING; 64], vec![NOTHING; RANGES]];
        for n in 0u64..500 {
            let key = n.to_be_bytes();
            sums.add(&key, version(n, (n % 3) as u32 * 5_000));
            for counted in &mut expected {
                let range = range_of(key_hash(&key), counted.len() as u32) as usize;
                counted[range] = plus(counted[range], one(key_hash(&key), n));
            }
        }
        for counted in expected {
            assert_eq!(sums.ranges(counted.len() as u32), counted);
        }
        assert_eq!(sums.total(), sums.ranges(1)[0]);
        assert_eq!((sums.total().versions, lasting(&sums)), (500, 167));
    }

    #[test]
    fn a_slot_that_has_begun_to_pass_is_not_compared() {
        let mut sums = Sums::default();
        for expires_secs in [0, u32::MAX, 1, SLOT_SECS - 1, SLOT_SECS, 2 * SLOT_SECS] {
            sums.add(&expires_secs.to_be_bytes(), version(7, expires_secs));
        }
        let after = |now_secs| sums.slots_after(now_secs).map(|(slot, sum)| (slot, sum.versions)).collect::<Vec<_>>();
        assert_eq!(after(0), [(1, 1), (2, 1)]);
        assert_eq!(after(u64::from(SLOT_SECS)), [(2, 1)]);
        assert_eq!(after(u64::MAX), []);
        assert_eq!(sums.slots.values().map(|sum| sum.versions).sum::<u64>(), 4, "two never expire as a whole");
        assert_eq!(lasting(&sums), 2);
    }

    #[test]
    fn doubt_makes_a_difference_in_one_range() {
        let mut sums = Sums::default();
        sums.add(b"k", version(7, 0));
        let before = sums.ranges(64);
        sums.doubt(b"k");
        let differing = sums.ranges(64).iter().zip(&before).filter(|(one, other)| one != other).count();
        assert_eq!(differing, 1);
    }
}
