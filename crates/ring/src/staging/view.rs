//! The cluster as a staged change finds it.

use super::refusal::Refusal;
use crate::claim::Targets;
use crate::location::Locations;
use crate::ring::Ring;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The state of a member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// The node asked to join, and no commit has accepted it yet. It is not among the [`Members`].
    Joining,
    /// The node owns partitions, or may own some.
    Valid,
    /// The node hands over what it owns.
    Leaving,
    /// The node owns nothing any more and is about to stop.
    Exiting,
    /// The operator said that the node is down. It still owns its partitions.
    Down,
}

impl MemberStatus {
    /// Whether partitions may be claimed for such a member.
    pub const fn may_own(self) -> bool {
        matches!(self, Self::Valid | Self::Down)
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Joining => "joining",
            Self::Valid => "valid",
            Self::Leaving => "leaving",
            Self::Exiting => "exiting",
            Self::Down => "down",
        })
    }
}

/// The members of a cluster.
pub type Members = BTreeMap<NodeId, MemberStatus>;

/// The cluster as a staged change finds it.
#[derive(Clone, Copy, Debug)]
pub struct ClusterView<'a> {
    /// The ring in force.
    pub ring: &'a Ring,
    /// The members.
    pub members: &'a Members,
    /// The node that must not be removed by force because it carries out the changes; `None` when
    /// any node may be.
    pub claimant: Option<NodeId>,
    /// Whether every member that is not down knows the ring in force.
    pub is_converged: bool,
    /// Each window of so many successive partitions shall have distinct owners.
    pub target_n_val: u32,
    /// Each window of so many successive partitions shall have distinct locations, if any location
    /// is known.
    pub target_location_n_val: u32,
    /// The locations of the members.
    pub locations: &'a Locations,
}

impl ClusterView<'_> {
    /// What a claim should reach when nodes are at these locations.
    pub(super) const fn targets<'a>(&self, locations: &'a Locations) -> Targets<'a> {
        Targets { n_val: self.target_n_val, location_n_val: self.target_location_n_val, locations }
    }
}

/// Marks a member as down, so that the cluster changes without it. Returns the new members.
pub fn mark_down(members: &Members, node: NodeId, is_up: bool) -> Result<Members, Refusal> {
    if !members.contains_key(&node) {
        return Err(Refusal::NotMember(node));
    }
    if members.len() == 1 {
        return Err(Refusal::OnlyMember(node));
    }
    if is_up {
        return Err(Refusal::IsUp(node));
    }
    let mut members = members.clone();
    members.insert(node, MemberStatus::Down);
    Ok(members)
}
