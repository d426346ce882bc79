//! The history of a store: which of the sequence numbers that it has given are not there any more
//! (docs/design/anti-entropy.md §2).
//!
//! Each opening of a store finds numbers up to its *end*, and counts on from its *base*. A number
//! between the two was given by an earlier run and is lost, or was never given. Peers ask about
//! numbers that they were told after a sync.
//!
//! What it is not: it does not know which numbers are to come. A number above the last append of
//! the store is for the caller to judge ([`crate::Backend::last_seq`]).
//!
//! Invariants:
//! * The bases rise, and no end is above its base.
//! * A first pair whose end is its base is no opening. It says that openings up to there were
//!   forgotten: because there were more than [`OPENINGS_MAX`], or because their file was lost.

use crate::limits::SEQ_MAX;

/// The most openings that are kept, with the note of those that were forgotten.
pub const OPENINGS_MAX: usize = 64;

/// One opening of a store after which numbers may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The highest number that the opening has found.
    pub end: u64,
    /// The run that begins with the opening gives higher numbers than this one.
    pub base: u64,
}

impl Opening {
    const fn loses(self, seq: u64) -> bool {
        self.end < seq && seq < self.base
    }
}

/// The openings of a store after which numbers may be missing, the newest last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Openings(Vec<Opening>);

impl Openings {
    /// The history of a store whose earlier openings up to the number `seq` are not known.
    pub(crate) fn forgotten_up_to(seq: u64) -> Self {
        Self(vec![Opening { end: seq, base: seq }])
    }

    /// The openings, oldest first, and what is known of the forgotten ones.
    pub fn openings(&self) -> &[Opening] {
        &self.0
    }

    /// Whether a number that the store has given, and that a sync mark names, is lost. A number of
    /// which the history knows nothing any more counts as lost: the mark is void, which costs a
    /// comparison.
    pub fn is_lost_for_mark(&self, seq: u64) -> bool {
        self.forgotten().is_some_and(|forgotten| seq <= forgotten) || self.is_lost_for_told(seq)
    }

    /// Whether a number that the store has told a peer is lost, so that the store was set back. A
    /// number of which the history knows nothing any more counts as not lost: the alarm would be
    /// false nearly always.
    pub fn is_lost_for_told(&self, seq: u64) -> bool {
        self.opening_that_lost(seq).is_some()
    }

    /// The newest opening after which a number is missing.
    pub fn opening_that_lost(&self, seq: u64) -> Option<Opening> {
        self.0.iter().rfind(|opening| opening.loses(seq)).copied()
    }

    /// End and base of each opening, for messages and files.
    pub fn pairs(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|opening| (opening.end, opening.base)).collect()
    }

    /// The history of these [`pairs`](Self::pairs); none if they are not those of a history.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let mut openings: Vec<Opening> = Vec::new();
        for (end, base) in pairs {
            let is_note = openings.is_empty() && end == base;
            let rises = openings.last().is_none_or(|last| last.base < base);
            if openings.len() == OPENINGS_MAX || !(end < base || is_note) || !rises || base > SEQ_MAX {
                return None;
            }
            openings.push(Opening { end, base });
        }
        Some(Self(openings))
    }

    /// Adds an opening. If the run before it has left no append, it takes the place of that run's
    /// opening: both have found the same end.
    pub(crate) fn add(&mut self, opening: Opening) {
        if opening.end >= opening.base || opening.base < self.last_base() {
            return;
        }
        let forgotten = self.forgotten();
        if self.0.last().is_some_and(|last| forgotten != Some(last.base) && last.base >= opening.end) {
            self.0.pop();
        }
        if opening.base > self.last_base() {
            self.0.push(opening);
        }
        self.forget_oldest();
    }

    /// The history of a partition of several stores. What one of them knows of the shared numbers
    /// is true for all.
    pub(crate) fn of_all(histories: impl IntoIterator<Item = Self>) -> Self {
        let (mut openings, mut forgotten) = (Vec::new(), None);
        for history in histories {
            let own = history.forgotten();
            forgotten = forgotten.max(own);
            openings.extend(history.0.into_iter().skip(usize::from(own.is_some())));
        }
        openings.sort_by_key(|opening| (opening.base, opening.end));
        // Stores that note the same opening note the same end.
        openings.dedup_by_key(|opening| opening.base);
        openings.retain(|opening| forgotten.is_none_or(|forgotten| forgotten < opening.base));
        if let Some(seq) = forgotten {
            openings.insert(0, Opening { end: seq, base: seq });
        }
        let mut all = Self(openings);
        all.forget_oldest();
        all
    }

    /// The newest base of which the history knows; 0 if it knows of none.
    pub(crate) fn last_base(&self) -> u64 {
        self.0.last().map_or(0, |last| last.base)
    }

    /// What is known of numbers up to this one was forgotten.
    pub(crate) fn forgotten(&self) -> Option<u64> {
        self.0.first().filter(|first| first.end == first.base).map(|first| first.base)
    }

    fn forget_oldest(&mut self) {
        if self.0.len() <= OPENINGS_MAX {
            return;
        }
        let count = self.0.len() - OPENINGS_MAX;
        self.0.drain(..count);
        if let Some(oldest) = self.0.first_mut() {
            oldest.end = oldest.base;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(openings: impl IntoIterator<Item = (u64, u64)>) -> Openings {
        let mut all = Openings::default();
        openings.into_iter().for_each(|(end, base)| all.add(Opening { end, base }));
        all
    }

    #[test]
    fn what_lies_between_an_end_and_its_base_is_lost() {
        let history = with([(5, 100), (107, 200)]);
        for seq in [6, 99, 108, 199] {
            assert!(history.is_lost_for_mark(seq) && history.is_lost_for_told(seq), "{seq}");
        }
        for seq in [0, 1, 5, 100, 101, 107, 200, 201] {
            assert!(!history.is_lost_for_mark(seq) && !history.is_lost_for_told(seq), "{seq}");
        }
        assert_eq!(Openings::from_pairs(history.pairs()), Some(history));
    }

    #[test]
    fn an_opening_that_follows_a_run_without_appends_takes_the_place_of_the_one_before() {
        assert_eq!(with([(5, 100), (5, 200), (5, 300)]).pairs(), [(5, 300)]);
        assert_eq!(with([(5, 100), (3, 200)]).pairs(), [(3, 200)], "more is missing now");
        assert_eq!(with([(0, 0)]), Openings::default(), "nothing can be missing");
    }

    #[test]
    fn numbers_before_the_forgotten_openings_are_lost_for_marks_only() {
        let number = |n: u64| (1000 * n + 5, 1000 * n + 500);
        let full = with((0..64).map(number));
        assert!(!full.is_lost_for_mark(3) && full.is_lost_for_told(7));
        let history = with((0..70).map(number));
        assert_eq!(history.pairs().len(), OPENINGS_MAX);
        assert!(history.is_lost_for_mark(3) && !history.is_lost_for_told(7), "both are not known any more");
        assert!(history.is_lost_for_mark(6400) && !history.is_lost_for_told(6400));
        assert!(!history.is_lost_for_mark(6501) && !history.is_lost_for_mark(7003));
        assert!(history.is_lost_for_told(7007), "the oldest that is kept");
        assert_eq!(Openings::from_pairs(history.pairs()), Some(history));
    }

    #[test]
    fn a_note_of_what_was_forgotten_stays() {
        let mut history = Openings::forgotten_up_to(40);
        history.add(Opening { end: 40, base: 100 });
        history.add(Opening { end: 40, base: 200 });
        assert_eq!(history.pairs(), [(40, 40), (40, 200)]);
        assert!(history.is_lost_for_mark(40) && !history.is_lost_for_told(40));
        assert!(history.is_lost_for_mark(41) && history.is_lost_for_told(41));
    }

    #[test]
    fn a_partition_knows_what_its_stores_know() {
        let (one, other) = (with([(5, 100), (107, 200)]), with([(107, 200), (208, 300)]));
        assert_eq!(Openings::of_all([one.clone(), other]).pairs(), [(5, 100), (107, 200), (208, 300)]);
        let forgetful = Openings::forgotten_up_to(150);
        assert_eq!(Openings::of_all([one, forgetful]).pairs(), [(150, 150), (107, 200)]);
    }

    #[test]
    fn only_a_history_is_read() {
        for pairs in [&[(6, 5)][..], &[(1, 5), (7, 7)], &[(1, 5), (2, 5)], &[(1, 5), (1, 4)], &[(1, SEQ_MAX + 1)]] {
            assert_eq!(Openings::from_pairs(pairs.iter().copied()), None, "{pairs:?}");
        }
        assert_eq!(Openings::from_pairs((0..65).map(|n| (10 * n, 10 * n + 5))), None, "too many");
        assert_eq!(Openings::from_pairs([]), Some(Openings::default()));
    }
}
