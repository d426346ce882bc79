//! Which members vote.
//!
//! One, three or five members vote: one of fewer than three, three of fewer than five, else five.
//! A voter that leaves, or that an operator marked as down, is replaced. So is a voter that has not
//! answered for long, if another member can take its place. The number of voters never falls only
//! because members do not answer.

use crate::state::{Member, MemberStatus, RaftId};
use imbl::OrdMap;
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// What the leader sees.
pub(crate) struct Situation<'a> {
    pub members: &'a OrdMap<NodeId, Member>,
    /// The logs that take part.
    pub participants: BTreeSet<RaftId>,
    pub voters: BTreeSet<RaftId>,
    /// The members that have not answered for long.
    pub gone: &'a BTreeSet<NodeId>,
    /// The members that answered just now and have nearly all entries.
    pub current: &'a BTreeSet<NodeId>,
    pub leader: NodeId,
}

/// A change of the membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    AddLearner(RaftId, NodeId),
    SetVoters(BTreeSet<RaftId>),
    /// Logs that no member has any more.
    Remove(BTreeSet<RaftId>),
}

/// The next change that the leader should make; `None` when all is as it should be.
pub(crate) fn next_step(now: &Situation<'_>) -> Option<Step> {
    let missing = now.members.iter().find(|(_, member)| !now.participants.contains(&member.log));
    if let Some((node, member)) = missing {
        return Some(Step::AddLearner(member.log, *node));
    }
    let voters = wanted_voters(now);
    if voters != now.voters && !voters.is_empty() {
        return Some(Step::SetVoters(voters));
    }
    let logs: BTreeSet<RaftId> = now.members.values().map(|member| member.log).collect();
    let orphans = now.participants.iter().filter(|log| !logs.contains(log) && !now.voters.contains(log));
    let orphans: BTreeSet<RaftId> = orphans.copied().collect();
    (!orphans.is_empty()).then_some(Step::Remove(orphans))
}

fn eligible(members: &OrdMap<NodeId, Member>) -> impl Iterator<Item = (&NodeId, &Member)> {
    members.iter().filter(|(_, member)| member.status == MemberStatus::Valid)
}

/// How many of so many eligible members vote.
const fn voters_of(eligible: usize) -> usize {
    match eligible {
        0..3 => 1,
        3..5 => 3,
        _ => 5,
    }
}

/// How many voters are still missing among the members.
pub(crate) fn missing_voters(members: &OrdMap<NodeId, Member>, voters: &BTreeSet<RaftId>) -> usize {
    let vote = eligible(members).filter(|(_, member)| voters.contains(&member.log)).count();
    voters_of(eligible(members).count()).saturating_sub(vote)
}

fn wanted_voters(now: &Situation<'_>) -> BTreeSet<RaftId> {
    let eligible = || eligible(now.members);
    let wanted = voters_of(eligible().count());
    // Smaller is better: voters that answer, then others that are up to date, then voters that do
    // not answer. Among equals the leader and then the smaller identity stay.
    let rank = |node: &NodeId, log: &RaftId| match (now.voters.contains(log), now.gone.contains(node)) {
        (true, false) => Some(0),
        (false, false) if now.current.contains(node) => Some(1),
        (true, true) => Some(2),
        (false, _) => None,
    };
    let mut ranked: Vec<(u8, bool, NodeId, RaftId)> = eligible()
        .filter_map(|(node, member)| Some((rank(node, &member.log)?, *node != now.leader, *node, member.log)))
        .collect();
    ranked.sort_unstable();
    let available = ranked.len().min(wanted);
    // An even number of voters survives no more failures than one fewer.
    let count = if available.is_multiple_of(2) { available.saturating_sub(1) } else { available };
    ranked.into_iter().take(count).map(|(_, _, _, log)| log).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(number: u64) -> NodeId {
        NodeId::new(number)
    }

    fn log(number: u64) -> RaftId {
        RaftId::new(100 + number)
    }

    fn member(number: u64, status: MemberStatus) -> Member {
        Member {
            name: format!("n{number}"),
            peer_address: String::new(),
            log: log(number),
            boot: 1,
            milestone: None,
            status,
            location: None,
        }
    }

    struct Cluster {
        members: OrdMap<NodeId, Member>,
        participants: BTreeSet<RaftId>,
        voters: BTreeSet<RaftId>,
        gone: BTreeSet<NodeId>,
    }

    impl Cluster {
        fn new(count: u64, voters: &[u64]) -> Self {
            Self {
                members: (1..=count).map(|number| (id(number), member(number, MemberStatus::Valid))).collect(),
                participants: (1..=count).map(log).collect(),
                voters: voters.iter().copied().map(log).collect(),
                gone: BTreeSet::new(),
            }
        }

        fn step(&self) -> Option<Step> {
            let current = self.members.keys().filter(|node| !self.gone.contains(node)).copied().collect();
            next_step(&Situation {
                members: &self.members,
                participants: self.participants.clone(),
                voters: self.voters.clone(),
                gone: &self.gone,
                current: &current,
                leader: id(1),
            })
        }

        fn voters_after(&mut self) -> Vec<u64> {
            while let Some(step) = self.step() {
                let Step::SetVoters(voters) = step else { panic!("{step:?}") };
                self.voters = voters;
            }
            self.voters.iter().map(|log| log.get() - 100).collect()
        }
    }

    #[test]
    fn one_three_or_five_members_vote() {
        for (count, voters) in [(1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (6, 5), (40, 5)] {
            assert_eq!(Cluster::new(count, &[1]).voters_after().len(), voters, "{count} members");
        }
    }

    #[test]
    fn a_voter_that_is_gone_is_replaced_if_somebody_can() {
        let mut cluster = Cluster::new(6, &[1, 2, 3, 4, 5]);
        cluster.gone.insert(id(3));
        assert_eq!(cluster.voters_after(), [1, 2, 4, 5, 6]);
        let mut cluster = Cluster::new(3, &[1, 2, 3]);
        cluster.gone.insert(id(3));
        assert_eq!(cluster.voters_after(), [1, 2, 3], "nobody can");
    }

    #[test]
    fn a_member_that_leaves_or_is_down_or_joins_does_not_vote() {
        for status in [MemberStatus::Leaving, MemberStatus::Down, MemberStatus::Exiting, MemberStatus::Joining] {
            let mut cluster = Cluster::new(4, &[1, 2, 3]);
            cluster.members.insert(id(2), member(2, status));
            assert_eq!(cluster.voters_after(), [1, 3, 4], "{status}");
        }
        let mut cluster = Cluster::new(3, &[1, 2, 3]);
        cluster.members.insert(id(1), member(1, MemberStatus::Leaving));
        assert_eq!(cluster.voters_after(), [2], "two are left, and the leader goes");
    }

    #[test]
    fn a_new_log_is_added_and_an_old_one_removed() {
        let mut cluster = Cluster::new(3, &[1, 2, 3]);
        cluster.participants.insert(log(9));
        assert_eq!(cluster.step(), Some(Step::Remove([log(9)].into())));
        cluster.participants.remove(&log(3));
        assert_eq!(cluster.step(), Some(Step::AddLearner(log(3), id(3))));
    }

    #[test]
    fn voters_that_are_still_missing_are_counted() {
        let missing = |members: u64, voters: &[u64]| {
            let cluster = Cluster::new(members, voters);
            missing_voters(&cluster.members, &cluster.voters)
        };
        assert_eq!((missing(1, &[1]), missing(2, &[1]), missing(3, &[1, 2, 3])), (0, 0, 0));
        assert_eq!((missing(3, &[1]), missing(5, &[1, 2, 3]), missing(3, &[1, 2, 9])), (2, 2, 1));
    }

    proptest! {
        /// Whatever the members are, the steps come to an end, and the voters are an odd number of
        /// members that may vote.
        #[test]
        fn the_steps_end(
            statuses in prop::collection::vec(0..5usize, 1..12),
            voters in prop::collection::btree_set(1..12u64, 1..6),
            gone in prop::collection::btree_set(1..12u64, 0..6),
        ) {
            use MemberStatus::{Down, Joining, Leaving, Valid};
            let statuses: Vec<_> = statuses.iter().map(|n| [Valid, Valid, Joining, Leaving, Down][*n]).collect();
            let mut cluster = Cluster::new(statuses.len() as u64, &voters.into_iter().collect::<Vec<_>>());
            cluster.members = (1..).zip(&statuses).map(|(number, status)| (id(number), member(number, *status))).collect();
            cluster.gone = gone.into_iter().map(id).collect();
            for _ in 0..5 {
                let Some(Step::SetVoters(next)) = cluster.step() else { return Ok(()) };
                prop_assert!(next.len() % 2 == 1 && next.len() <= 5);
                for voter in &next {
                    let vote = cluster.members.values().find(|member| member.log == *voter).map(|m| m.status);
                    prop_assert_eq!(vote, Some(Valid));
                }
                cluster.voters = next;
            }
            prop_assert!(false, "the steps do not end");
        }
    }
}
