//! The ring that staged changes would make, and the commit of exactly that ring.

use super::change::{Change, StagedChanges};
use super::format::FormatUpTo;
use super::refusal::Refusal;
use super::view::{ClusterView, MemberStatus, Members};
use crate::claim::{Claim, Spacing};
use crate::location::Locations;
use crate::ring::{Ring, RingVersion};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What staged changes would make of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Format 2 may have locations. Without them format 1 is written, which earlier versions read.
    format: FormatUpTo<2>,
    basis: Basis,
    /// The ring after the changes.
    pub ring: Ring,
    /// The members after the changes. A member that hands over its partitions is leaving.
    pub members: Members,
    /// The locations of these members.
    #[serde(default, skip_serializing_if = "Locations::is_empty")]
    pub locations: Locations,
    /// The share of each member, of those that leave and of those that join.
    pub shares: Vec<Share>,
    /// The partitions that one node hands over to another.
    pub transfers: Vec<Transfer>,
    /// The partitions that get another owner without a transfer, because the owner is removed by
    /// force.
    pub reassigned: Vec<Transfer>,
    /// What the operator should know before the commit.
    pub warnings: Vec<Warning>,
}

/// The facts that a plan was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Basis {
    ring: RingVersion,
    members: Members,
    changes: Vec<Change>,
    target_n_val: u32,
    #[serde(default, skip_serializing_if = "Locations::is_empty")]
    locations: Locations,
    /// `None` when no location is known, before the changes and after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_location_n_val: Option<u32>,
}

/// The share that a node has in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The node.
    pub node: NodeId,
    /// Its status before the changes.
    pub status: MemberStatus,
    /// The number of partitions that it owns before.
    pub partitions_before: u32,
    /// The number of partitions that it owns afterwards.
    pub partitions_after: u32,
}

/// Partitions that one node loses to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The owner before.
    pub from: NodeId,
    /// The owner afterwards.
    pub to: NodeId,
    /// The number of partitions.
    pub partitions: u32,
}

/// What the operator should know before a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// The member is removed by force: what only it holds is lost.
    ReplicasLost(NodeId),
    /// The spacing does not reach `target_n_val`.
    Spacing {
        /// Each window of so many successive partitions should have distinct owners.
        target: u32,
        /// Each window of so many successive partitions has.
        reached: u32,
    },
    /// The spacing of locations does not reach `target_location_n_val`.
    LocationSpacing {
        /// Each window of so many successive partitions should have distinct locations.
        target: u32,
        /// Each window of so many successive partitions has.
        reached: u32,
    },
}

/// Why a commit is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitRefusal<E> {
    /// No plan was shown.
    NotPlanned,
    /// Other changes are staged than those that were shown, or the cluster has changed.
    PlanChanged,
    /// The precondition of the caller does not hold.
    Precondition(E),
}

impl<E> CommitRefusal<E> {
    /// Riak's words, or those of the precondition (docs/riak/semantics.md §16).
    pub fn text(&self, of_precondition: impl FnOnce(&E) -> String) -> String {
        match self {
            Self::NotPlanned => "You must verify the plan with 'ombak admin cluster plan' before committing".into(),
            Self::PlanChanged => {
                "The plan has changed. Verify with 'ombak admin cluster plan' before committing.".into()
            }
            Self::Precondition(error) => of_precondition(error),
        }
    }
}

impl Warning {
    /// Riak's words (docs/riak/semantics.md §16).
    pub fn text(&self, name_of: impl Fn(NodeId) -> String) -> String {
        match *self {
            Self::ReplicasLost(node) => format!("WARNING: All of '{}' replicas will be lost", name_of(node)),
            Self::Spacing { .. } => "WARNING: Not all replicas will be on distinct nodes".into(),
            Self::LocationSpacing { .. } => "WARNING: Not all replicas will be on distinct locations".into(),
        }
    }
}

impl Plan {
    /// The changes that the plan makes.
    pub fn changes(&self) -> &[Change] {
        &self.basis.changes
    }

    /// The version of the ring that the plan changes.
    pub fn ring_before(&self) -> RingVersion {
        self.basis.ring
    }

    /// Whether the plan was made of these changes in this cluster, so that it may still be carried
    /// out.
    pub fn is_of(&self, view: &ClusterView<'_>, staged: &StagedChanges) -> bool {
        self.basis == Basis::of(view, &staged.valid_in(view))
    }
}

impl Basis {
    fn of(view: &ClusterView<'_>, staged: &StagedChanges) -> Self {
        let knows_locations =
            !view.locations.is_empty() || staged.changes().iter().any(|change| change.location().is_some());
        Self {
            ring: view.ring.version(),
            members: view.members.clone(),
            changes: staged.changes().to_vec(),
            target_n_val: view.target_n_val,
            locations: view.locations.clone(),
            target_location_n_val: knows_locations.then_some(view.target_location_n_val),
        }
    }
}

/// Plans the staged changes, as far as they are still valid.
pub fn plan(view: &ClusterView<'_>, staged: &StagedChanges) -> Result<Plan, Refusal> {
    let staged = staged.valid_in(view);
    if staged.changes().is_empty() {
        return Err(Refusal::NothingStaged);
    }
    if !view.is_converged {
        return Err(Refusal::NotConverged);
    }
    let changes = staged.changes();
    let locations = locations_after(view, changes);
    let owners = owners_after(view, changes, &locations)?;
    // The claim gives a ring as many owners as the ring before has, and that is a valid size.
    let ring = Ring::from_owners(&owners, view.ring.version().next()).map_err(|_| Refusal::NobodyLeft)?;
    let (transfers, reassigned) = transfers(view.ring, &owners, changes);
    let basis = Basis::of(view, &staged);
    Ok(Plan {
        format: FormatUpTo(1 + u32::from(basis.target_location_n_val.is_some())),
        shares: shares(view, &staged, &ring),
        members: members_after(view.members, changes),
        warnings: warnings(&owners, view, &locations, changes),
        basis,
        locations,
        ring,
        transfers,
        reassigned,
    })
}

/// Allows to carry out the plan that was shown, if it is still what the staged changes make of the
/// cluster, and if the precondition holds of it. Carrying it out means: its ring is in force, its
/// members are the members, and nothing is staged.
pub fn commit<'a, E>(
    view: &ClusterView<'_>,
    staged: &StagedChanges,
    shown: Option<&'a Plan>,
    precondition: impl FnOnce(&Plan) -> Result<(), E>,
) -> Result<&'a Plan, CommitRefusal<E>> {
    let shown = shown.ok_or(CommitRefusal::NotPlanned)?;
    if !view.is_converged || !shown.is_of(view, staged) {
        return Err(CommitRefusal::PlanChanged);
    }
    precondition(shown).map_err(CommitRefusal::Precondition)?;
    Ok(shown)
}

fn members_after(members: &Members, changes: &[Change]) -> Members {
    let mut after = members.clone();
    for change in changes {
        match *change {
            Change::Join { node } => after.insert(node, MemberStatus::Valid),
            Change::Leave { node } | Change::Replace { node, .. } => after.insert(node, MemberStatus::Leaving),
            Change::ForceRemove { node } | Change::ForceReplace { node, .. } => after.remove(&node),
            Change::SetLocation { .. } => None,
        };
    }
    after
}

fn locations_after(view: &ClusterView<'_>, changes: &[Change]) -> Locations {
    let members = members_after(view.members, changes);
    let mut after = view.locations.clone();
    after.extend(changes.iter().filter_map(|change| Some((change.node(), change.location()?))));
    after.retain(|node, _| members.contains_key(node));
    after
}

fn owners_after(view: &ClusterView<'_>, changes: &[Change], locations: &Locations) -> Result<Vec<NodeId>, Refusal> {
    let replacements: BTreeMap<NodeId, NodeId> =
        changes.iter().filter_map(|change| Some((change.node(), change.replacement()?))).collect();
    let removed = |node: NodeId| changes.contains(&Change::ForceRemove { node });
    let present: Vec<Option<NodeId>> = view
        .ring
        .owners()
        .map(|owner| if removed(owner) { None } else { Some(*replacements.get(&owner).unwrap_or(&owner)) })
        .collect();
    let after = members_after(view.members, changes);
    let owners: BTreeSet<NodeId> = after.iter().filter(|(_, status)| status.may_own()).map(|(node, _)| *node).collect();
    let replaces = |node: NodeId| replacements.values().any(|with| *with == node);
    let is_swap =
        |change: &Change| change.location().is_none() && (change.replacement().is_some() || replaces(change.node()));
    // Replacements alone move nothing but what the replaced members own.
    if changes.iter().all(is_swap) {
        return present.into_iter().collect::<Option<_>>().ok_or(Refusal::NobodyLeft);
    }
    Claim::of_located(&present, &owners, view.targets(locations)).map(|claim| claim.owners).ok_or(Refusal::NobodyLeft)
}

/// The partitions that are handed over, and those whose owner is removed by force.
fn transfers(before: &Ring, after: &[NodeId], changes: &[Change]) -> (Vec<Transfer>, Vec<Transfer>) {
    let mut counts: BTreeMap<(bool, NodeId, NodeId), u32> = BTreeMap::new();
    for (from, to) in before.owners().zip(after.iter().copied()).filter(|(from, to)| from != to) {
        let forced = changes.iter().any(|change| change.is_forced() && change.node() == from);
        *counts.entry((forced, from, to)).or_default() += 1;
    }
    let of = |wanted: bool| {
        let of_kind = counts.iter().filter(|((forced, ..), _)| *forced == wanted);
        of_kind.map(|((_, from, to), partitions)| Transfer { from: *from, to: *to, partitions: *partitions }).collect()
    };
    (of(false), of(true))
}

fn shares(view: &ClusterView<'_>, staged: &StagedChanges, after: &Ring) -> Vec<Share> {
    let owned = |ring: &Ring, node| ring.node(node).map_or(0, |node| ring.partitions_owned(node) as u32);
    let joiners = staged.joiners().map(|node| (node, MemberStatus::Joining));
    let nodes: Members = view.members.iter().map(|(node, status)| (*node, *status)).chain(joiners).collect();
    let share = |(node, status)| Share {
        node,
        status,
        partitions_before: owned(view.ring, node),
        partitions_after: owned(after, node),
    };
    nodes.into_iter().map(share).collect()
}

fn warnings(owners: &[NodeId], view: &ClusterView<'_>, locations: &Locations, changes: &[Change]) -> Vec<Warning> {
    let lost = changes.iter().filter(|change| change.is_forced()).map(|change| Warning::ReplicasLost(change.node()));
    let of_nodes = Some(Spacing::of(owners, view.target_n_val)).filter(|spacing| !spacing.is_met());
    let of_locations = Spacing::of_locations(owners, view.targets(locations)).filter(|spacing| !spacing.is_met());
    lost.chain(of_nodes.map(|Spacing { target, reached }| Warning::Spacing { target, reached }))
        .chain(of_locations.map(|Spacing { target, reached }| Warning::LocationSpacing { target, reached }))
        .collect()
}
