//! Whether everything of a cluster lies where it belongs, as operators see it.
//!
//! Operators wait for this before they take the next node away, so it must never be said too early:
//! a cluster is settled only if the ring in force is the goal that was committed last, no member is
//! on its way in or out, the members that should vote do so, and each member has counted what it
//! holds under the placement that was decided last. Members that do not answer, or that follow
//! another placement, are not settled.
//!
//! Tombstones and expired versions that only wait for their removal endanger nothing. They are
//! counted beside, because under steady deletes there are always some.

use super::deciders::deciders;
use crate::member::error::ClusterError;
use crate::member::ground::Ground;
use crate::member::member_node::MemberNode;
use crate::member::questions::question::{Answer, Question};
use crate::member::questions::ring_change_facts::RingChangeFacts;
use crate::member::questions::unsettled_counts::{ExchangeRound, UnsettledCounts};
use futures_util::future::join_all;
use ombak_failure_detection::SoftState;
use ombak_metadata::state::{MemberStatus, Metadata};
use ombak_ring::RingVersion;
use ombak_types::NodeId;
use std::sync::Arc;

/// What keeps a cluster from being settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// How far the change of the ring is, if there is one.
    pub ring_change: Option<RingChangeFacts>,
    /// The members whose join, leave or return has not ended.
    pub unfinished: Vec<Unfinished>,
    /// What each member has still to do.
    pub members: Vec<Unsettled>,
    /// How many members do not vote yet that should. If others were lost now, nothing about the
    /// cluster could be decided any more.
    pub missing_voters: usize,
    /// The names of the members among which these are, if there are any.
    pub do_not_vote: Vec<String>,
    /// The members that vote and do not answer, if nothing can be decided before some of them do.
    pub needed_to_decide: Vec<String>,
    /// Why the node that was asked serves nobody yet. It is new, waits for its peers, and knows
    /// nothing of their cluster.
    pub awaits: Option<String>,
}

/// A member that is on its way in or out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The name of the member.
    pub member: String,
    /// Where it is in its life. It is not valid.
    pub status: MemberStatus,
}

/// What a member has still to bring to where it belongs, or to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// The name of the member.
    pub member: String,
    /// Whether it follows the placement that was decided last, as far as the node knows that was
    /// asked.
    pub follows_ring: bool,
    /// The counts; `None` if the member did not answer.
    pub counts: Option<UnsettledCounts>,
    /// Whether the member has last told the node that was asked that it holds copies for others, or
    /// owes some. If the member were lost now, that would count as lost with it.
    pub was_told_otherwise: bool,
}

impl Unsettled {
    /// Whether there is nothing to wait for.
    pub fn is_settled(&self) -> bool {
        self.follows_ring && !self.was_told_otherwise && self.counts.is_some_and(|counts| counts.is_settled())
    }

    /// Whether nothing waits for its removal.
    pub fn is_reaped(&self) -> bool {
        self.counts.is_some_and(|counts| counts.is_reaped())
    }
}

impl Settlement {
    /// Whether everything lies where it belongs, and nothing is on its way.
    pub fn is_settled(&self) -> bool {
        let is_at_rest = self.ring_change.is_none() && self.unfinished.is_empty() && self.awaits.is_none();
        is_at_rest && self.missing_voters == 0 && self.members.iter().all(Unsettled::is_settled)
    }

    /// The last round of exchanges in which every member took part. Its end is the earliest of the
    /// ends that the members tell, and its keys are those of all of them. None if a member tells no
    /// round.
    pub fn exchange_round(&self) -> Option<ExchangeRound> {
        let rounds = self.members.iter().map(|of| of.counts?.exchange_round).collect::<Option<Vec<_>>>()?;
        let ended_secs = rounds.iter().map(|round| round.ended_secs).min()?;
        Some(ExchangeRound { ended_secs, repaired: rounds.iter().map(|round| round.repaired).sum() })
    }

    /// Whether no member has anything to reap.
    pub fn is_reaped(&self) -> bool {
        self.members.iter().all(Unsettled::is_reaped)
    }
}

impl MemberNode {
    /// What keeps the cluster from being settled.
    pub async fn settlement(&self) -> Settlement {
        let inner = &self.inner;
        let node = inner.metadata_node();
        // The operator may have committed a change on another member a moment ago.
        node.catch_up(inner.question_deadline()).await;
        let members: Vec<NodeId> = node.metadata().members().keys().copied().collect();
        let answers = join_all(members.iter().map(|member| ask_whether_settled(inner, *member))).await;
        // What was decided while members were asked counts, too: their answers say nothing of it.
        let metadata = node.metadata();
        let version = metadata.placement().map(|placement| placement.version());
        let of = |(member, answer): (&NodeId, Option<(RingVersion, UnsettledCounts)>)| Unsettled {
            was_told_otherwise: was_told_of_copies_at(inner, *member),
            member: inner.name_of(*member),
            follows_ring: answer.is_some_and(|(followed, _)| Some(followed) == version),
            counts: answer.map(|(_, counts)| counts),
        };
        let later = metadata.members().keys().filter(|member| !members.contains(member));
        let later = later.map(|member| Unsettled { member: inner.name_of(*member), ..Unsettled::default() });
        let (missing_voters, voters) = (node.missing_voters(), node.voters());
        let votes = |member: &NodeId| metadata.members().get(member).is_some_and(|of| voters.contains(&of.log));
        let silent = members.iter().zip(&answers).filter(|&(member, answer)| answer.is_none() && votes(member));
        let silent = silent.map(|(member, _)| inner.name_of(*member)).collect();
        let others = deciders(&metadata, &voters).others;
        Settlement {
            ring_change: inner.ring_change.change_in(&metadata).await,
            unfinished: unfinished(&metadata),
            members: members.iter().zip(answers).map(of).chain(later).collect(),
            missing_voters,
            needed_to_decide: needed_to_decide(voters.len(), silent),
            do_not_vote: if missing_voters > 0 { others } else { Vec::new() },
            awaits: inner.joining.awaits.get(),
        }
    }
}

/// The voters that do not answer, if the others are no majority.
fn needed_to_decide(voters: usize, silent: Vec<String>) -> Vec<String> {
    if silent.is_empty() || 2 * silent.len() < voters { Vec::new() } else { silent }
}

/// The members that are on their way in or out.
fn unfinished(metadata: &Metadata) -> Vec<Unfinished> {
    let members = metadata.members().values().filter(|member| member.status != MemberStatus::Valid);
    members.map(|member| Unfinished { member: member.name.clone(), status: member.status }).collect()
}

/// The placement that a member follows, and what it has still to do under that placement or a later
/// one. `None` if it does not answer.
async fn ask_whether_settled(ground: &Ground, member: NodeId) -> Option<(RingVersion, UnsettledCounts)> {
    let deadline = ground.question_deadline();
    // The placement comes first: the counts are then not older than it.
    let Ok(Answer::Ring { version }) = ground.ask(member, &Question::Ring, deadline).await else { return None };
    let Ok(Answer::Settled(counts)) = ground.ask(member, &Question::Settled, deadline).await else { return None };
    Some((version, counts))
}

/// Whether another member has last told that it holds copies for others, or owes some.
fn was_told_of_copies_at(ground: &Ground, member: NodeId) -> bool {
    let has_some =
        |state: Arc<SoftState>| !state.owed.is_empty() || state.foreign_bytes.values().any(|bytes| *bytes > 0);
    member != ground.id() && ground.told_by(member).is_some_and(has_some)
}

/// Answers what this node has still to do.
pub(in crate::member) async fn count_unsettled(ground: &Ground) -> Result<Answer, ClusterError> {
    let repair = ground.repair().clone();
    let now = ground.blocking(move || UnsettledCounts::of(&repair)).await?;
    Ok(Answer::Settled(UnsettledCounts { key_jobs: ground.kv().jobs_not_ended(), ..now }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(counts: UnsettledCounts) -> Unsettled {
        Unsettled { member: "a".into(), follows_ring: true, counts: Some(counts), ..Unsettled::default() }
    }

    #[test]
    fn what_only_waits_for_its_removal_is_told_beside() {
        let counts = UnsettledCounts { versions_to_reap: 7, looks_for_tombstones: true, ..UnsettledCounts::default() };
        let settlement = |counts| Settlement { members: vec![member(counts)], ..Settlement::default() };
        assert!(settlement(counts).is_settled() && !settlement(counts).is_reaped());
        let lacked = UnsettledCounts { versions_lacked: 1, ..counts };
        assert!(!settlement(lacked).is_settled(), "another primary lacks a tombstone");
        assert!(settlement(UnsettledCounts::default()).is_reaped());
    }

    #[test]
    fn a_round_counts_when_every_member_has_ended_one() {
        let round = |ended_secs, repaired| {
            let exchange_round = Some(ExchangeRound { ended_secs, repaired });
            member(UnsettledCounts { exchange_round, ..UnsettledCounts::default() })
        };
        let both = Settlement { members: vec![round(9, 1), round(7, 2)], ..Settlement::default() };
        assert_eq!(both.exchange_round(), Some(ExchangeRound { ended_secs: 7, repaired: 3 }));
        assert!(both.is_settled(), "a round is nothing that is left to do");
        let members = vec![round(9, 1), member(UnsettledCounts::default())];
        assert_eq!(Settlement { members, ..Settlement::default() }.exchange_round(), None);
    }

    #[test]
    fn voters_are_needed_if_the_others_are_no_majority() {
        let needed =
            |voters, silent: &[&str]| needed_to_decide(voters, silent.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(needed(1, &["a"]), ["a"]);
        assert_eq!(needed(2, &["a"]), ["a"]);
        assert_eq!(needed(3, &["a", "b"]), ["a", "b"]);
        for (voters, silent) in [(0, &[][..]), (1, &[]), (3, &["a"]), (5, &["a", "b"])] {
            assert!(needed(voters, silent).is_empty(), "{silent:?} of {voters}");
        }
    }

    #[test]
    fn nothing_may_be_on_its_way() {
        let at_rest = Settlement { members: vec![member(UnsettledCounts::default())], ..Settlement::default() };
        assert!(at_rest.is_settled());
        let change = Settlement { ring_change: Some(RingChangeFacts::default()), ..at_rest.clone() };
        assert!(!change.is_settled());
        let leaver = Unfinished { member: "b".into(), status: MemberStatus::Leaving };
        assert!(!Settlement { unfinished: vec![leaver], ..at_rest.clone() }.is_settled());
        assert!(!Settlement { missing_voters: 2, ..at_rest.clone() }.is_settled());
        assert!(!Settlement { awaits: Some("its peers are silent".into()), ..at_rest.clone() }.is_settled());
        let behind = Unsettled { follows_ring: false, ..member(UnsettledCounts::default()) };
        let silent = Unsettled { counts: None, ..member(UnsettledCounts::default()) };
        let told = Unsettled { was_told_otherwise: true, ..member(UnsettledCounts::default()) };
        for other in [behind, silent, told] {
            let members = vec![member(UnsettledCounts::default()), other];
            assert!(!Settlement { members, ..Settlement::default() }.is_settled());
        }
    }
}
