//! The sums of a class as plain values: of a fold, or of one moment.

use super::mix::{NOTHING, minus, one, plus};
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
    /// All versions by range; empty if there are none.
    pub(super) all: Vec<RangeSum>,
    /// Those that expire by range; empty if there are none.
    pub(super) expiring: Vec<RangeSum>,
    /// Those that expire by slot. A slot without versions is left out.
    pub(super) slots: BTreeMap<u32, RangeSum>,
}

impl Sums {
    /// Adds a version.
    pub(crate) fn add(&mut self, key: &[u8], version: IndexedVersion) {
        let hash = key_hash(key);
        let (at, one) = (range_of(hash, SUMMARY_RANGES_MAX) as usize, one(hash, version.digest));
        add_to(&mut self.all, at, one);
        if let Some(slot) = slot_of(version.expires_secs) {
            add_to(&mut self.expiring, at, one);
            let sum = self.slots.entry(slot).or_insert(NOTHING);
            *sum = plus(*sum, one);
        }
    }

    /// The sums of all versions, by this number of ranges: a power of two up to
    /// [`SUMMARY_RANGES_MAX`]. Expired versions that the store keeps are in them, as in the answer
    /// to the question of another node ([`Summary`](crate::Summary)).
    pub fn ranges(&self, count: u32) -> Vec<RangeSum> {
        joined(count, |range| at(&self.all, range))
    }

    /// The same without the versions that expire.
    pub fn lasting(&self, count: u32) -> Vec<RangeSum> {
        joined(count, |range| minus(at(&self.all, range), at(&self.expiring, range)))
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
        self.all.iter().fold(NOTHING, |total, sum| plus(total, *sum))
    }

    /// Makes a difference at the range of a key. Whoever holds a version that it cannot read counts
    /// it so: equal sums would say that it has the version.
    pub fn doubt(&mut self, key: &[u8]) {
        let range = range_of(key_hash(key), SUMMARY_RANGES_MAX) as usize;
        add_to(&mut self.all, range, RangeSum { versions: 0, sum: 1 });
    }

    pub(super) fn all_at(&self, range: usize) -> RangeSum {
        at(&self.all, range)
    }

    pub(super) fn expiring_at(&self, range: usize) -> RangeSum {
        at(&self.expiring, range)
    }
}

fn add_to(sums: &mut Vec<RangeSum>, range: usize, more: RangeSum) {
    if sums.is_empty() {
        sums.resize(RANGES, NOTHING);
    }
    if let Some(sum) = sums.get_mut(range) {
        *sum = plus(*sum, more);
    }
}

fn at(sums: &[RangeSum], range: usize) -> RangeSum {
    sums.get(range).copied().unwrap_or(NOTHING)
}

/// Joins neighbours until this many are left.
fn joined(count: u32, sum_of: impl Fn(usize) -> RangeSum) -> Vec<RangeSum> {
    let count = (count as usize).clamp(1, RANGES);
    let each = RANGES / count;
    let of = |first: usize| (first..first + each).fold(NOTHING, |sum, range| plus(sum, sum_of(range)));
    (0..count).map(|range| of(range * each)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(digest: u64, expires_secs: u32) -> IndexedVersion {
        IndexedVersion { digest, seq: 1, expires_secs }
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
        assert_eq!((sums.total().versions, sums.lasting(1)[0].versions), (500, 167));
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
        assert_eq!(sums.lasting(1)[0].versions, 2);
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
