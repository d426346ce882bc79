//! Which ranges of a class are known to be behind what the store holds.

use crate::replica::SUMMARY_RANGES_MAX;
use parking_lot::Mutex;

const WORDS: usize = SUMMARY_RANGES_MAX as usize / 64;

/// A set of ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RangeSet([u64; WORDS]);

impl RangeSet {
    const NONE: Self = Self([0; WORDS]);
    const ALL: Self = Self([u64::MAX; WORDS]);

    fn add(&mut self, range: usize) {
        if let Some(word) = self.0.get_mut(range / 64) {
            *word |= 1 << (range % 64);
        }
    }

    fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, others)| *word |= others);
    }

    /// Whether a range is in the set.
    pub(super) fn contains(&self, range: usize) -> bool {
        self.0.get(range / 64).is_some_and(|word| word & (1 << (range % 64)) != 0)
    }

    /// The number of ranges in the set.
    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// The ranges of a class that are behind. Also lets only one walk over the class run.
#[derive(Debug)]
pub(super) struct Behind(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Ranges that no walk under way will correct.
    marked: RangeSet,
    /// Ranges that the walk under way will correct.
    walked: Option<RangeSet>,
}

impl Behind {
    /// Every range is behind: nothing was counted yet.
    pub(super) const fn everywhere() -> Self {
        Self(Mutex::new(State { marked: RangeSet::ALL, walked: None }))
    }

    /// No range is behind.
    pub(super) const fn nowhere() -> Self {
        Self(Mutex::new(State { marked: RangeSet::NONE, walked: None }))
    }

    /// A range is behind from now on, until a walk has corrected it that begins later.
    pub(super) fn mark(&self, range: usize) {
        self.0.lock().marked.add(range);
    }

    /// Begins a walk. Returns the ranges that it will correct; none if a walk is under way.
    pub(super) fn begin_walk(&self) -> Option<RangeSet> {
        let mut state = self.0.lock();
        if state.walked.is_some() {
            return None;
        }
        let walked = std::mem::replace(&mut state.marked, RangeSet::NONE);
        state.walked = Some(walked.clone());
        Some(walked)
    }

    /// Ends the walk. If it has not corrected its ranges, they are still behind.
    pub(super) fn end_walk(&self, has_corrected: bool) {
        let mut state = self.0.lock();
        if let Some(walked) = state.walked.take()
            && !has_corrected
        {
            state.marked.add_all(&walked);
        }
    }

    /// How many ranges are behind.
    pub(super) fn count(&self) -> u32 {
        let state = self.0.lock();
        let mut all = state.marked.clone();
        if let Some(walked) = &state.walked {
            all.add_all(walked);
        }
        all.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_is_marked_during_a_walk_stays_behind_after_it() {
        let behind = Behind::nowhere();
        behind.mark(3);
        behind.mark(4_095);
        let walked = behind.begin_walk().unwrap();
        assert_eq!((walked.count(), behind.count()), (2, 2), "they are behind until the walk has ended");
        assert!(walked.contains(3) && walked.contains(4_095) && !walked.contains(4));
        assert_eq!(behind.begin_walk(), None, "one walk at a time");
        behind.mark(3);
        behind.end_walk(true);
        assert_eq!(behind.count(), 1);
        assert!(behind.begin_walk().unwrap().contains(3));
    }

    #[test]
    fn what_an_unfinished_walk_would_have_corrected_is_still_behind() {
        let behind = Behind::everywhere();
        assert_eq!(behind.begin_walk().unwrap().count(), SUMMARY_RANGES_MAX);
        behind.end_walk(false);
        assert_eq!(behind.count(), SUMMARY_RANGES_MAX);
        behind.begin_walk().unwrap();
        behind.end_walk(true);
        assert_eq!(behind.count(), 0);
    }
}
