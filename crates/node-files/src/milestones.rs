//! What tells a directory from an older copy of itself.

use crate::hex;
use serde::{Deserialize, Serialize};

/// So many of the newest milestones stay in the file.
const KEPT_MAX: usize = 512;

/// A point in the life of a directory that its node draws at each start, and now and then while it
/// runs. The directory remembers it first, then the members of the cluster do. A copy of the
/// directory that was made before lacks it, however often the copy is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Milestone {
    /// It rises along the life of one directory.
    pub number: u64,
    /// A random number. Two copies of a directory draw different ones.
    #[serde(with = "hex")]
    pub token: u64,
}

/// The newest milestones of a directory, in their order and without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Milestones {
    /// The number of the last milestone of which the node knows that the cluster has recorded it; 0
    /// if there is none.
    recorded: u64,
    /// The number of the first milestone that is kept.
    first: u64,
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Token(#[serde(with = "hex")] u64);

impl Milestones {
    /// The newest one; `None` if the directory has none yet.
    pub fn newest(&self) -> Option<Milestone> {
        let last = self.tokens.len().checked_sub(1)?;
        Some(Milestone { number: self.first.saturating_add(last as u64), token: self.tokens[last].0 })
    }

    /// Whether the node knows that the cluster has recorded the newest milestone.
    pub fn is_newest_recorded(&self) -> bool {
        self.newest().is_some_and(|newest| newest.number == self.recorded)
    }

    /// Whether a milestone that somebody knows of this node lies on the way to the present state of
    /// the directory. If not, somebody ran the node from a later or another copy of it.
    ///
    /// Milestones that are older than those which are kept count as passed if the cluster has
    /// recorded a later one: the cluster lets each follow the one before.
    pub fn has_passed(&self, known: Milestone) -> bool {
        match known.number.checked_sub(self.first) {
            Some(place) => {
                let kept = usize::try_from(place).ok().and_then(|place| self.tokens.get(place));
                kept.is_some_and(|token| token.0 == known.token)
            }
            None => known.number <= self.recorded,
        }
    }

    /// Adds a milestone. Its number is at least `number_min`.
    pub(crate) fn add(&mut self, token: u64, number_min: u64) {
        match self.newest() {
            // A gap would say nothing, so the numbers go on from the last one.
            Some(_) => self.tokens.push(Token(token)),
            None => (self.first, self.tokens) = (number_min.max(1), vec![Token(token)]),
        }
        let surplus = self.tokens.len().saturating_sub(KEPT_MAX);
        self.tokens.drain(..surplus);
        self.first = self.first.saturating_add(surplus as u64);
    }

    /// Notes that the cluster has recorded a milestone of this directory.
    pub(crate) fn note_recorded(&mut self, known: Milestone) {
        if self.has_passed(known) {
            self.recorded = self.recorded.max(known.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(tokens: impl IntoIterator<Item = u64>) -> Milestones {
        let mut milestones = Milestones::default();
        tokens.into_iter().for_each(|token| milestones.add(token, 1));
        milestones
    }

    const fn milestone(number: u64, token: u64) -> Milestone {
        Milestone { number, token }
    }

    #[test]
    fn a_directory_has_passed_what_it_drew_and_nothing_that_a_copy_drew() {
        let mut directory = after([11, 12, 13]);
        let older = directory.clone();
        directory.add(14, 1);
        assert_eq!(directory.newest(), Some(milestone(4, 14)));
        assert!((1..=4).all(|number| directory.has_passed(milestone(number, 10 + number))));
        assert!(!older.has_passed(milestone(4, 14)));
        let mut copy = older;
        for start in 0..2 * KEPT_MAX as u64 {
            copy.add(100 + start, 1);
            assert!(!copy.has_passed(milestone(4, 14)), "after {start} starts of the copy");
        }
        assert!(!directory.has_passed(milestone(5, 15)), "later");
        assert!(!Milestones::default().has_passed(milestone(1, 1)));
    }

    #[test]
    fn what_was_recorded_long_ago_is_not_held_against_the_directory() {
        let mut directory = after(1..=3);
        directory.note_recorded(milestone(3, 3));
        assert!(directory.is_newest_recorded());
        (0..2 * KEPT_MAX as u64).for_each(|start| directory.add(start, 1));
        assert!(directory.has_passed(milestone(2, 2)) && directory.has_passed(milestone(3, 3)));
        assert!(!directory.has_passed(milestone(4, 0)), "never recorded, and forgotten");
        directory.note_recorded(milestone(900, 1));
        assert!(!directory.has_passed(milestone(4, 0)), "what is not of this directory is not noted");
        let newest = directory.newest().unwrap();
        directory.note_recorded(newest);
        assert!(directory.has_passed(milestone(4, 0)));
    }

    #[test]
    fn the_first_number_is_that_of_the_start() {
        let mut directory = Milestones::default();
        directory.add(7, 40);
        directory.add(8, 90);
        assert_eq!(directory.newest(), Some(milestone(41, 8)));
    }
}
