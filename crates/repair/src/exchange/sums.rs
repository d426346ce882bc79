//! Sums over ranges, by which two primaries compare what they hold of a class.
//!
//! Each version has a *mix*, a number made of its key and its digest. The sum of a range is the
//! wrapping sum of the mixes of its versions. 64 neighbours form a group, and the sum of a group,
//! or of the class, is the sum of its ranges.
//!
//! ```text
//! range 0 .. 4,095       key hashes, in equal parts: versions that do not expire as a whole
//! range 4,096 .. 8,191   slots of expiry: slot s is in range 4,096 + s mod 4,096
//! ```
//!
//! Copies of a version that expires may disappear at different moments. So both nodes leave out
//! what expires before the *first slot* of the exchange, which the asking node chooses. It is the
//! second slot after the present one: clocks may differ by a whole slot, which is more than an
//! hour.
//!
//! What it is not: a proof of what a version says. Equal sums mean equal sets of versions, up to a
//! chance of 2^-64.

use ombak_kv::repair_host::RepairHost;
use ombak_kv::replica::range_of;
use ombak_kv::{ClassId, SLOT_SECS, slot_of};
use ombak_types::Error;
use ombak_types::time::UnixMicros;

/// Number of ranges of key hashes.
pub(crate) const KEY_RANGES: usize = 4_096;
/// Number of ranges of a class, those of slots of expiry included.
pub const RANGES: usize = 2 * KEY_RANGES;
/// Number of ranges of a group.
pub const RANGES_IN_GROUP: usize = 64;
/// Number of groups of a class.
pub const GROUPS: usize = RANGES / RANGES_IN_GROUP;
/// Some groups: bit g stands for group g.
pub type GroupSet = u128;
/// The first slot of an exchange that compares nothing that expires. No version is in it.
pub const NO_SLOTS: u32 = u32::MAX;

const _: () = assert!(GROUPS == GroupSet::BITS as usize);

/// The sums of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    by_range: Box<[u64]>,
    /// The sum of all of them.
    root: u64,
}

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
    /// The sums of a class from a first slot of expiry on, synced; none while they are not known.
    /// Blocks.
    fn cut(&self, host: &dyn RepairHost, class: ClassId, first_slot: u32) -> Result<Option<Cut>, Error>;
}

/// The first slot of expiry of an exchange that begins now.
pub(crate) fn first_slot_at(now: UnixMicros) -> u32 {
    present_slot(now).saturating_add(2)
}

/// Whether a slot has not begun to pass by this node's clock.
pub(crate) fn is_to_come(slot: u32, now: UnixMicros) -> bool {
    slot > present_slot(now)
}

fn present_slot(now: UnixMicros) -> u32 {
    u32::try_from(now.secs() / u64::from(SLOT_SECS)).unwrap_or(u32::MAX)
}

/// The range of a version; none if it expires before the first slot.
pub(crate) fn range_of_version(hash: u64, expires_secs: u32, first_slot: u32) -> Option<u32> {
    match slot_of(expires_secs) {
        None => Some(range_of(hash, KEY_RANGES as u32)),
        Some(slot) if slot < first_slot => None,
        Some(slot) => Some(range_of_slot(slot)),
    }
}

/// The range of a slot of expiry.
pub(crate) const fn range_of_slot(slot: u32) -> u32 {
    KEY_RANGES as u32 + slot % KEY_RANGES as u32
}

/// Leaves out the sums at the end that are 0. Without versions that expire these are many.
pub(crate) fn trimmed(mut sums: Vec<u64>) -> Vec<u64> {
    let length = sums.iter().rposition(|sum| *sum != 0).map_or(0, |last| last + 1);
    sums.truncate(length);
    sums
}

impl Default for Sums {
    fn default() -> Self {
        Self { by_range: vec![0; RANGES].into(), root: 0 }
    }
}

impl Sums {
    /// Sums of nothing that take no memory, and to which nothing can be added.
    pub(crate) fn none() -> Self {
        Self { by_range: Box::default(), root: 0 }
    }

    /// Adds a version to a range.
    pub(crate) fn add(&mut self, range: u32, mix: u64) {
        if let Some(sum) = self.by_range.get_mut(range as usize) {
            *sum = sum.wrapping_add(mix);
            self.root = self.root.wrapping_add(mix);
        }
    }

    /// The sum of the class.
    pub(crate) const fn root(&self) -> u64 {
        self.root
    }

    /// The sums of all groups.
    pub(crate) fn groups(&self) -> Vec<u64> {
        self.by_range.chunks(RANGES_IN_GROUP).map(sum_of).collect()
    }

    /// The sums of some ranges.
    pub(crate) fn of(&self, ranges: &[u32]) -> Vec<u64> {
        ranges.iter().map(|range| self.by_range.get(*range as usize).copied().unwrap_or_default()).collect()
    }

    /// The sums of the ranges of some groups.
    pub(crate) fn of_groups(&self, groups: GroupSet) -> Vec<u64> {
        self.of(&ranges_of(groups))
    }

    /// The groups whose sums differ; none if the other node has sent too many sums. Those that are
    /// missing at the end are 0.
    pub(crate) fn differing_groups(&self, theirs: &[u64]) -> Option<GroupSet> {
        let own = self.groups();
        let bit = |group: usize| GroupSet::from(own.get(group) != Some(&sum_at(theirs, group))) << group;
        (theirs.len() <= own.len()).then(|| (0..own.len()).map(bit).sum())
    }

    /// Those of some ranges whose sums differ; none if the other node has sent too many sums. Those
    /// that are missing at the end are 0.
    pub(crate) fn differing(&self, ranges: &[u32], theirs: &[u64]) -> Option<Vec<u32>> {
        let own = self.of(ranges);
        let sums = ranges.iter().zip(own.iter().enumerate());
        let differing = sums.filter(|(_, (at, own))| **own != sum_at(theirs, *at)).map(|(range, _)| *range);
        (theirs.len() <= own.len()).then(|| differing.collect())
    }
}

/// The numbers of some groups, ascending.
pub(crate) fn groups_in(groups: GroupSet) -> impl Iterator<Item = usize> {
    (0..GROUPS).filter(move |group| groups >> group & 1 == 1)
}

/// The numbers of the ranges of some groups, ascending.
pub(crate) fn ranges_of(groups: GroupSet) -> Vec<u32> {
    (0..RANGES as u32).filter(|range| groups >> (*range as usize / RANGES_IN_GROUP) & 1 == 1).collect()
}

fn sum_at(sums: &[u64], at: usize) -> u64 {
    sums.get(at).copied().unwrap_or_default()
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
        assert_eq!(own.differing_groups(&[0; GROUPS + 1]), None);
        own.add(RANGES as u32, 1);
        assert_eq!(own.of(&[RANGES as u32]), [0], "such a range does not exist");
    }

    #[test]
    fn sums_that_are_missing_at_the_end_are_nothing() {
        let mut own = Sums::default();
        own.add(3, 5);
        let sums = trimmed(own.groups());
        assert_eq!((sums.len(), own.differing_groups(&sums)), (1, Some(0)));
        own.add(RANGES as u32 - 1, 7);
        assert_eq!(own.differing_groups(&sums), Some(1 << (GROUPS - 1)));
        assert_eq!(own.differing(&[3, 4], &[5]), Some(vec![]));
        assert_eq!(own.differing(&[4, 3], &[]), Some(vec![3]));
        assert!(trimmed(vec![0, 0]).is_empty());
    }

    #[test]
    fn what_expires_soon_is_in_no_range() {
        let now = UnixMicros::from_secs(u64::from(SLOT_SECS) * 10 + 5);
        let first = first_slot_at(now);
        assert_eq!(first, 12, "the slot that passes and the next one are left out");
        let range = |expires_secs| range_of_version(u64::MAX, expires_secs, first);
        let last_key_range = KEY_RANGES as u32 - 1;
        assert_eq!((range(0), range(u32::MAX)), (Some(last_key_range), Some(last_key_range)));
        assert_eq!((range(1), range(12 * SLOT_SECS - 1)), (None, None));
        assert_eq!(range(12 * SLOT_SECS), Some(KEY_RANGES as u32 + 12));
        assert_eq!(range_of_version(0, 12 * SLOT_SECS, NO_SLOTS), None);
        let of_other_clock = |secs: u64| is_to_come(first, UnixMicros::from_secs(now.secs() + secs));
        assert!(of_other_clock(u64::from(SLOT_SECS)) && !of_other_clock(2 * u64::from(SLOT_SECS)));
        assert!((0..2 * RANGES as u32).all(|slot| (range_of_slot(slot) as usize) < RANGES));
    }
}
