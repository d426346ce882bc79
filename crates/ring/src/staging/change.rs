//! A staged change, and the list of them.

use super::format::FormatUpTo;
use super::refusal::Refusal;
use super::view::{ClusterView, MemberStatus};
use crate::location::Location;
use crate::partition::RingSize;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};

/// So many changes can be staged at a time.
const CHANGES_MAX: usize = 1024;

/// A change of the cluster that an operator has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A node joins.
    Join {
        /// The node.
        node: NodeId,
    },
    /// A member hands over what it owns and leaves.
    Leave {
        /// The member.
        node: NodeId,
    },
    /// A member is removed; nobody gets its data.
    ForceRemove {
        /// The member.
        node: NodeId,
    },
    /// A node that joins gets exactly the partitions of a member, which leaves.
    Replace {
        /// The member.
        node: NodeId,
        /// The node that joins.
        with: NodeId,
    },
    /// As [`Change::Replace`], and nobody gets the data of the member.
    ForceReplace {
        /// The member.
        node: NodeId,
        /// The node that joins.
        with: NodeId,
    },
    /// Says where a node is. Earlier versions do not know this change.
    SetLocation {
        /// A member, or a node that joins.
        node: NodeId,
        /// Its location.
        location: Location,
    },
}

/// What a node that wants to join says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joiner {
    /// The node.
    pub node: NodeId,
    /// The size of its ring.
    pub ring_size: RingSize,
    /// Whether it is the only member of its cluster.
    pub is_alone: bool,
}

impl Change {
    /// The node that the change is about. There is at most one change for each node, and besides
    /// that one that says where it is.
    pub const fn node(&self) -> NodeId {
        match *self {
            Self::Join { node }
            | Self::Leave { node }
            | Self::ForceRemove { node }
            | Self::Replace { node, .. }
            | Self::ForceReplace { node, .. }
            | Self::SetLocation { node, .. } => node,
        }
    }

    /// The node that takes the place of another.
    pub const fn replacement(&self) -> Option<NodeId> {
        match *self {
            Self::Replace { with, .. } | Self::ForceReplace { with, .. } => Some(with),
            Self::Join { .. } | Self::Leave { .. } | Self::ForceRemove { .. } | Self::SetLocation { .. } => None,
        }
    }

    /// The location that the change says.
    pub const fn location(&self) -> Option<Location> {
        match *self {
            Self::SetLocation { location, .. } => Some(location),
            _ => None,
        }
    }

    /// Whether this change takes the place of an earlier one.
    fn replaces(&self, earlier: &Self) -> bool {
        self.node() == earlier.node() && self.location().is_some() == earlier.location().is_some()
    }

    /// Whether nobody gets the data of the node.
    pub const fn is_forced(&self) -> bool {
        matches!(self, Self::ForceRemove { .. } | Self::ForceReplace { .. })
    }
}

/// The staged changes, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct StagedChanges {
    changes: Vec<Change>,
}

/// The stored form. Format 2 may have locations. Without them format 1 is written, which earlier
/// versions read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: FormatUpTo<2>,
    changes: Vec<Change>,
}

impl From<StagedChanges> for Saved {
    fn from(StagedChanges { changes }: StagedChanges) -> Self {
        let has_locations = changes.iter().any(|change| change.location().is_some());
        Self { format: FormatUpTo(1 + u32::from(has_locations)), changes }
    }
}

impl From<Saved> for StagedChanges {
    fn from(Saved { changes, .. }: Saved) -> Self {
        Self { changes }
    }
}

impl StagedChanges {
    /// The changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The nodes that join.
    pub fn joiners(&self) -> impl Iterator<Item = NodeId> {
        self.changes.iter().filter(|change| matches!(change, Change::Join { .. })).map(Change::node)
    }

    /// Stages the join of a node.
    pub fn join(&mut self, view: &ClusterView<'_>, joiner: Joiner) -> Result<(), Refusal> {
        if joiner.ring_size != view.ring.size() {
            return Err(Refusal::OtherRingSize(joiner.node));
        }
        if !joiner.is_alone {
            return Err(Refusal::AlreadyInCluster);
        }
        self.stage(view, Change::Join { node: joiner.node })
    }

    /// Stages a change. It takes the place of an earlier change for the same node.
    pub fn stage(&mut self, view: &ClusterView<'_>, change: Change) -> Result<(), Refusal> {
        self.check(view, &change)?;
        let node = change.node();
        if matches!(change, Change::Join { .. }) && self.joins(node) {
            return Ok(());
        }
        if self.joins(node) && change.location().is_none() {
            // The node does not join after all, so there is nothing that it could leave. Changes
            // that needed its join go with it. The others keep their order.
            self.changes.retain(|staged| staged.node() != node);
            let valid = self.valid_in(view);
            self.changes.retain(|staged| valid.changes.contains(staged));
            return Ok(());
        }
        let has_earlier = self.changes.iter().any(|staged| change.replaces(staged));
        if !has_earlier && self.changes.len() >= CHANGES_MAX {
            return Err(Refusal::TooMany);
        }
        self.changes.retain(|staged| !change.replaces(staged));
        self.changes.push(change);
        Ok(())
    }

    /// Drops all staged changes.
    pub fn clear(&mut self) {
        self.changes.clear();
    }

    /// The changes that are still valid in this cluster. The cluster may have changed since they
    /// were staged.
    pub fn valid_in(&self, view: &ClusterView<'_>) -> Self {
        let mut valid = Self::default();
        // Joins come first, because others need them.
        let (joins, others): (Vec<Change>, _) =
            self.changes.iter().partition(|change| matches!(change, Change::Join { .. }));
        for change in joins.iter().chain(&others) {
            // A refused change is left out.
            let _ = valid.stage(view, *change);
        }
        valid
    }

    fn joins(&self, node: NodeId) -> bool {
        self.joiners().any(|joiner| joiner == node)
    }

    fn check(&self, view: &ClusterView<'_>, change: &Change) -> Result<(), Refusal> {
        let node = change.node();
        let status = view.members.get(&node).copied();
        if let Change::Join { .. } = change {
            return if status.is_some() { Err(Refusal::AlreadyInCluster) } else { Ok(()) };
        }
        if change.location().is_some() {
            return self.check_location(node, status.is_some());
        }
        if change.is_forced() && view.claimant == Some(node) {
            return Err(Refusal::IsClaimant(node));
        }
        let may_be_withdrawn = change.replacement().is_none() && self.joins(node);
        if status.is_none() && !may_be_withdrawn {
            return Err(Refusal::NotMember(node));
        }
        if change.replacement().is_none()
            && view.members.len() == 1
            && status.is_some()
            && self.joiners().next().is_none()
        {
            return Err(Refusal::OnlyMember(node));
        }
        match (change, status) {
            (Change::Leave { .. } | Change::Replace { .. }, Some(MemberStatus::Leaving | MemberStatus::Exiting)) => {
                return Err(Refusal::AlreadyLeaving(node));
            }
            (Change::Leave { .. }, Some(MemberStatus::Down)) => return Err(Refusal::DownCannotLeave(node)),
            _ => {}
        }
        let Some(with) = change.replacement() else { return Ok(()) };
        if self.changes.iter().any(|staged| staged.replacement() == Some(with) && staged.node() != node) {
            return Err(Refusal::AlreadyReplaces(with));
        }
        if self.joins(with) { Ok(()) } else { Err(Refusal::NoReplacement(with)) }
    }

    /// A replacement gets the partitions of the other node wherever it is. As in Riak, its location
    /// is set when it is a member, so that the plan of that shows what moves for it.
    fn check_location(&self, node: NodeId, is_member: bool) -> Result<(), Refusal> {
        if !is_member && !self.joins(node) {
            return Err(Refusal::NotMember(node));
        }
        match self.changes.iter().any(|staged| staged.replacement() == Some(node)) {
            true => Err(Refusal::IsReplacement(node)),
            false => Ok(()),
        }
    }
}
