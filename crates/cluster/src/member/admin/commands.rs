//! The commands of operators: leave, replace, plan, commit, clear, down, ringready.

use super::losses::{Losses, losses};
use crate::member::error::ClusterError;
use crate::member::features::Feature;
use crate::member::member_node::{Inner, MemberNode};
use crate::member::ring_change::closing::{while_empty, who_is_not_empty};
use crate::member::ring_change::member_change::MemberChange;
use crate::member::ring_change::staged::{Staged, View, removed_by, shown_plan};
use ombak_kv::Holdings;
use ombak_metadata::ProposeError;
use ombak_metadata::state::{Command, MemberStatus, NewGoal};
use ombak_ring::staging::{self, Change, CommitRefusal, MemberStatus as StagedStatus, Plan, Refusal};
use ombak_ring::{Location, RingVersion};
use ombak_runtime::RuntimeExt;
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How often a commit looks whether all members follow the new ring.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

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

/// What came of a change of the members that an operator asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staging {
    /// The words for the operator, Riak's where Riak has some.
    pub text: String,
    /// Whether the change took back the join of a node, at once. Nothing is staged for that node
    /// any more. Otherwise the change is staged, and a plan and a commit make it effective.
    pub is_withdrawal: bool,
}

impl MemberNode {
    /// Stages a change of the members, or takes back the join of a node that is to leave or to be
    /// removed before it has joined.
    pub async fn stage(&self, change: &MemberChange) -> Result<Staging, ClusterError> {
        let inner = &self.inner;
        let view = inner.ring_change.view().await?;
        let change = view.change(change)?;
        let mut staged = view.staged()?;
        staged.stage(&view.borrowed(), change).map_err(|refusal| view.refused(&refusal))?;
        let needed = if change.location().is_some() { Feature::LOCATIONS } else { Feature::RING_CHANGES };
        inner.check_all_can(needed, &view.metadata, &view.lost(staged.changes()))?;
        let (metadata, deadline) = (inner.metadata_node(), inner.command_deadline());
        let takes_away = change.replacement().is_none() && change.location().is_none();
        let is_withdrawal = takes_away && view.joining().any(|node| node == change.node());
        if is_withdrawal {
            metadata.propose(Command::WithdrawMember { node: change.node() }, deadline).await?;
        }
        let document = Staged { changes: staged, plan: shown_plan(&view.metadata) };
        let (_, expected) = view.metadata.staged();
        metadata.propose(Command::Stage { expected, changes: document.to_value()? }, deadline).await?;
        let text = match is_withdrawal {
            true => withdrawn_text(&view.name(change.node())),
            false => change.staged_text(|node| view.name(node)).unwrap_or_default(),
        };
        Ok(Staging { text, is_withdrawal })
    }

    /// As [`Self::stage`]. A node that takes back its own join leaves the metadata of the cluster
    /// in the middle of the command, so it looks afterwards what became of it.
    pub async fn stage_for_operator(&self, change: &MemberChange) -> Result<Staging, ClusterError> {
        let inner = &self.inner;
        let me = self.metadata().members().get(&inner.id()).cloned();
        let may_withdraw = me.is_some_and(|me| {
            me.status == MemberStatus::Joining && matches!(change, MemberChange::Leave(name) if *name == me.name)
        });
        match self.stage(change).await {
            Err(ClusterError::Undecided(ProposeError::Stopped)) if may_withdraw && self.becomes_alone().await => {
                Ok(Staging { text: withdrawn_text(&inner.name_of(inner.id())), is_withdrawal: true })
            }
            done => done,
        }
    }

    /// Waits until this node is a cluster of its own, for as long as a question may take.
    async fn becomes_alone(&self) -> bool {
        let (runtime, deadline) = (&self.inner.runtime, self.inner.question_deadline());
        loop {
            if self.metadata().members().len() == 1 {
                return true;
            }
            if self.inner.is_stopping() || runtime.now() >= deadline {
                return false;
            }
            runtime.sleep(LOOK_INTERVAL).await;
        }
    }

    /// Plans the staged changes. `None` when nothing is staged. Every member can commit the plan.
    pub async fn plan(&self) -> Result<Option<PlanShown>, ClusterError> {
        let view = self.inner.ring_change.view().await?;
        let staged = view.staged()?;
        let plan = match staging::plan(&view.borrowed(), &staged) {
            Err(Refusal::NothingStaged) => return Ok(None),
            planned => planned.map_err(|refusal| view.refused(&refusal))?,
        };
        let (_, expected) = view.metadata.staged();
        let document = Staged { changes: staged, plan: Some(plan.clone()) };
        let inner = &self.inner;
        let command = Command::Stage { expected, changes: document.to_value()? };
        inner.metadata_node().propose(command, inner.command_deadline()).await?;
        Ok(Some(PlanShown { plan, names: view.names() }))
    }

    /// What the removals by force in a plan would destroy, as far as is known now.
    pub async fn losses(&self, plan: &Plan) -> Result<Losses, ClusterError> {
        let removed: BTreeSet<NodeId> = removed_by(plan.changes()).collect();
        if removed.is_empty() {
            return Ok(Losses::default());
        }
        Ok(losses(&self.inner, &self.inner.ring_change.view().await?, &removed).await)
    }

    /// Carries out the plan that was shown last. If nodes only join or get a location, and no
    /// member holds an object, every member follows the new ring when this returns, or the
    /// metadata will tell it. Otherwise the change begins, and homes get the new ring by steps
    /// while requests go on. It is refused if it would destroy data.
    pub async fn commit(&self) -> Result<(), ClusterError> {
        self.commit_if(Loss::Refused).await
    }

    /// As [`Self::commit`], also if it destroys data.
    pub async fn commit_accepting_loss(&self) -> Result<(), ClusterError> {
        self.commit_if(Loss::Accepted).await
    }

    async fn commit_if(&self, loss: Loss) -> Result<(), ClusterError> {
        let inner = &self.inner;
        let view = inner.ring_change.view().await?;
        let (staged, shown) = (view.staged()?, shown_plan(&view.metadata));
        let allowed = staging::commit(&view.borrowed(), &staged, shown.as_ref(), |_| Ok::<(), Infallible>(()));
        let plan = allowed.map_err(|refusal: CommitRefusal<Infallible>| {
            let text = refusal.text(|never| match *never {});
            ClusterError::refused(if refusal == CommitRefusal::PlanChanged { view.with_obstacles(text) } else { text })
        })?;
        if loss == Loss::Refused {
            inner.refuse_loss(&view, plan).await?;
        }
        let is_simple = |change: &Change| matches!(change, Change::Join { .. } | Change::SetLocation { .. });
        let may_be_at_once = staged.changes().iter().all(is_simple) && view.placement.is_settled();
        if !may_be_at_once || !inner.is_empty_everywhere().await {
            return inner.begin_by_steps(&view, plan).await;
        }
        match inner.commit_at_once(&view, plan).await {
            // A write came before the cluster was closed to writes.
            Err(ClusterError::Refused(_)) if !inner.is_empty_everywhere().await => {
                inner.begin_by_steps(&view, plan).await
            }
            outcome => outcome,
        }
    }

    /// Drops all staged changes. Nodes that would have joined begin clusters of their own again.
    pub async fn clear(&self) -> Result<(), ClusterError> {
        let inner = &self.inner;
        let view = inner.ring_change.view().await?;
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
        let view = inner.ring_change.view().await?;
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
        let metadata = self.metadata();
        // While homes change, members may be some steps apart.
        if let Some(placement) = metadata.placement().filter(|placement| !placement.is_settled())
            && rings.iter().all(|(_, ring)| ring.is_some_and(|ring| ring >= placement.goal().version()))
        {
            return RingReady::Ready(rings.iter().map(|(node, _)| inner.name_of(*node)).collect());
        }
        let first = rings.first().and_then(|(node, ring)| Some((*node, (*ring)?)));
        let other = rings.iter().find(|(_, ring)| *ring != first.map(|(_, ring)| ring));
        match (first, other) {
            (Some((one, _)), Some((other, _))) => RingReady::Differ(inner.name_of(one), inner.name_of(*other)),
            _ => RingReady::Ready(rings.iter().map(|(node, _)| inner.name_of(*node)).collect()),
        }
    }
}

/// Riak has no words for this: there a node that joins leaves only with a plan and a commit.
fn withdrawn_text(name: &str) -> String {
    format!(
        "Success: '{name}' does not join any more, and is a cluster of its own again with what it holds. Nothing is \
         staged for it, so no commit is needed"
    )
}

/// Whether a commit may destroy data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    Refused,
    Accepted,
}

impl Inner {
    /// Refuses a plan whose removals by force would destroy data.
    async fn refuse_loss(self: &Arc<Self>, view: &View, plan: &Plan) -> Result<(), ClusterError> {
        let removed: BTreeSet<NodeId> = removed_by(plan.changes()).collect();
        let losses = losses(self, view, &removed).await;
        match losses.is_any() {
            true => Err(ClusterError::DestroysData(Box::new(losses))),
            false => Ok(()),
        }
    }

    async fn is_empty_everywhere(self: &Arc<Self>) -> bool {
        who_is_not_empty(self, Holdings::Everything, None, self.question_deadline()).await.is_empty()
    }

    /// Puts the ring of a plan in force while no member takes writes. No member may hold an object.
    async fn commit_at_once(self: &Arc<Self>, view: &View, plan: &Plan) -> Result<(), ClusterError> {
        let (_, version) = view.metadata.staged();
        let expected = view.placement.version();
        let ring = plan.ring.clone().with_version(expected.next());
        let statuses = view.joining().map(|node| (node, MemberStatus::Valid)).collect();
        let committed = ring.version();
        let locations = self.locations_of(view, plan)?;
        let command = Command::CommitRing { expected, staged: version, ring, statuses, locations };
        let index = while_empty(self, Holdings::Everything, command).await?;
        self.wait_followed(index).await;
        let deadline = self.command_deadline();
        let is_awaited = |node: &NodeId| view.members.get(node) != Some(&StagedStatus::Down);
        let is_behind = |(node, ring): &(NodeId, Option<RingVersion>)| is_awaited(node) && *ring != Some(committed);
        while self.rings(self.question_deadline()).await.iter().any(is_behind) {
            if self.runtime.now() >= deadline {
                tracing::warn!("the change is decided, and some members have not followed it yet");
                break;
            }
            self.runtime.sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    /// Makes the ring of a plan the goal of all homes.
    async fn begin_by_steps(self: &Arc<Self>, view: &View, plan: &Plan) -> Result<(), ClusterError> {
        self.check_all_can(Feature::RING_CHANGES, &view.metadata, &view.lost(plan.changes()))?;
        let (_, staged) = view.metadata.staged();
        let changed = |(node, status): (&NodeId, &StagedStatus)| {
            (view.members.get(node) != Some(status)).then_some((*node, decided(*status)))
        };
        let goal = NewGoal {
            expected: view.placement.goal().version(),
            staged,
            ring: plan.ring.clone(),
            statuses: plan.members.iter().filter_map(changed).collect(),
            removed: removed_by(plan.changes()).collect(),
            ns: self.kv().buckets().snapshot().all_n_vals(),
            locations: self.locations_of(view, plan)?,
        };
        let index = self.metadata_node().propose(Command::SetGoal(goal), self.command_deadline()).await?;
        self.wait_followed(index).await;
        Ok(())
    }

    /// The new locations of members. All members must know locations.
    fn locations_of(&self, view: &View, plan: &Plan) -> Result<Vec<(NodeId, Location)>, ClusterError> {
        let locations = view.new_locations(plan);
        if !locations.is_empty() {
            self.check_all_can(Feature::LOCATIONS, &view.metadata, &view.lost(plan.changes()))?;
        }
        Ok(locations)
    }
}

impl Feature {
    /// The ring changes by steps, while the cluster holds objects.
    pub const RING_CHANGES: Self = Self {
        capability: crate::capabilities::RING_CHANGES,
        text: "a change of the ring of a cluster that holds objects",
        namespace: None,
        is_used_in: |metadata| metadata.placement().is_some_and(|placement| !placement.is_of_ring()),
    };

    /// Members have locations: those of the metadata, and staged changes and plans that have some.
    pub const LOCATIONS: Self = Self {
        capability: "locations.1",
        text: "locations of nodes",
        namespace: None,
        is_used_in: |metadata| metadata.has_locations(),
    };
}

/// The status as the metadata has it.
const fn decided(status: StagedStatus) -> MemberStatus {
    match status {
        StagedStatus::Joining => MemberStatus::Joining,
        StagedStatus::Valid => MemberStatus::Valid,
        StagedStatus::Leaving => MemberStatus::Leaving,
        StagedStatus::Exiting => MemberStatus::Exiting,
        StagedStatus::Down => MemberStatus::Down,
    }
}
