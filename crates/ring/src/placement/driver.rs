//! The rules of the driver of a ring change (docs/design/ring-changes.md): which steps the homes
//! take next, and who is to prove what.
//!
//! What it is: a function of the metadata and of what the members said last. It remembers nothing,
//! so a new leader goes on where the last one stopped as soon as the members have reported to it.
//!
//! What it is not: it asks nobody and proposes nothing. The caller does, each half second or soon
//! after something has changed.
//!
//! Invariants:
//! * The first step after a goal was set is taken only when every member has confirmed the goal.
//! * A home flips only when every member of both sets has confirmed the begin, every member of the
//!   old set has proved, and every member of the new set is up and would be full. Members that were
//!   removed or marked as down are excepted, as [`Situation::is_excepted`] and the class-wise rule
//!   in [`super::home_change`] say.
//! * A home finishes only when every member of both sets has confirmed the flip, and every member
//!   of the new set is full, with the same exception, and that of a leaver that takes no copies.
//! * Without reports no step is taken that needs one.

use super::home::Phase;
use super::home_change::{HomeChange, waits_to_confirm};
use super::obstacle::Obstacle;
use super::placement::{Placement, Step, StepOf};
use super::report::{ProvedHome, Report};
use crate::ring::RingVersion;
use crate::staging::{MemberStatus, Members};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A member is up if its last report is at most this old. Members report twice a second.
pub const UP_WITHIN: Duration = Duration::from_secs(10);

/// A pending home is aborted when a member that is new in it has been silent for so long. Until
/// then its puts with `pw` may fail. It is aborted at once if that member cannot take copies.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// At least so many homes may be under way at a time, however small the ring is.
const UNDER_WAY_MIN: usize = 8;

/// What the driver knows.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The placement, as the metadata has it.
    pub placement: &'a Placement,
    /// The members, as the metadata has them. Who is not among them was removed.
    pub members: &'a Members,
    /// The n of all buckets.
    pub ns: &'a BTreeSet<u32>,
    /// What the members said last to this leader.
    pub heard: &'a BTreeMap<NodeId, Heard>,
}

/// What a member said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its last report. `None` if there was none since the leader became the leader.
    pub report: Option<Report>,
    /// How long ago that was; without a report, how long the leader has been the leader.
    pub silent_for: Duration,
}

/// What the driver decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The steps to propose now.
    pub steps: Vec<StepOf>,
    /// What each member of an old set is to prove. An order stands until the home flips, also when
    /// the member has proved the home.
    pub proofs: BTreeMap<NodeId, Vec<ProofOrder>>,
    /// Why homes do not go on, each with the homes, in order.
    pub obstacles: BTreeMap<Obstacle, Vec<u32>>,
    /// The number of homes that could begin, and wait for their turn.
    pub queued: usize,
}

/// The order to prove a home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofOrder {
    /// The home partition.
    pub home: u32,
    /// The number of the home version of the begin.
    pub begun: u64,
    /// The members of the new set that have to be shown to hold everything.
    pub to: BTreeSet<NodeId>,
}

impl Situation<'_> {
    /// Decides what happens next.
    pub fn decide(&self) -> Decision {
        let mut decision = Decision::default();
        let unaware = self.unaware_of_goal();
        let mut under_way = 0;
        let mut ready = Vec::new();
        for number in (0..self.placement.size().get()).filter(|home| !self.placement.has_goal(*home)) {
            let change = HomeChange::of(self.placement, number, self.ns);
            // Who waits for a silent member moves nothing, and must not keep others waiting.
            under_way += usize::from(change.phase != Phase::Settled && !change.waits_for_silent(self));
            match change.phase {
                Phase::Settled => match change.obstacles_to_begin(self) {
                    found if found.is_empty() => ready.push(change),
                    found => decision.note(number, found),
                },
                Phase::Pending => self.decide_pending(&change, &mut decision),
                Phase::Flipped => match change.obstacles_to_finish(self) {
                    found if !found.is_empty() => decision.note(number, found),
                    _ if !unaware.is_empty() => decision.note(number, unaware.clone()),
                    _ => decision.take(&change, Step::Finish),
                },
            }
        }
        if unaware.is_empty() {
            self.begin(ready, under_way, &mut decision);
        } else {
            ready.iter().for_each(|change| decision.note(change.home, unaware.clone()));
        }
        decision
    }

    /// The members that have not confirmed the goal, before the first step. From then on nodes that
    /// are new in the goal may be fallbacks, and every member has to know them. The first step may
    /// be the finish of a home that had flipped towards an earlier goal.
    fn unaware_of_goal(&self) -> BTreeSet<Obstacle> {
        if self.placement.has_taken_a_step() {
            return BTreeSet::new();
        }
        let goal = self.placement.goal().version();
        let awaited = self.members.keys().copied().filter(|node| !self.is_excepted(*node));
        let unaware = awaited.filter(|node| !self.has_confirmed(*node, goal));
        unaware.map(|node| waits_to_confirm(self, node)).collect()
    }

    fn decide_pending(&self, change: &HomeChange, decision: &mut Decision) {
        if change.joining().any(|node| self.is_silent(node) || self.takes_no_copies(node)) {
            return decision.take(change, Step::Abort);
        }
        let unconfirmed = change.unconfirmed(self);
        if !unconfirmed.is_empty() {
            return decision.note(change.home, unconfirmed);
        }
        for (node, order) in change.orders(self) {
            decision.proofs.entry(node).or_default().push(order);
        }
        match change.obstacles_to_flip(self) {
            found if found.is_empty() => decision.take(change, Step::Flip),
            found => decision.note(change.home, found),
        }
    }

    /// Homes of members that leave or are gone come first.
    fn begin(&self, mut ready: Vec<HomeChange>, under_way: usize, decision: &mut Decision) {
        let under_way_max = (self.placement.size().get() as usize / 8).max(UNDER_WAY_MIN);
        let goes = |node: &NodeId| self.is_removed(*node) || self.leaves(*node);
        ready.sort_by_cached_key(|change| Reverse(change.old_members().iter().filter(|node| goes(node)).count()));
        let turn = ready.len().min(under_way_max.saturating_sub(under_way));
        ready[..turn].iter().for_each(|change| decision.take(change, Step::Begin));
        decision.queued = ready.len() - turn;
    }

    /// Whether the node is no member any more.
    pub(super) fn is_removed(&self, node: NodeId) -> bool {
        !self.members.contains_key(&node)
    }

    /// Whether the member leaves.
    pub(super) fn leaves(&self, node: NodeId) -> bool {
        matches!(self.members.get(&node), Some(MemberStatus::Leaving | MemberStatus::Exiting))
    }

    /// Whether the member reports.
    pub(super) fn is_up(&self, node: NodeId) -> bool {
        self.report(node).is_some() && self.heard.get(&node).is_some_and(|heard| heard.silent_for <= UP_WITHIN)
    }

    /// Whether the member has been silent for so long that nobody waits for it.
    pub(super) fn is_silent(&self, node: NodeId) -> bool {
        self.is_removed(node) || self.heard.get(&node).is_some_and(|heard| heard.silent_for >= SILENCE_MAX)
    }

    /// Whether the change goes on without the node: it was removed, or the operator marked it as
    /// down. A member that reports is not down, whatever it was marked as.
    pub(super) fn is_excepted(&self, node: NodeId) -> bool {
        self.is_removed(node) || (self.members.get(&node) == Some(&MemberStatus::Down) && !self.is_up(node))
    }

    /// Whether a member says that it cannot take copies.
    pub(super) fn takes_no_copies(&self, node: NodeId) -> bool {
        self.report(node).is_some_and(|report| report.takes_no_copies)
    }

    /// Whether a member has confirmed a version. It never takes that back, so an old report will
    /// do.
    pub(super) fn has_confirmed(&self, node: NodeId, version: RingVersion) -> bool {
        self.report(node).is_some_and(|report| report.confirmed >= version)
    }

    /// The proof of a home by a member in the attempt that has begun with this version.
    pub(super) fn proof(&self, node: NodeId, home: u32, begun: u64) -> Option<&ProvedHome> {
        self.report(node)?.proved.iter().find(|proved| (proved.home, proved.begun) == (home, begun))
    }

    /// Whether a member says that it would not be full in this class.
    pub(super) fn lacks(&self, node: NodeId, home: u32, n: u32) -> bool {
        let lacking = self.report(node).map_or(&[][..], |report| &report.lacking);
        lacking.iter().any(|lacking| lacking.home == home && lacking.ns.contains(&n))
    }

    fn report(&self, node: NodeId) -> Option<&Report> {
        self.members.get(&node)?;
        self.heard.get(&node)?.report.as_ref()
    }
}

impl Decision {
    fn take(&mut self, change: &HomeChange, step: Step) {
        self.steps.push(StepOf { home: change.home, seen: change.version.number, step });
    }

    fn note(&mut self, home: u32, found: BTreeSet<Obstacle>) {
        for obstacle in found {
            self.obstacles.entry(obstacle).or_default().push(home);
        }
    }
}
