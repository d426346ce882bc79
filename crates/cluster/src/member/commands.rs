//! The commands of operators: plan, commit, clear, down, ringready.

use super::error::ClusterError;
use super::member_node::{Inner, MemberNode};
use ombak_kv::Holdings;
use ombak_metadata::state::{Command, MemberStatus, Metadata};
use ombak_ring::staging::{
    self, ClusterView, CommitRefusal, Joiner, MemberStatus as StagedStatus, Members, Plan, Refusal, StagedChanges,
};
use ombak_runtime::RuntimeExt;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How often a commit looks whether all members follow the new ring.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The document of staged changes. Nodes that join are members with the status `joining`, so they
/// are not in it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Staged {
    format: u32,
    /// The plan that was shown last.
    plan: Plan,
}

const FORMAT: u32 = 1;

/// A plan that was shown to an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanShown {
    /// The plan.
    pub plan: Plan,
    /// The names of the nodes.
    pub names: BTreeMap<NodeId, String>,
}

impl PlanShown {
    /// The plan as Riak prints it.
    pub fn text(&self) -> String {
        self.plan.text(|node| self.names.get(&node).cloned().unwrap_or_else(|| node.to_string()))
    }
}

/// Whether all members agree on the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingReady {
    /// They do.
    Ready(Vec<String>),
    /// These two do not.
    Differ(String, String),
    /// These do not answer.
    Down(Vec<String>),
}

/// The plan that was shown last, if there is one that this version of the program understands.
pub(super) fn shown_plan(metadata: &Metadata) -> Option<Plan> {
    let (document, _) = metadata.staged();
    if document.is_null() {
        return None;
    }
    let staged = serde_json::from_value::<Staged>((**document).clone()).ok()?;
    (staged.format == FORMAT).then_some(staged.plan)
}

/// The cluster as staged changes find it, without what borrows.
struct View {
    metadata: Metadata,
    ring: Arc<ombak_ring::Ring>,
    members: Members,
    is_converged: bool,
    target_n_val: u32,
}

impl View {
    fn borrowed(&self) -> ClusterView<'_> {
        ClusterView {
            ring: &self.ring,
            members: &self.members,
            claimant: None,
            is_converged: self.is_converged,
            target_n_val: self.target_n_val,
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.metadata.members().get(&node).map_or_else(|| node.to_string(), |member| member.name.clone())
    }

    fn names(&self) -> BTreeMap<NodeId, String> {
        self.metadata.members().iter().map(|(node, member)| (*node, member.name.clone())).collect()
    }

    fn refused(&self, refusal: &Refusal) -> ClusterError {
        ClusterError::refused(refusal.text(|node| self.name(node)))
    }

    fn joining(&self) -> impl Iterator<Item = NodeId> + '_ {
        let members = self.metadata.members().iter();
        members.filter(|(_, member)| member.status == MemberStatus::Joining).map(|(node, _)| *node)
    }

    fn staged(&self) -> Result<StagedChanges, ClusterError> {
        let mut staged = StagedChanges::default();
        for node in self.joining() {
            let joiner = Joiner { node, ring_size: self.ring.size(), is_alone: true };
            staged.join(&self.borrowed(), joiner).map_err(|refusal| self.refused(&refusal))?;
        }
        Ok(staged)
    }
}

impl MemberNode {
    /// Plans the staged changes. `None` when nothing is staged. Every member can commit the plan.
    pub async fn plan(&self) -> Result<Option<PlanShown>, ClusterError> {
        let view = self.inner.view().await?;
        let staged = view.staged()?;
        let plan = match staging::plan(&view.borrowed(), &staged) {
            Err(Refusal::NothingStaged) => return Ok(None),
            planned => planned.map_err(|refusal| view.refused(&refusal))?,
        };
        let (_, expected) = view.metadata.staged();
        let document = Staged { format: FORMAT, plan };
        let changes = serde_json::to_value(&document).map_err(|e| ClusterError::refused(e.to_string()))?;
        let inner = &self.inner;
        let command = Command::Stage { expected, changes };
        inner.metadata_node().propose(command, inner.command_deadline()).await?;
        Ok(Some(PlanShown { plan: document.plan, names: view.names() }))
    }

    /// Carries out the plan that was shown last. It is refused when a member holds an object.
    /// When this returns, every member follows the new ring, or the metadata will tell it.
    pub async fn commit(&self) -> Result<(), ClusterError> {
        let inner = &self.inner;
        let view = inner.view().await?;
        let (staged, shown) = (view.staged()?, shown_plan(&view.metadata));
        let allowed = staging::commit(&view.borrowed(), &staged, shown.as_ref(), |_| Ok::<(), Infallible>(()));
        let plan = allowed.map_err(|refusal: CommitRefusal<Infallible>| {
            ClusterError::refused(refusal.text(|never| match *never {}))
        })?;
        let (_, version) = view.metadata.staged();
        let command = Command::CommitRing {
            expected: view.ring.version(),
            staged: version,
            ring: plan.ring.clone(),
            statuses: staged.joiners().map(|node| (node, MemberStatus::Valid)).collect(),
        };
        let committed = plan.ring.version();
        let index = inner.while_empty(Holdings::Everything, command).await?;
        inner.wait_followed(index).await;
        let deadline = inner.command_deadline();
        let is_awaited = |node: &NodeId| view.members.get(node) != Some(&StagedStatus::Down);
        let is_behind = |(node, ring): &(NodeId, Option<_>)| is_awaited(node) && *ring != Some(committed);
        while inner.rings(inner.question_deadline()).await.iter().any(is_behind) {
            if inner.runtime.now() >= deadline {
                tracing::warn!("the change is decided, and some members have not followed it yet");
                break;
            }
            inner.runtime.sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    /// Drops all staged changes. Nodes that would have joined begin clusters of their own again.
    pub async fn clear(&self) -> Result<(), ClusterError> {
        let inner = &self.inner;
        let view = inner.view().await?;
        let (metadata, deadline) = (inner.metadata_node(), inner.command_deadline());
        for node in view.joining() {
            metadata.propose(Command::WithdrawMember { node }, deadline).await?;
        }
        let (document, expected) = view.metadata.staged();
        if !document.is_null() {
            let command = Command::Stage { expected, changes: serde_json::Value::Null };
            metadata.propose(command, deadline).await?;
        }
        Ok(())
    }

    /// Marks a member as down, so that the cluster changes without it.
    pub async fn mark_down(&self, name: &str) -> Result<(), ClusterError> {
        let inner = &self.inner;
        let view = inner.view().await?;
        let members = view.metadata.members();
        let found = members.iter().find(|(node, member)| member.name == name || node.to_string() == name);
        let Some((node, member)) = found else {
            return Err(ClusterError::refused(format!("Failed: '{name}' is not a member of the cluster.")));
        };
        let rings = inner.rings(inner.question_deadline()).await;
        let is_up = rings.iter().any(|(of, ring)| of == node && ring.is_some());
        staging::mark_down(&view.members, *node, is_up).map_err(|refusal| view.refused(&refusal))?;
        let command = Command::SetStatus { node: *node, expected: member.status, status: MemberStatus::Down };
        inner.metadata_node().propose(command, inner.command_deadline()).await?;
        Ok(())
    }

    /// Whether all members agree on the ring. A member counts as down also if requests are not sent
    /// to it.
    pub async fn ring_ready(&self) -> RingReady {
        let inner = &self.inner;
        let rings = inner.rings(inner.question_deadline()).await;
        let down: Vec<String> = rings
            .iter()
            .filter(|(node, ring)| ring.is_none() || !inner.is_up(*node))
            .map(|(node, _)| inner.name_of(*node))
            .collect();
        if !down.is_empty() {
            return RingReady::Down(down);
        }
        let first = rings.first().and_then(|(node, ring)| Some((*node, (*ring)?)));
        let other = rings.iter().find(|(_, ring)| *ring != first.map(|(_, ring)| ring));
        match (first, other) {
            (Some((one, _)), Some((other, _))) => RingReady::Differ(inner.name_of(one), inner.name_of(*other)),
            _ => RingReady::Ready(rings.iter().map(|(node, _)| inner.name_of(*node)).collect()),
        }
    }
}

impl Inner {
    async fn view(self: &Arc<Self>) -> Result<View, ClusterError> {
        self.check_takes_part()?;
        let node = self.metadata_node();
        node.catch_up(self.question_deadline()).await;
        let metadata = node.metadata();
        let ring = metadata.ring().cloned().ok_or_else(|| ClusterError::refused("the node has no cluster yet"))?;
        let members = metadata.members().iter().filter_map(|(node, member)| Some((*node, staged(member.status)?)));
        let members: Members = members.collect();
        let rings = self.rings(self.question_deadline()).await;
        let follows = |(node, followed): &(NodeId, Option<ombak_ring::RingVersion>)| {
            members.get(node) == Some(&StagedStatus::Down) || *followed == Some(ring.version())
        };
        let is_converged = rings.iter().all(follows);
        Ok(View { metadata, ring, members, is_converged, target_n_val: self.target_n_val })
    }
}

/// The status as staged changes see it. A node that joins is not among their members.
const fn staged(status: MemberStatus) -> Option<StagedStatus> {
    match status {
        MemberStatus::Joining => None,
        MemberStatus::Valid => Some(StagedStatus::Valid),
        MemberStatus::Leaving => Some(StagedStatus::Leaving),
        MemberStatus::Exiting => Some(StagedStatus::Exiting),
        MemberStatus::Down => Some(StagedStatus::Down),
    }
}
