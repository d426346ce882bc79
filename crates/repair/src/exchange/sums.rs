//! Sums over ranges of key hashes, by which two primaries compare what they hold of a class.
//!
//! Each version has a *mix*, a number made of its key and its digest. The sum of a range is the
//! wrapping sum of the mixes of its versions. Ranges are of equal size. 64 neighbours form a group,
//! and the sum of a group, or of the class, is the sum of its ranges.
//!
//! What it is not: a proof of what a version says. Equal sums mean equal sets of versions, up to a
//! chance of 2^-64.

use ombak_kv::ClassId;
use ombak_kv::repair_host::RepairHost;
use ombak_runtime::Waited;
use ombak_types::Error;

/// Number of ranges of a class.
pub const RANGES: usize = 4_096;
/// Number of ranges of a group.
pub const RANGES_IN_GROUP: usize = 64;
/// Number of groups of a class. A bit of a 64-bit number stands for each.
pub const GROUPS: usize = RANGES / RANGES_IN_GROUP;

const _: () = assert!(GROUPS == u64::BITS as usize);

/// The sums of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums(Box<[u64]>);

/// The sums of a class at a seq of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Every version of the store up to this seq is in the sums, unless a later one has replaced
    /// it.
    pub(crate) seq: u64,
    /// Everything in the sums has a seq up to this one, and is on the disk.
    pub(crate) through: u64,
    pub(crate) sums: Sums,
}

/// Knows the sums of classes.
pub(crate) trait SumSource: Send + Sync {
    /// The sums of a class, synced; none while they are not known. Blocks until they are there, or
    /// until nobody waits for them any more.
    fn cut(&self, host: &dyn RepairHost, class: ClassId, waited: &Waited<'_>) -> Result<Option<Cut>, Error>;
}

impl Default for Sums {
    fn default() -> Self {
        Self(vec![0; RANGES].into())
    }
}

impl Sums {
    /// Adds a version to a range.
    pub(crate) fn add(&mut self, range: u32, mix: u64) {
        if let Some(sum) = self.0.get_mut(range as usize) {
            *sum = sum.wrapping_add(mix);
        }
    }

    /// The sum of the class.
    pub(crate) fn root(&self) -> u64 {
        sum_of(&self.0)
    }

    /// The sums of all groups.
    pub(crate) fn groups(&self) -> Vec<u64> {
        self.0.chunks(RANGES_IN_GROUP).map(sum_of).collect()
    }

    /// The sums of some ranges.
    pub(crate) fn of(&self, ranges: &[u32]) -> Vec<u64> {
        ranges.iter().map(|range| self.0.get(*range as usize).copied().unwrap_or_default()).collect()
    }

    /// The sums of the ranges of some groups.
    pub(crate) fn of_groups(&self, groups: u64) -> Vec<u64> {
        self.of(&ranges_of(groups))
    }

    /// The groups whose sums differ, each as a bit; none if the other node has sent another number
    /// of sums.
    pub(crate) fn differing_groups(&self, theirs: &[u64]) -> Option<u64> {
        let own = self.groups();
        let bit = |(group, (own, theirs)): (usize, (&u64, &u64))| u64::from(own != theirs) << group;
        (own.len() == theirs.len()).then(|| own.iter().zip(theirs).enumerate().map(bit).sum())
    }

    /// Those of some ranges whose sums differ; none if the other node has sent another number of
    /// sums.
    pub(crate) fn differing(&self, ranges: &[u32], theirs: &[u64]) -> Option<Vec<u32>> {
        let own = self.of(ranges);
        let sums = ranges.iter().zip(own.iter().zip(theirs));
        let differing = sums.filter(|(_, (own, theirs))| own != theirs).map(|(range, _)| *range);
        (own.len() == theirs.len()).then(|| differing.collect())
    }
}

/// The numbers of the ranges of some groups, ascending.
pub(crate) fn ranges_of(groups: u64) -> Vec<u32> {
    (0..RANGES as u32).filter(|range| groups >> (*range as usize / RANGES_IN_GROUP) & 1 == 1).collect()
}

fn sum_of(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |sum, more| sum.wrapping_add(*more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_narrow_a_difference_down() {
        let (mut own, mut theirs) = (Sums::default(), Sums::default());
        for (range, mix) in [(0, u64::MAX), (70, 5), (4_095, 9)] {
            own.add(range, mix);
            theirs.add(range, mix);
        }
        assert_eq!((own.root(), own.differing_groups(&theirs.groups())), (theirs.root(), Some(0)));
        theirs.add(70, 1);
        theirs.add(4_095, u64::MAX);
        assert_eq!(own.root(), theirs.root(), "the two cancel each other out, as no two mixes do");
        let groups = own.differing_groups(&theirs.groups()).unwrap();
        assert_eq!(groups, 1 << 1 | 1 << 63);
        let ranges = ranges_of(groups);
        assert_eq!(ranges.len(), 128);
        assert_eq!(own.differing(&ranges, &theirs.of_groups(groups)), Some(vec![70, 4_095]));
        assert_eq!(own.differing(&[3], &[0, 0]), None, "another number of sums is no answer");
        assert_eq!(own.differing_groups(&[0]), None);
        own.add(5_000, 1);
        assert_eq!(own.of(&[5_000]), [0], "such a range does not exist");
    }
}
