//! Sums by range, of which most may be of nothing.

use super::mix::{NOTHING, minus, plus};
use super::plain::RANGES;
use crate::replica::RangeSum;
use std::collections::BTreeMap;

/// How many neighbours are kept together.
pub(super) const BLOCK: usize = 64;

/// Sums by range. Neighbours that all were never added to take no memory and no time.
///
/// Invariant: each block has a sum that is not of nothing, or had one.
#[derive(Clone, Debug, Default)]
pub(super) struct ByRange(BTreeMap<usize, Box<[RangeSum; BLOCK]>>);

impl ByRange {
    /// Adds to the sum of a range. Nothing is added to a range that does not exist.
    pub(super) fn add(&mut self, range: usize, more: RangeSum) {
        if more == NOTHING || range >= RANGES {
            return;
        }
        let block = self.0.entry(range / BLOCK).or_insert_with(|| Box::new([NOTHING; BLOCK]));
        let sum = &mut block[range % BLOCK];
        *sum = plus(*sum, more);
    }

    /// Sets the sums of a block of neighbours. Sums of nothing are left out.
    pub(super) fn set_block(&mut self, block: usize, sums: [RangeSum; BLOCK]) {
        if sums != [NOTHING; BLOCK] {
            self.0.insert(block, Box::new(sums));
        }
    }

    /// The sum of a range.
    fn at(&self, range: usize) -> RangeSum {
        self.0.get(&(range / BLOCK)).map_or(NOTHING, |block| block[range % BLOCK])
    }

    /// The sums that are not of nothing, in the order of their ranges.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, RangeSum)> + '_ {
        self.0.iter().flat_map(|(block, sums)| {
            let numbered = ((block * BLOCK) as u32..).zip(sums.iter().copied());
            numbered.filter(|(_, sum)| *sum != NOTHING)
        })
    }

    /// What each range has more than in `other`, for the ranges that differ, in no order.
    pub(super) fn minus<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u32, RangeSum)> + 'a {
        let own = self.iter().map(|(range, sum)| (range, minus(sum, other.at(range as usize))));
        let only_there = other.iter().filter(|(range, _)| self.at(*range as usize) == NOTHING);
        let all = own.chain(only_there.map(|(range, sum)| (range, minus(NOTHING, sum))));
        all.filter(|(_, missing)| *missing != NOTHING)
    }
}

impl PartialEq for ByRange {
    fn eq(&self, other: &Self) -> bool {
        self.minus(other).next().is_none()
    }
}

impl Eq for ByRange {}

#[cfg(test)]
mod tests {
    use super::super::mix::one;
    use super::*;

    fn of(versions: &[(usize, u64)]) -> ByRange {
        let mut sums = ByRange::default();
        versions.iter().for_each(|(range, digest)| sums.add(*range, one(*range as u64, *digest)));
        sums
    }

    #[test]
    fn a_difference_is_what_one_side_has_more() {
        let (own, theirs) = (of(&[(0, 1), (63, 2), (4_095, 3)]), of(&[(0, 1), (64, 4), (4_095, 5)]));
        let mut more = own.clone();
        theirs.minus(&own).for_each(|(range, sum)| more.add(range as usize, sum));
        assert_eq!(more, theirs);
        let ranges: Vec<u32> = more.iter().map(|(range, _)| range).collect();
        assert_eq!(ranges, [0, 64, 4_095], "in their order, without those of nothing");
        assert_eq!((own == theirs, own.minus(&own).next()), (false, None));
    }

    #[test]
    fn ranges_that_do_not_exist_have_no_sums() {
        assert_eq!(of(&[(RANGES, 1)]), ByRange::default());
    }
}
