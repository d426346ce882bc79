//! Which copies of a read are left to exchanges (docs/design/anti-entropy.md §5).
//!
//! A read does not spread a copy that a mark covers, or that is in doubt, to a primary that has
//! answered without it. It asks the holders to exchange the key at once. Another copy that covers
//! it may be spread: its holder would push it, too.
//!
//! What a primary cannot read is there, and is no removal. It gets the copy, unless a further one
//! that is full has answered without it.

use ombak_types::VectorClock;
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug)]
struct FoundCopy {
    replica: usize,
    digest: u64,
    is_left: bool,
}

/// The copies that the replicas of one read have told of.
#[derive(Debug, Default)]
pub(super) struct LeftCopies {
    found: SmallVec<[FoundCopy; 4]>,
    has_left: bool,
    /// Whether a primary that is known to hold everything has nothing.
    has_lack: bool,
    /// Whether the holders were asked to exchange the key.
    pub(super) has_asked: bool,
}

impl LeftCopies {
    /// Notes the answer of a replica with a version. Of two answers the later one counts.
    pub(super) fn note(&mut self, replica: usize, digest: u64, is_left: bool) {
        self.has_left |= is_left;
        self.found.push(FoundCopy { replica, digest, is_left });
    }

    /// Notes the answer of a replica that has nothing, and whether it is a full primary.
    pub(super) const fn note_lack(&mut self, is_full: bool) {
        self.has_lack |= is_full;
    }

    /// Whether the key may have been removed everywhere, as far as the primaries have answered that
    /// can read what they have.
    pub(super) const fn has_lack(&self) -> bool {
        self.has_lack
    }

    /// The replicas whose copies are left to exchanges, and which no copy covers that is not.
    /// `clock` gives the clock of a replica's copy.
    pub(super) fn holders<'a>(&self, clock: impl Fn(usize) -> Option<&'a VectorClock>) -> SmallVec<[usize; 3]> {
        if !self.has_left {
            return SmallVec::new();
        }
        let is_last = |at: usize, copy: &FoundCopy| !self.found[at + 1..].iter().any(|c| c.replica == copy.replica);
        let last = || self.found.iter().enumerate().filter(|(at, copy)| is_last(*at, copy)).map(|(_, copy)| *copy);
        let covers = |one: FoundCopy, other: FoundCopy| {
            one.digest == other.digest
                || clock(one.replica).zip(clock(other.replica)).is_some_and(|(one, other)| one.dominates(other))
        };
        let is_covered = |copy: FoundCopy| last().any(|other| !other.is_left && covers(other, copy));
        last().filter(|copy| copy.is_left && !is_covered(*copy)).map(|copy| copy.replica).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_types::Actor;
    use ombak_types::time::UnixMicros;

    fn clock(actors: &[u8]) -> VectorClock {
        let mut clock = VectorClock::new();
        actors.iter().for_each(|actor| drop(clock.increment(&Actor::new(&[*actor]), UnixMicros(0))));
        clock
    }

    fn holders(copies: &[(u64, bool, &[u8])]) -> Vec<usize> {
        let clocks: Vec<VectorClock> = copies.iter().map(|(_, _, actors)| clock(actors)).collect();
        let mut left = LeftCopies::default();
        for (replica, (digest, is_left, _)) in copies.iter().enumerate() {
            left.note(replica, *digest, *is_left);
        }
        left.holders(|replica| clocks.get(replica)).to_vec()
    }

    #[test]
    fn a_copy_is_left_unless_another_one_that_is_not_covers_it() {
        assert_eq!(holders(&[(1, false, &[1])]), [0; 0]);
        assert_eq!(holders(&[(1, true, &[1]), (1, true, &[1])]), [0, 1]);
        assert_eq!(holders(&[(1, true, &[1]), (1, false, &[1])]), [0; 0], "the other one may be spread");
        assert_eq!(holders(&[(1, true, &[1]), (2, false, &[1, 2])]), [0; 0], "it is older");
        assert_eq!(holders(&[(1, true, &[1]), (2, false, &[2])]), [0], "neither covers the other");
        assert_eq!(holders(&[(1, true, &[1, 2]), (2, false, &[2])]), [0]);
    }

    #[test]
    fn the_last_answer_of_a_replica_counts() {
        let one = clock(&[1]);
        let mut left = LeftCopies::default();
        left.note(0, 1, true);
        left.note(0, 1, false);
        assert!(left.holders(|_| Some(&one)).is_empty());
        left.note(0, 1, true);
        assert_eq!(left.holders(|_| Some(&one)).to_vec(), [0]);
    }
}
