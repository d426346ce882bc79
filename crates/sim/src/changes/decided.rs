//! What is decided about members and placement when engines are connected by single messages: a log
//! that is never lost, which each process follows with a delay.
//!
//! It stands for the metadata of `ombak_cluster`, which runs over streams alone. The goals come
//! from the same staged changes (`ombak_ring::staging`), and the steps from the same driver
//! (`ombak_ring::placement`).

use crate::world::HostId;
use ombak_ring::placement::{Placement, PlacementError, StepOf};
use ombak_ring::staging::{Change, ClusterView, Joiner, MemberStatus, Members, Refusal, StagedChanges, plan};
use ombak_ring::{Locations, RingVersion};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A state of the log.
#[derive(Clone, Debug)]
pub(crate) struct DecidedState {
    /// The number of the last entry.
    pub(crate) index: u64,
    pub(crate) placement: Arc<Placement>,
    pub(crate) members: Members,
    pub(crate) removed: BTreeSet<NodeId>,
    /// The members that a goal has made valid which not every member has confirmed, with the
    /// version of that goal. They stand in for nobody.
    pub(crate) new: BTreeMap<NodeId, RingVersion>,
}

/// Why staged changes cannot be decided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDecided {
    #[error("refused: {0:?}")]
    Refused(Refusal),
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

#[derive(Default)]
struct State {
    decided: Option<Arc<DecidedState>>,
    /// What the disk of each host has of the log.
    followed: BTreeMap<HostId, Arc<DecidedState>>,
}

/// The log. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Decided(Arc<Mutex<State>>);

impl Decided {
    /// The first state: all nodes of a ring are members.
    pub(crate) fn begin(&self, placement: Placement) {
        let members = placement.nodes().into_iter().map(|node| (node, MemberStatus::Valid)).collect();
        let placement = Arc::new(placement);
        let state = DecidedState { index: 1, placement, members, removed: BTreeSet::new(), new: BTreeMap::new() };
        self.0.lock().decided = Some(Arc::new(state));
    }

    /// The newest state; `None` before the first one.
    pub(crate) fn newest(&self) -> Option<Arc<DecidedState>> {
        self.0.lock().decided.clone()
    }

    /// The state that a host follows.
    pub(crate) fn followed_by(&self, host: HostId) -> Option<Arc<DecidedState>> {
        self.0.lock().followed.get(&host).cloned()
    }

    /// A host follows a state.
    pub(crate) fn follows(&self, host: HostId, state: Arc<DecidedState>) {
        self.0.lock().followed.insert(host, state);
    }

    fn change(&self, change: impl FnOnce(&mut DecidedState)) {
        let mut state = self.0.lock();
        let Some(mut next) = state.decided.as_deref().cloned() else { return };
        change(&mut next);
        next.index += 1;
        state.decided = Some(Arc::new(next));
    }

    /// Makes the ring of changes the goal of all homes.
    pub(crate) fn set_goal(&self, changes: &[Change], target_n_val: u32, ns: &BTreeSet<u32>) -> Result<(), NotDecided> {
        let Some(now) = self.newest() else { return Ok(()) };
        let locations = Locations::new();
        let view = ClusterView {
            ring: now.placement.goal(),
            members: &now.members,
            claimant: None,
            is_converged: true,
            target_n_val,
            target_location_n_val: target_n_val,
            locations: &locations,
        };
        let mut staged = StagedChanges::default();
        for change in changes {
            match *change {
                Change::Join { node } => {
                    let joiner = Joiner { node, ring_size: view.ring.size(), is_alone: true };
                    staged.join(&view, joiner).map(drop)
                }
                other => staged.stage(&view, other).map(drop),
            }
            .map_err(NotDecided::Refused)?;
        }
        let plan = plan(&view, &staged).map_err(NotDecided::Refused)?;
        let version = now.placement.version().next();
        let placement = now.placement.with_goal(Arc::new(plan.ring.with_version(version)), ns)?;
        let gone: Vec<NodeId> = now.members.keys().filter(|node| !plan.members.contains_key(node)).copied().collect();
        let new: Vec<NodeId> = plan.members.keys().filter(|node| !now.members.contains_key(node)).copied().collect();
        self.change(|state| {
            state.placement = Arc::new(placement);
            state.members = plan.members;
            state.removed.extend(gone);
            state.new.extend(new.into_iter().map(|node| (node, version)));
        });
        Ok(())
    }

    /// Homes take steps.
    pub(crate) fn take(&self, steps: &[StepOf]) {
        let Some(now) = self.newest() else { return };
        if let Some(next) = now.placement.after(steps) {
            self.change(|state| state.placement = Arc::new(next));
        }
    }

    /// Every member has confirmed a version.
    pub(crate) fn all_confirmed(&self, version: RingVersion) {
        let is_known = |state: &DecidedState| state.new.values().any(|goal| *goal <= version);
        if self.newest().is_some_and(|now| is_known(&now)) {
            self.change(|state| state.new.retain(|_, goal| *goal > version));
        }
    }

    /// A member gets another status.
    pub(crate) fn set_status(&self, node: NodeId, status: MemberStatus) {
        self.change(|state| {
            state.members.insert(node, status);
        });
    }

    /// A member goes.
    pub(crate) fn remove(&self, node: NodeId) {
        self.change(|state| {
            state.members.remove(&node);
            state.removed.insert(node);
        });
    }
}

impl DecidedState {
    /// Whether a member may be a fallback.
    pub(crate) fn may_stand_in(&self, node: NodeId) -> bool {
        self.members.get(&node) == Some(&MemberStatus::Valid) && !self.new.contains_key(&node)
    }
}
