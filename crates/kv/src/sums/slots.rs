//! Sums that many threads add to, and those of the slots of expiry.

use super::by_range::{BLOCK, ByRange};
use super::mix::NOTHING;
use super::plain::RANGES;
use crate::replica::RangeSum;
use parking_lot::RwLock;
use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The slots of one page: 12 days.
const PAGE_SLOTS: u32 = 256;

/// A row of sums. The two numbers of a sum do not change together: whoever reads makes sure that
/// nobody adds.
///
/// It knows which of its blocks were ever added to. Whoever reads leaves out the others, so the
/// sums of few versions are read at once.
pub(super) struct AtomicSums {
    sums: Box<[(AtomicU64, AtomicU64)]>,
    /// Bit b stands for the sums from `b * BLOCK` on.
    touched: AtomicU64,
}

/// The longest row: each block has one bit.
const SUMS_MAX: usize = BLOCK * u64::BITS as usize;
const _: () = assert!(RANGES <= SUMS_MAX && PAGE_SLOTS as usize <= SUMS_MAX);

impl AtomicSums {
    /// This many sums of nothing.
    pub(super) fn new(count: usize) -> Self {
        let sums = (0..count).map(|_| (AtomicU64::new(0), AtomicU64::new(0))).collect();
        Self { sums, touched: AtomicU64::new(0) }
    }

    /// Adds to a sum. Takes no lock.
    pub(super) fn add(&self, at: usize, more: RangeSum) {
        let Some((versions, sum)) = self.sums.get(at) else { return };
        let bit = 1 << (at / BLOCK);
        if self.touched.load(Ordering::Relaxed) & bit == 0 {
            self.touched.fetch_or(bit, Ordering::Relaxed);
        }
        if more.versions != 0 {
            versions.fetch_add(more.versions, Ordering::Relaxed);
        }
        sum.fetch_add(more.sum, Ordering::Relaxed);
    }

    /// All sums.
    pub(super) fn read(&self) -> ByRange {
        let touched = self.touched.load(Ordering::Relaxed);
        let mut read = ByRange::default();
        for (block, sums) in self.sums.chunks(BLOCK).enumerate().filter(|(block, _)| touched >> block & 1 == 1) {
            let of = |(versions, sum): &(AtomicU64, AtomicU64)| RangeSum {
                versions: versions.load(Ordering::Relaxed),
                sum: sum.load(Ordering::Relaxed),
            };
            read.set_block(block, array::from_fn(|at| sums.get(at).map_or(NOTHING, of)));
        }
        read
    }
}

/// The sums of the slots of expiry. A page is in memory only while some version expires in it. The
/// times that 32 bits can say have 4,096 pages of 4 KiB each.
#[derive(Default)]
pub(super) struct Slots(RwLock<BTreeMap<u32, AtomicSums>>);

impl Slots {
    /// Adds to the sum of a slot.
    pub(super) fn add(&self, slot: u32, more: RangeSum) {
        let (page, at) = (slot / PAGE_SLOTS, (slot % PAGE_SLOTS) as usize);
        if let Some(sums) = self.0.read().get(&page) {
            return sums.add(at, more);
        }
        let mut pages = self.0.write();
        pages.entry(page).or_insert_with(|| AtomicSums::new(PAGE_SLOTS as usize)).add(at, more);
    }

    /// The sums of all slots. Gives back the memory of pages without versions.
    pub(super) fn read(&self) -> BTreeMap<u32, RangeSum> {
        let mut slots = BTreeMap::new();
        self.0.write().retain(|page, sums| {
            let sums = sums.read();
            let before = slots.len();
            slots.extend(sums.iter().map(|(at, sum)| (page * PAGE_SLOTS + at, sum)));
            slots.len() > before
        });
        slots
    }

    #[cfg(test)]
    pub(super) fn page_count(&self) -> usize {
        self.0.read().len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::mix::{minus, one};
    use super::*;

    #[test]
    fn pages_live_as_long_as_their_slots_have_versions() {
        let slots = Slots::default();
        let wanted = [0, 1, 255, 256, (1 << 20) - 1];
        wanted.iter().for_each(|slot| slots.add(*slot, one(u64::from(*slot), 9)));
        let read = slots.read();
        assert_eq!((read.keys().copied().collect::<Vec<_>>(), slots.page_count()), (wanted.to_vec(), 3));
        assert_eq!(read[&256], one(256, 9));
        slots.add(256, minus(NOTHING, one(256, 9)));
        assert_eq!((slots.read().len(), slots.page_count()), (4, 2));
    }
}
