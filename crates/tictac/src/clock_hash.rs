//! The hash of a clock in a tree.

use ombak_types::VectorClock;
use ombak_types::etf::Term;
use ombak_types::phash2::{clock_phash2_u32, phash2};
use ombak_types::riak_object::clock_to_term;

/// How a tree hashes the clocks of objects (docs/riak/semantics.md §8.2, §8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockHash {
    /// `phash2` of the sorted clock, as in the trees that Riak keeps.
    Plain,
    /// `phash2` of the pair of a number and the sorted clock. Two comparisons with different
    /// numbers do not overlook the same difference.
    With(u64),
    /// As [`ClockHash::With`], with the atom `undefined` in place of a number. A client of Riak
    /// that asks for another hash and names no number gets it.
    WithoutNumber,
}

/// The range of `phash2` without a second argument.
const DEFAULT_RANGE: u32 = 1 << 27;

impl ClockHash {
    /// The hash of a clock.
    pub fn of(self, clock: &VectorClock) -> u32 {
        let salted = |salt: Term| phash2(&Term::pair(salt, clock_to_term(clock)));
        match self {
            // Each put to a kept tree asks for it, so it makes no term.
            Self::Plain => clock_phash2_u32(clock) & (DEFAULT_RANGE - 1),
            Self::With(number) => salted(Term::from(number)),
            Self::WithoutNumber => salted(Term::atom("undefined")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::{Actor, Dot};

    /// The vector of docs/riak/semantics.md §18.
    #[test]
    fn plain_hashes_are_riaks() {
        let entry = |actor: &[u8], counter, stamp_secs| Dot { actor: Actor::new(actor), counter, stamp_secs };
        let clock = VectorClock::from_entries([
            entry(&[9; 8], 3, 63_900_000_007),
            entry(&[1, 2, 3, 4, 5, 6, 7, 8], 1, 63_900_000_000),
        ]);
        assert_eq!(ClockHash::Plain.of(&clock), 43_197_903);
        for clock in [VectorClock::new(), clock.clone()] {
            assert_eq!(ClockHash::Plain.of(&clock), phash2(&clock_to_term(&clock)));
        }
        assert_ne!(ClockHash::With(0).of(&clock), ClockHash::WithoutNumber.of(&clock));
    }
}
