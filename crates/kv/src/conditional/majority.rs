//! What a conditional put has read from the primaries.

use super::Ballot;
use crate::coordination::{CountedSets, Replica, Tallies};
use ombak_types::time::UnixMicros;
use ombak_types::{NodeId, Object};
use smallvec::SmallVec;

/// The number of positions that are more than half of `n`.
pub(crate) const fn majority(n: u32) -> u32 {
    n / 2 + 1
}

/// The question of one conditional put to the primaries: a state machine without I/O.
#[derive(Debug)]
pub(crate) struct MajorityRead {
    /// The ballot that it asks for.
    pub(crate) ballot: Ballot,
    /// Everything that was answered, with empty values.
    pub(crate) seen: Object,
    /// The primaries that may not accept the put: they are not full, or have promised a later
    /// ballot.
    pub(crate) excluded: SmallVec<[NodeId; 3]>,
    /// Who has answered: an answer counts once.
    answered: SmallVec<[NodeId; 3]>,
    /// Number of positions whose owners must promise.
    need: u32,
    promised: Tallies,
    /// What has promised or may still promise.
    possible: Tallies,
    /// The latest time that stands against the ballot.
    outbid: Option<UnixMicros>,
}

/// What the answers so far mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Further answers are needed.
    Open,
    /// A majority has promised.
    Promised,
    /// The put must ask again, with a later time than this one.
    Outbid(UnixMicros),
    /// Too few full primaries have answered.
    TooFew {
        /// The positions whose owners have promised.
        got: u32,
    },
}

/// The answer of one primary.
#[derive(Debug)]
pub(crate) struct Answered {
    /// Its version, with empty values.
    pub(crate) head: Option<Object>,
    /// Whether it is known to hold everything of the class.
    pub(crate) full: bool,
    /// The time that stands against the ballot; `None` if it has promised.
    pub(crate) outbid: Option<UnixMicros>,
}

impl MajorityRead {
    /// Asks the owners of the `n` positions. A majority is needed in each of these sets.
    pub(crate) fn new(ballot: Ballot, n: u32, owners: &[Replica], sets: CountedSets) -> Self {
        Self {
            ballot,
            seen: Object::default(),
            excluded: SmallVec::new(),
            answered: SmallVec::new(),
            need: majority(n),
            promised: Tallies::none(sets),
            possible: Tallies::of(sets, owners.iter().copied()),
            outbid: None,
        }
    }

    /// Notes the answer of an owner; `None` stands for one that has failed.
    pub(crate) fn on_answer(&mut self, owner: Replica, answer: Option<Answered>) -> Outcome {
        if self.answered.contains(&owner.node) {
            return self.outcome();
        }
        self.answered.push(owner.node);
        let has_promised = answer.as_ref().is_some_and(|answer| answer.full && answer.outbid.is_none());
        if has_promised {
            self.promised.add(owner);
        } else {
            self.possible.take(owner);
        }
        if let Some(Answered { head, outbid, .. }) = answer {
            if let Some(head) = head {
                self.seen.merge(head);
            }
            self.outbid = self.outbid.max(outbid);
            if !has_promised {
                self.excluded.push(owner.node);
            }
        }
        self.outcome()
    }

    fn outcome(&self) -> Outcome {
        let promised = self.promised.least().primaries;
        if promised >= self.need {
            // A value must be later than what it replaces.
            let newest = self.seen.last_modified().filter(|&newest| newest >= self.ballot.stamp);
            return newest
                .map_or(Outcome::Promised, |newest| Outcome::Outbid(newest.max(self.outbid.unwrap_or(newest))));
        }
        if self.possible.least().primaries >= self.need {
            return Outcome::Open;
        }
        self.outbid.map_or(Outcome::TooFew { got: promised }, Outcome::Outbid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::Weight;

    fn owners(positions: &[u32]) -> Vec<Replica> {
        (0u64..).zip(positions).map(|(id, &positions)| Replica::primary(NodeId::new(id + 1), positions)).collect()
    }

    fn read(n: u32, owners: &[Replica]) -> MajorityRead {
        MajorityRead::new(Ballot { stamp: UnixMicros(50), number: 1 }, n, owners, CountedSets::One)
    }

    fn promised() -> Option<Answered> {
        Some(Answered { head: None, full: true, outbid: None })
    }

    #[test]
    fn a_majority_of_positions_decides() {
        let three = owners(&[1, 1, 1]);
        let mut plain = read(3, &three);
        assert_eq!(plain.on_answer(three[0], promised()), Outcome::Open);
        assert_eq!(plain.on_answer(three[1], promised()), Outcome::Promised);
        let two = owners(&[2, 1]);
        assert_eq!(read(3, &two).on_answer(two[0], promised()), Outcome::Promised, "two positions on one node");
        assert_eq!(read(3, &two).on_answer(two[0], None), Outcome::TooFew { got: 0 });
        let one = owners(&[1]);
        assert_eq!(read(1, &one).on_answer(one[0], promised()), Outcome::Promised);
        let pair = owners(&[1, 1]);
        let mut both = read(2, &pair);
        assert_eq!(both.on_answer(pair[0], promised()), Outcome::Open);
        assert_eq!(both.on_answer(pair[1], None), Outcome::TooFew { got: 1 });
    }

    #[test]
    fn each_set_needs_a_majority() {
        let here = |positions, other| {
            let weight = Weight { positions: other, primaries: other };
            Replica { other: weight, ..Replica::primary(NodeId::new(u64::from(positions * 8 + other)), positions) }
        };
        // Two nodes of the set in force and two that are only in the other one.
        let four = [here(2, 0), here(1, 0), here(0, 1), here(0, 2)];
        let begin = || MajorityRead::new(Ballot { stamp: UnixMicros(50), number: 1 }, 3, &four, CountedSets::Both);
        let mut both = begin();
        assert_eq!(both.on_answer(four[0], promised()), Outcome::Open);
        assert_eq!(both.on_answer(four[1], promised()), Outcome::Open, "nobody of the other set has promised");
        assert_eq!(both.on_answer(four[2], promised()), Outcome::Open);
        assert_eq!(both.on_answer(four[3], promised()), Outcome::Promised);
        let mut too_few = begin();
        assert_eq!(too_few.on_answer(four[0], promised()), Outcome::Open);
        assert_eq!(too_few.on_answer(four[3], None), Outcome::TooFew { got: 0 });
    }

    #[test]
    fn primaries_that_lack_something_or_have_promised_more_do_not_count() {
        let three = owners(&[1, 1, 1]);
        let mut read_3 = read(3, &three);
        let filling = Some(Answered { head: None, full: false, outbid: None });
        assert_eq!(read_3.on_answer(three[0], filling), Outcome::Open);
        assert_eq!(read_3.on_answer(three[1], promised()), Outcome::Open);
        let outbid = Some(Answered { head: None, full: true, outbid: Some(UnixMicros(70)) });
        assert_eq!(read_3.on_answer(three[2], outbid), Outcome::Outbid(UnixMicros(70)));
        assert_eq!(read_3.excluded[..], [three[0].node, three[2].node]);
    }
}
