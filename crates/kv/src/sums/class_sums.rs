//! The sums of one class of a partition, kept up to date.
//!
//! Memory: 64 KiB for the ranges. While some version expires, 64 KiB more, and 4 KiB for each 12
//! days in which some version expires.

use super::behind::Behind;
use super::mix::{NOTHING, minus, one};
use super::plain::{RANGES, Sums, slot_of};
use super::slots::{AtomicSums, Slots};
use crate::replica::{RangeSum, SUMMARY_RANGES_MAX, range_of};
use ombak_storage::IndexedVersion;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The epoch of sums of an earlier run, as long as the class map is not the one of that run.
const NO_EPOCH: u64 = u64::MAX;

/// The sums of the versions of a class.
pub(super) struct ClassSums {
    pub(super) n: u32,
    /// The epoch of the class map by which keys are in the class.
    epoch: AtomicU64,
    all: AtomicSums,
    expiring: OnceLock<Expiring>,
    pub(super) behind: Behind,
    /// Whether the last walk of this run has shown that the sums are right.
    is_checked: AtomicBool,
}

/// What expires, once anything does.
struct Expiring {
    ranges: AtomicSums,
    slots: Slots,
}

impl ClassSums {
    /// Sums that have counted nothing yet, so they are behind everywhere.
    pub(super) fn new(n: u32, epoch: u64) -> Self {
        let (all, expiring) = (AtomicSums::new(RANGES), OnceLock::new());
        let (behind, is_checked) = (Behind::everywhere(), AtomicBool::new(false));
        Self { n, epoch: AtomicU64::new(epoch), all, expiring, behind, is_checked }
    }

    /// Sums of an earlier run. They count from the moment at which the class map is known to be the
    /// one of that run.
    pub(super) fn of_earlier_run(n: u32, sums: &Sums) -> Self {
        let class = Self { behind: Behind::nowhere(), ..Self::new(n, NO_EPOCH) };
        class.correct(sums, &Sums::default());
        class
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Whether these are sums of an earlier run whose class map is not known to be in force.
    pub(super) fn is_of_earlier_run(&self) -> bool {
        self.epoch() == NO_EPOCH
    }

    /// Whether the last walk of this run has shown that the sums are right. Those of an earlier run
    /// wait for their first walk.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::SeqCst)
    }

    /// A walk has shown that the sums are right, or that they are not.
    pub(super) fn set_checked(&self, is_checked: bool) {
        self.is_checked.store(is_checked, Ordering::SeqCst);
    }

    /// The class map is the one of the earlier run.
    pub(super) fn belongs_to(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::SeqCst);
    }

    /// A version of a key takes the place of another one.
    pub(super) fn change(&self, hash: u64, before: Option<IndexedVersion>, after: Option<IndexedVersion>) {
        let range = range_of(hash, SUMMARY_RANGES_MAX) as usize;
        let sum_of = |version: Option<IndexedVersion>| version.map_or(NOTHING, |version| one(hash, version.digest));
        let (old, new) = (sum_of(before), sum_of(after));
        self.all.add(range, minus(new, old));
        let slot = |version: Option<IndexedVersion>| version.and_then(|version| slot_of(version.expires_secs));
        if let Some(slot) = slot(before) {
            self.add_expiring(range, slot, minus(NOTHING, old));
        }
        if let Some(slot) = slot(after) {
            self.add_expiring(range, slot, new);
        }
    }

    /// A version of a key has taken the place of one that the store cannot name.
    pub(super) fn lose_track(&self, hash: u64) {
        self.behind.mark(range_of(hash, SUMMARY_RANGES_MAX) as usize);
    }

    fn add_expiring(&self, range: usize, slot: u32, more: RangeSum) {
        let expiring = self.expiring();
        expiring.ranges.add(range, more);
        expiring.slots.add(slot, more);
    }

    fn expiring(&self) -> &Expiring {
        self.expiring.get_or_init(|| Expiring { ranges: AtomicSums::new(RANGES), slots: Slots::default() })
    }

    /// The sums of this moment. The caller makes sure that nobody changes them.
    pub(super) fn read(&self) -> Sums {
        let Some(expiring) = self.expiring.get() else {
            return Sums { all: self.all.read(), ..Sums::default() };
        };
        Sums { all: self.all.read(), expiring: expiring.ranges.read(), slots: expiring.slots.read() }
    }

    /// Adds what `found` has more than `expected`. Others may change the sums meanwhile.
    pub(super) fn correct(&self, found: &Sums, expected: &Sums) {
        for (range, missing) in found.all.minus(&expected.all) {
            self.all.add(range as usize, missing);
        }
        for (range, missing) in found.expiring.minus(&expected.expiring) {
            self.expiring().ranges.add(range as usize, missing);
        }
        for (slot, missing) in missing_slots(found, expected) {
            self.expiring().slots.add(slot, missing);
        }
    }

    #[cfg(test)]
    pub(super) fn slot_pages(&self) -> usize {
        self.expiring.get().map_or(0, |expiring| expiring.slots.page_count())
    }
}

/// What each slot of `found` has more than in `expected`. Equal slots are left out.
pub(super) fn missing_slots(found: &Sums, expected: &Sums) -> Vec<(u32, RangeSum)> {
    let mut missing = found.slots.clone();
    for (slot, sum) in &expected.slots {
        let more = missing.entry(*slot).or_insert(NOTHING);
        *more = minus(*more, *sum);
    }
    missing.retain(|_, more| *more != NOTHING);
    missing.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::key_hash;

    fn version(digest: u64, expires_secs: u32) -> Option<IndexedVersion> {
        Some(IndexedVersion { digest, seq: 1, expires_secs })
    }

    fn folded(versions: &[(&[u8], Option<IndexedVersion>)]) -> Sums {
        let mut sums = Sums::default();
        versions.iter().for_each(|(key, version)| sums.add(key, version.unwrap()));
        sums
    }

    #[test]
    fn changes_in_any_order_give_the_sums_of_what_is_left() {
        let class = ClassSums::new(3, 0);
        let [a, b] = [b"a", b"b"].map(|key| key_hash(key));
        class.change(a, None, version(1, 0));
        class.change(b, None, version(2, 9_000));
        class.change(a, version(1, 0), version(3, 5_000));
        class.change(a, version(3, 5_000), version(4, 90_000_000));
        assert_eq!(class.read(), folded(&[(b"a", version(4, 90_000_000)), (b"b", version(2, 9_000))]));
        assert_eq!(class.slot_pages(), 2);
        // The removal is counted before the put that it removes.
        class.change(b, version(6, 0), None);
        class.change(b, version(2, 9_000), version(6, 0));
        class.change(a, version(4, 90_000_000), version(5, 0));
        assert_eq!(class.read(), folded(&[(b"a", version(5, 0))]));
        assert_eq!(class.slot_pages(), 0, "the memory of the slots is given back");
    }

    #[test]
    fn a_correction_adds_the_difference_alone() {
        let class = ClassSums::new(3, 0);
        class.change(key_hash(b"a"), None, version(1, 5_000));
        let expected = class.read();
        let found = folded(&[(b"a", version(1, 9_000)), (b"b", version(2, 0))]);
        class.change(key_hash(b"c"), None, version(3, 9_000));
        class.correct(&found, &expected);
        let all = folded(&[(b"a", version(1, 9_000)), (b"b", version(2, 0)), (b"c", version(3, 9_000))]);
        assert_eq!(class.read(), all);
        assert_eq!(missing_slots(&all, &all), []);
    }
}
