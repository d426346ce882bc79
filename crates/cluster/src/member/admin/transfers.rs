//! What operators see of transfers, and what they allow: handoff and its limits.

use crate::member::error::ClusterError;
use crate::member::ground::Ground;
use crate::member::member_node::MemberNode;
use crate::member::questions::question::{Answer, Question};
use crate::member::questions::transfers::{MemberTransfers, TransferChange};
use futures_util::future::join_all;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The members that a change is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The member that is asked.
    This,
    /// All members.
    All,
    /// The member with this name.
    Named(String),
}

/// A member, and what it answered; the error says why it did not.
#[derive(Clone, Debug, PartialEq)]
pub struct OfMember<T> {
    /// The identity of the member.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// What it answered.
    pub answer: Result<T, String>,
}

impl MemberNode {
    /// The transfers of all members.
    pub async fn transfers(&self) -> Vec<OfMember<MemberTransfers>> {
        let members = all_members(&self.inner);
        ask_transfers(&self.inner, &members, &Question::Transfers).await
    }

    /// How many home partitions do not have their new owners yet, by the members that give or take
    /// them.
    pub fn changing_homes(&self) -> BTreeMap<NodeId, u64> {
        let (metadata, ns) = (self.metadata(), self.kv().buckets().snapshot().all_n_vals());
        let mut counts = BTreeMap::new();
        let Some(placement) = metadata.placement() else { return counts };
        for home in placement.homes().filter(|home| !placement.has_goal(home.home())) {
            let sets = ns.iter().flat_map(|n| [home.replica_set(*n), placement.goal().replica_set(home.home(), *n)]);
            let nodes: BTreeSet<NodeId> = sets.flatten().collect();
            nodes.into_iter().for_each(|node| *counts.entry(node).or_default() += 1);
        }
        counts
    }

    /// Changes what members may transfer, until they stop. Returns their transfers, in the order
    /// of the members.
    pub async fn change_transfers(
        &self,
        whom: &Whom,
        change: TransferChange,
    ) -> Result<Vec<OfMember<MemberTransfers>>, ClusterError> {
        let inner = &self.inner;
        let members = members_of(inner, whom)?;
        let changed = ask_transfers(inner, &members, &Question::ChangeTransfers { change }).await;
        if change.inbound == Some(true) {
            // Whoever was refused would try again only after a pause. A member that does not answer
            // tries again when it is up.
            ask_transfers(inner, &all_members(inner), &Question::RetryTransfers).await;
        }
        Ok(changed)
    }
}

/// The members that a command is for.
pub(super) fn members_of(ground: &Ground, whom: &Whom) -> Result<Vec<NodeId>, ClusterError> {
    Ok(match whom {
        Whom::This => vec![ground.id()],
        Whom::All => all_members(ground),
        Whom::Named(name) => vec![member_named(ground, name)?],
    })
}

fn all_members(ground: &Ground) -> Vec<NodeId> {
    ground.followed.get().metadata.members().keys().copied().collect()
}

fn member_named(ground: &Ground, name: &str) -> Result<NodeId, ClusterError> {
    let followed = ground.followed.get();
    let mut members = followed.metadata.members().iter();
    let found = members.find(|(node, member)| member.name == name || node.to_string() == name);
    let unknown = || ClusterError::refused(format!("Failed: '{name}' is not a member of the cluster."));
    found.map(|(node, _)| *node).ok_or_else(unknown)
}

async fn ask_transfers(ground: &Ground, members: &[NodeId], question: &Question) -> Vec<OfMember<MemberTransfers>> {
    let deadline = ground.question_deadline();
    let answers = join_all(members.iter().map(|node| ground.ask(*node, question, deadline))).await;
    let of = |(node, answer): (&NodeId, Result<Answer, String>)| {
        let answer = match answer {
            Ok(Answer::Transfers(transfers)) => Ok(*transfers),
            Ok(_) => Err("it gave another answer".to_owned()),
            Err(why) => Err(why),
        };
        OfMember { node: *node, name: ground.name_of(*node), answer }
    };
    members.iter().zip(answers).map(of).collect()
}

/// Answers what the transfers of this node are, after it has carried out a change.
pub(in crate::member) async fn transfers_here(
    ground: &Ground,
    change: TransferChange,
    retries: bool,
) -> Result<Answer, ClusterError> {
    let repair = ground.repair().clone();
    let now = ground.blocking(move || {
        change.apply_to(&repair);
        if retries {
            repair.retry_transfers();
        }
        MemberTransfers::of(&repair)
    });
    Ok(Answer::Transfers(Box::new(now.await?)))
}
