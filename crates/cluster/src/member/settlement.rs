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

use super::error::ClusterError;
use super::member_node::{Inner, MemberNode};
use super::questions::{Answer, Question};
use super::ring_change_facts::RingChangeFacts;
use futures_util::future::join_all;
use ombak_kv::Settled;
use ombak_membership::SoftState;
use ombak_metadata::state::{MemberStatus, Metadata};
use ombak_ring::RingVersion;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
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

/// The counts of what a member has still to bring to where it belongs, or to remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsettledCounts {
    /// Partitions that may hold copies for other nodes.
    pub partitions_with_hints: u64,
    /// Classes and peers that missed writes.
    pub owed_marks: u64,
    /// Classes that may lack something.
    pub filling_classes: u64,
    /// Transfers under way or ordered.
    pub transfers: u64,
    /// Versions that the member cannot read and that nothing has replaced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable_keys: u64,
    /// Tombstones and expired versions of which the member has found that another primary lacks
    /// them. They are among `versions_to_reap`. Earlier versions do not say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub versions_lacked: u64,
    /// Tombstones and expired versions that wait for their time or for their removal.
    #[serde(default)]
    pub versions_to_reap: u64,
    /// Whether the member still looks through its stores for tombstones of the time before.
    #[serde(default)]
    pub looks_for_tombstones: bool,
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<Settled> for UnsettledCounts {
    fn from(now: Settled) -> Self {
        Self {
            partitions_with_hints: now.partitions_with_hints,
            owed_marks: now.owed_marks,
            filling_classes: now.filling_classes,
            transfers: now.transfers,
            unreadable_keys: now.unreadable_keys,
            versions_lacked: now.versions_lacked,
            versions_to_reap: now.versions_to_reap,
            looks_for_tombstones: now.looks_for_tombstones,
        }
    }
}

impl UnsettledCounts {
    /// Whether everything lies where it belongs. What only waits for its removal does not count.
    pub fn is_settled(&self) -> bool {
        let reaping = Self {
            versions_to_reap: self.versions_to_reap,
            looks_for_tombstones: self.looks_for_tombstones,
            ..Self::default()
        };
        *self == reaping
    }

    /// Whether nothing waits for its removal.
    pub const fn is_reaped(&self) -> bool {
        self.versions_to_reap == 0 && !self.looks_for_tombstones
    }
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
        let answers = join_all(members.iter().map(|member| inner.ask_whether_settled(*member))).await;
        // What was decided while members were asked counts, too: their answers say nothing of it.
        let metadata = node.metadata();
        let version = metadata.placement().map(|placement| placement.version());
        let of = |(member, answer): (&NodeId, Option<(RingVersion, UnsettledCounts)>)| Unsettled {
            was_told_otherwise: inner.was_told_of_copies_at(*member),
            member: inner.name_of(*member),
            follows_ring: answer.is_some_and(|(followed, _)| Some(followed) == version),
            counts: answer.map(|(_, counts)| counts),
        };
        let later = metadata.members().keys().filter(|member| !members.contains(member));
        let later = later.map(|member| Unsettled { member: inner.name_of(*member), ..Unsettled::default() });
        Settlement {
            ring_change: inner.change_in(&metadata).await,
            unfinished: unfinished(&metadata),
            members: members.iter().zip(answers).map(of).chain(later).collect(),
            missing_voters: node.missing_voters(),
            awaits: inner.awaits.get(),
        }
    }
}

/// The members that are on their way in or out.
fn unfinished(metadata: &Metadata) -> Vec<Unfinished> {
    let members = metadata.members().values().filter(|member| member.status != MemberStatus::Valid);
    members.map(|member| Unfinished { member: member.name.clone(), status: member.status }).collect()
}

impl Inner {
    /// The placement that a member follows, and what it has still to do under that placement or a
    /// later one. `None` if it does not answer.
    async fn ask_whether_settled(self: &Arc<Self>, member: NodeId) -> Option<(RingVersion, UnsettledCounts)> {
        let deadline = self.question_deadline();
        // The placement comes first: the counts are then not older than it.
        let Ok(Answer::Ring { version }) = self.ask(member, &Question::Ring, deadline).await else { return None };
        let Ok(Answer::Settled(counts)) = self.ask(member, &Question::Settled, deadline).await else { return None };
        Some((version, counts))
    }

    /// Whether another member has last told that it holds copies for others, or owes some.
    fn was_told_of_copies_at(&self, member: NodeId) -> bool {
        let has_some =
            |state: Arc<SoftState>| !state.owed.is_empty() || state.foreign_bytes.values().any(|bytes| *bytes > 0);
        member != self.id() && self.told_by(member).is_some_and(has_some)
    }

    pub async fn count_unsettled(&self) -> Result<Answer, ClusterError> {
        let kv = self.kv().clone();
        let now = self.blocking(move || kv.settled()).await?;
        Ok(Answer::Settled(now.into()))
    }
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
