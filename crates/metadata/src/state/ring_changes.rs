//! The commands that change which nodes hold the homes.

use super::command::{NewGoal, Refusal};
use super::metadata::Metadata;
use super::records::{Member, MemberStatus};
use imbl::OrdMap;
use ombak_ring::placement::{Placement, StepOf};
use ombak_ring::{Location, Ring, RingVersion};
use ombak_types::NodeId;
use std::sync::Arc;

/// What a new ring changes about members.
pub(super) struct MemberChanges {
    pub statuses: Vec<(NodeId, MemberStatus)>,
    pub locations: Vec<(NodeId, Location)>,
}

impl MemberChanges {
    fn apply(self, members: &mut OrdMap<NodeId, Member>) -> Result<(), Refusal> {
        for (node, status) in self.statuses {
            members.get_mut(&node).ok_or(Refusal::NoSuchMember(node))?.status = status;
        }
        for (node, location) in self.locations {
            members.get_mut(&node).ok_or(Refusal::NoSuchMember(node))?.location = Some(location);
        }
        Ok(())
    }
}

impl Metadata {
    pub(super) fn commit_ring(
        &mut self,
        index: u64,
        expected: RingVersion,
        staged: u64,
        ring: Ring,
        changes: MemberChanges,
    ) -> Result<(), Refusal> {
        let placement = self.placement.as_ref().ok_or(Refusal::NotFounded)?;
        if self.staged_version != staged || placement.version() != expected {
            return Err(Refusal::Changed);
        }
        if !placement.is_settled() {
            return Err(Refusal::RingChanges);
        }
        if ring.version() != expected.next() {
            return Err(Refusal::NotNextRing(ring.version()));
        }
        let mut members = self.members.clone();
        changes.apply(&mut members)?;
        let can_own = |node| members.get(&node).is_some_and(|member: &Member| member.status != MemberStatus::Joining);
        if let Some((_, node)) = ring.nodes().find(|(_, node)| !can_own(*node)) {
            return Err(Refusal::CannotOwn(node));
        }
        self.members = members;
        self.placement = Some(Arc::new(Placement::of_ring(Arc::new(ring))));
        self.staged = Arc::default();
        self.staged_version = index;
        Ok(())
    }

    pub(super) fn set_goal(&mut self, index: u64, goal: NewGoal) -> Result<(), Refusal> {
        let NewGoal { expected, staged, ring, statuses, removed, ns, locations } = goal;
        let placement = self.placement.as_ref().ok_or(Refusal::NotFounded)?;
        if self.staged_version != staged || placement.goal().version() != expected {
            return Err(Refusal::Changed);
        }
        let mut next = self.clone();
        MemberChanges { statuses, locations }.apply(&mut next.members)?;
        for node in removed {
            let member = next.members.remove(&node).ok_or(Refusal::NoSuchMember(node))?;
            next.removed.insert(node);
            next.used_logs.insert(member.log);
        }
        let may_own = |status| matches!(status, MemberStatus::Valid | MemberStatus::Down);
        let can_own = |node: NodeId| next.members.get(&node).is_some_and(|member| may_own(member.status));
        if let Some((_, node)) = ring.nodes().find(|(_, node)| !can_own(*node)) {
            return Err(Refusal::CannotOwn(node));
        }
        let ring = Arc::new(ring.with_version(placement.version().next()));
        let ns = self.n_vals().chain(ns).collect();
        let placement = placement.with_goal(ring, &ns).map_err(|why| Refusal::NoGoal(why.to_string()))?;
        next.placement = Some(Arc::new(placement));
        next.staged = Arc::default();
        next.staged_version = index;
        *self = next;
        Ok(())
    }

    /// The n of the types and buckets that have one of their own.
    fn n_vals(&self) -> impl Iterator<Item = u32> + '_ {
        let maps = self.types.values().map(|record| &record.overrides);
        let maps = maps.chain(self.buckets.values().map(|record| &record.overrides));
        maps.filter_map(|overrides| u32::try_from(overrides.get("n_val")?.as_u64()?).ok())
    }

    pub(super) fn take_steps(&mut self, steps: &[StepOf]) -> Result<(), Refusal> {
        let placement = self.placement.as_ref().ok_or(Refusal::NotFounded)?;
        self.placement = Some(Arc::new(placement.after(steps).ok_or(Refusal::Changed)?));
        Ok(())
    }
}
