//! The staged changes: how the metadata keeps them, and the cluster as they find it.

use super::member_change::MemberChange;
use super::state::RingChange;
use crate::member::error::ClusterError;
use ombak_metadata::state::{MemberStatus, Metadata};
use ombak_ring::placement::Placement;
use ombak_ring::staging::{
    Change, ClusterView, Joiner, MemberStatus as StagedStatus, Members, Plan, Refusal, StagedChanges,
};
use ombak_ring::{BadLocation, Location, Locations, Ring, RingVersion};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The version of the document while nodes only join. Version 1 of the program reads it.
const FORMAT_OF_JOINS: u32 = 1;
/// The version of the document with other changes.
const FORMAT_OF_CHANGES: u32 = 2;
/// The version of the document with a location.
const FORMAT_OF_LOCATIONS: u32 = 3;

/// What is staged. Nodes that join are members with the status `joining`, so their joins are not in
/// the document.
pub(in crate::member) struct Staged {
    /// The changes.
    pub changes: StagedChanges,
    /// The plan that was shown last.
    pub plan: Option<Plan>,
}

/// The document in the metadata.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
}

impl Staged {
    /// The document. It is null if nothing is staged but joins and no plan was shown.
    pub fn to_value(&self) -> Result<Value, ClusterError> {
        let is_join = |change: &&Change| matches!(change, Change::Join { .. });
        let changes: Vec<Change> = self.changes.changes().iter().filter(|change| !is_join(change)).copied().collect();
        if changes.is_empty() && self.plan.is_none() {
            return Ok(Value::Null);
        }
        let has_locations = changes.iter().any(|change| change.location().is_some())
            || self.plan.as_ref().is_some_and(|plan| !plan.locations.is_empty());
        let format = match changes.is_empty() {
            _ if has_locations => FORMAT_OF_LOCATIONS,
            true => FORMAT_OF_JOINS,
            false => FORMAT_OF_CHANGES,
        };
        let document = Document { format, changes, plan: self.plan.clone() };
        serde_json::to_value(document).map_err(|e| ClusterError::refused(e.to_string()))
    }
}

/// The document, if there is one that this version of the program understands.
fn document(metadata: &Metadata) -> Option<Document> {
    let (document, _) = metadata.staged();
    let known = serde_json::from_value::<Document>((**document).clone()).ok()?;
    (FORMAT_OF_JOINS..=FORMAT_OF_LOCATIONS).contains(&known.format).then_some(known)
}

/// The plan that was shown last, if there is one that this version of the program understands.
pub(in crate::member) fn shown_plan(metadata: &Metadata) -> Option<Plan> {
    document(metadata)?.plan
}

/// The cluster as staged changes find it, without what borrows.
pub(in crate::member) struct View {
    pub metadata: Metadata,
    pub placement: Arc<Placement>,
    pub members: Members,
    ring: Arc<Ring>,
    claimant: Option<NodeId>,
    /// Nodes that do not answer: members that are not marked as down, and nodes that join.
    silent: Vec<NodeId>,
    /// Nodes that answer, and do not follow the ring of this cluster, or not yet.
    apart: Vec<NodeId>,
    /// Members that answer, whatever status they have.
    answering: BTreeSet<NodeId>,
    target_n_val: u32,
    target_location_n_val: u32,
    locations: Locations,
}

impl View {
    pub fn borrowed(&self) -> ClusterView<'_> {
        ClusterView {
            ring: &self.ring,
            members: &self.members,
            claimant: self.claimant,
            is_converged: self.silent.is_empty() && self.apart.is_empty(),
            target_n_val: self.target_n_val,
            target_location_n_val: self.target_location_n_val,
            locations: &self.locations,
        }
    }

    /// The locations that a plan gives to members.
    pub fn new_locations(&self, plan: &Plan) -> Vec<(NodeId, Location)> {
        let is_new = |(node, location): &(&NodeId, &Location)| self.locations.get(*node) != Some(*location);
        plan.locations.iter().filter(is_new).map(|(node, location)| (*node, *location)).collect()
    }

    /// The members that changes remove by force, and that do not answer. One that answers would get
    /// the entry that removes it, could even lead the metadata, and has to understand it.
    pub fn lost(&self, changes: &[Change]) -> BTreeSet<NodeId> {
        removed_by(changes).filter(|node| !self.answers(*node)).collect()
    }

    /// Whether a member answers.
    pub fn answers(&self, node: NodeId) -> bool {
        self.answering.contains(&node)
    }

    pub fn name(&self, node: NodeId) -> String {
        self.metadata.members().get(&node).map_or_else(|| node.to_string(), |member| member.name.clone())
    }

    pub fn names(&self) -> BTreeMap<NodeId, String> {
        self.metadata.members().iter().map(|(node, member)| (*node, member.name.clone())).collect()
    }

    pub fn refused(&self, refusal: &Refusal) -> ClusterError {
        let text = refusal.text(|node| self.name(node));
        ClusterError::refused(if *refusal == Refusal::NotConverged { self.with_obstacles(text) } else { text })
    }

    /// A refusal, with the nodes that do not answer or do not follow the ring, and what to do about
    /// them.
    pub fn with_obstacles(&self, refusal: String) -> String {
        let Self { silent, apart, .. } = self;
        let mut lines = vec![refusal];
        if !silent.is_empty() {
            lines.push(format!("These nodes do not answer: [{}]. Start them.", self.quoted_names(silent)));
        }
        if !apart.is_empty() {
            let names = self.quoted_names(apart);
            lines.push(format!("These nodes do not follow the ring of this cluster yet: [{names}]. Wait for them."));
        }
        let is_joiner = |node: &NodeId| self.joining().any(|joiner| joiner == *node);
        if silent.iter().any(|node| !is_joiner(node)) {
            lines.push("Mark a member that is lost as down ('ombak admin down NODE').".into());
        }
        if silent.iter().any(is_joiner) {
            lines.push("Take back the join of a node that is lost ('ombak admin cluster leave NODE').".into());
        }
        if apart.iter().any(is_joiner) {
            let what = "Take back the join of a node that stays alone ('ombak admin cluster leave NODE').";
            lines.push(what.into());
        }
        lines.join("\n")
    }

    fn quoted_names(&self, nodes: &[NodeId]) -> String {
        nodes.iter().map(|node| format!("'{}'", self.name(*node))).collect::<Vec<_>>().join(",")
    }

    pub fn joining(&self) -> impl Iterator<Item = NodeId> + '_ {
        let members = self.metadata.members().iter();
        members.filter(|(_, member)| member.status == MemberStatus::Joining).map(|(node, _)| *node)
    }

    /// What is staged, as far as it is still valid.
    pub fn staged(&self) -> Result<StagedChanges, ClusterError> {
        let mut staged = StagedChanges::default();
        for node in self.joining() {
            let joiner = Joiner { node, ring_size: self.ring.size(), is_alone: true };
            staged.join(&self.borrowed(), joiner).map_err(|refusal| self.refused(&refusal))?;
        }
        for change in document(&self.metadata).map(|document| document.changes).unwrap_or_default() {
            // A change that is not valid any more is left out.
            let _ = staged.stage(&self.borrowed(), change);
        }
        Ok(staged)
    }

    /// The change that an operator has asked for, with the identities of the nodes.
    pub fn change(&self, wanted: &MemberChange) -> Result<Change, ClusterError> {
        Ok(match wanted {
            MemberChange::Leave(node) => Change::Leave { node: self.named(node)? },
            MemberChange::ForceRemove(node) => Change::ForceRemove { node: self.named(node)? },
            MemberChange::Replace { node, with } => {
                Change::Replace { node: self.named(node)?, with: self.named(with)? }
            }
            MemberChange::ForceReplace { node, with } => {
                Change::ForceReplace { node: self.named(node)?, with: self.named(with)? }
            }
            MemberChange::SetLocation { node, location } => {
                let location =
                    location.parse().map_err(|why: BadLocation| ClusterError::refused(format!("Failed: {why}.")))?;
                Change::SetLocation { node: self.named(node)?, location }
            }
        })
    }

    fn named(&self, name: &str) -> Result<NodeId, ClusterError> {
        let mut members = self.metadata.members().iter();
        let found = members.find(|(node, member)| member.name == name || node.to_string() == name);
        let unknown = || ClusterError::refused(format!("Failed: '{name}' is not a member of the cluster."));
        found.map(|(node, _)| *node).ok_or_else(unknown)
    }
}

impl RingChange {
    /// The cluster as staged changes find it now.
    pub(in crate::member) async fn view(&self) -> Result<View, ClusterError> {
        self.check_takes_part()?;
        let node = self.metadata_node();
        node.catch_up(self.question_deadline()).await;
        let metadata = node.metadata();
        let placement = metadata.placement().cloned();
        let placement = placement.ok_or_else(|| ClusterError::refused("the node has no cluster yet"))?;
        let ring = placement.goal().clone();
        let members = staged_members(&metadata);
        let rings = self.rings(self.question_deadline()).await;
        // While homes change, members may be some steps apart.
        let follows = |(node, followed): &(NodeId, Option<RingVersion>)| {
            members.get(node) == Some(&StagedStatus::Down) || followed.is_some_and(|known| known >= ring.version())
        };
        let is_behind = |known: &&(NodeId, Option<RingVersion>)| !follows(known);
        let (silent, apart): (Vec<_>, Vec<_>) = rings.iter().filter(is_behind).partition(|(_, known)| known.is_none());
        let nodes = |of: Vec<&(NodeId, Option<RingVersion>)>| of.into_iter().map(|(node, _)| *node).collect();
        let (silent, apart) = (nodes(silent), nodes(apart));
        let answering = rings.iter().filter_map(|(node, followed)| followed.map(|_| *node)).collect();
        // A node that is alone may not remove itself anyway, and it is told so.
        let claimant = node.leader().filter(|_| members.len() > 1);
        Ok(View {
            locations: metadata.locations(),
            metadata,
            placement,
            members,
            ring,
            claimant,
            silent,
            apart,
            answering,
            target_n_val: self.target_n_val,
            target_location_n_val: self.target_location_n_val,
        })
    }
}

/// The members that changes remove by force.
pub(in crate::member) fn removed_by(changes: &[Change]) -> impl Iterator<Item = NodeId> + '_ {
    changes.iter().filter(|change| change.is_forced()).map(Change::node)
}

/// The members with their status as staged changes see it. A node that joins is not among them.
pub(in crate::member) fn staged_members(metadata: &Metadata) -> Members {
    metadata.members().iter().filter_map(|(node, member)| Some((*node, staged(member.status)?))).collect()
}

const fn staged(status: MemberStatus) -> Option<StagedStatus> {
    match status {
        MemberStatus::Joining => None,
        MemberStatus::Valid => Some(StagedStatus::Valid),
        MemberStatus::Leaving => Some(StagedStatus::Leaving),
        MemberStatus::Exiting => Some(StagedStatus::Exiting),
        MemberStatus::Down => Some(StagedStatus::Down),
    }
}
