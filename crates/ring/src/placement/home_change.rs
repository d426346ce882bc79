//! One home on its way from its old sets to its new ones, as the driver sees it.
//!
//! Invariants:
//! * A class goes on without the proof of a member that is marked as down only if another member of
//!   the old set has proved that was full when it began to prove. Otherwise the new set might be
//!   full and empty while the member that is down has everything.
//! * A class goes on without any proof only if all members of the old set were removed.
//! * A class finishes without a member of the new set that is not full only if that member leaves,
//!   cannot take copies, and another member of the new set is full.

use super::driver::{ProofOrder, Situation};
use super::home::Phase;
use super::obstacle::Obstacle;
use super::placement::Placement;
use crate::change_set::ReplicaSet;
use crate::ring::RingVersion;
use ombak_types::NodeId;
use std::collections::BTreeSet;

/// A home that does not have the goal yet.
#[derive(Clone, Debug)]
pub(super) struct HomeChange {
    pub(super) home: u32,
    pub(super) version: RingVersion,
    pub(super) phase: Phase,
    classes: Vec<ClassChange>,
}

/// The sets of one class. Before the begin, the new one is that of the goal.
#[derive(Clone, Debug)]
struct ClassChange {
    n: u32,
    old: ReplicaSet,
    new: ReplicaSet,
}

impl HomeChange {
    pub(super) fn of(placement: &Placement, number: u32, ns: &BTreeSet<u32>) -> Self {
        let home = placement.home(number);
        let sets_of = |n| match home.phase() {
            Phase::Settled => (home.replica_set(n), placement.goal().replica_set(number, n)),
            Phase::Pending => (home.replica_set(n), home.other_set(n)),
            Phase::Flipped => (home.other_set(n), home.replica_set(n)),
        };
        let class = |n: &u32| {
            let (old, new) = sets_of(*n);
            ClassChange { n: *n, old, new }
        };
        let classes = ns.iter().map(class).collect();
        Self { home: home.home(), version: home.version(), phase: home.phase(), classes }
    }

    /// The members of the old sets.
    pub(super) fn old_members(&self) -> BTreeSet<NodeId> {
        self.classes.iter().flat_map(|class| class.old.iter().copied()).collect()
    }

    fn new_members(&self) -> BTreeSet<NodeId> {
        self.classes.iter().flat_map(|class| class.new.iter().copied()).collect()
    }

    /// The members that are new in some class.
    pub(super) fn joining(&self) -> impl Iterator<Item = NodeId> {
        self.classes.iter().flat_map(|class| class.new.iter().copied().filter(|node| !class.old.contains(node)))
    }

    /// Everybody whose word the home needs. Before the flip a new member is not excepted: it has to
    /// take the data.
    fn needed(&self, situation: &Situation<'_>) -> BTreeSet<NodeId> {
        let mut needed = &self.old_members() | &self.new_members();
        needed.retain(|node| !situation.is_excepted(*node));
        if self.phase != Phase::Flipped {
            needed.extend(self.joining());
        }
        needed
    }

    /// Whether the home waits for a member that has been silent for long.
    pub(super) fn waits_for_silent(&self, situation: &Situation<'_>) -> bool {
        self.needed(situation).into_iter().any(|node| situation.is_silent(node))
    }

    /// Why a settled home cannot begin. It would only wait, and cost each put a second quorum.
    pub(super) fn obstacles_to_begin(&self, situation: &Situation<'_>) -> BTreeSet<Obstacle> {
        let down = self.needed(situation).into_iter().filter(|node| !situation.is_up(*node));
        let mut found: BTreeSet<Obstacle> = down.map(Obstacle::Silent).collect();
        let unable = self.joining().filter(|node| situation.takes_no_copies(*node));
        found.extend(unable.map(Obstacle::TakesNoCopies));
        for class in &self.classes {
            if class.old.iter().all(|node| situation.is_excepted(*node)) {
                found.extend(class.needs_down(self, situation));
            }
        }
        found
    }

    /// Who has not confirmed the last step.
    pub(super) fn unconfirmed(&self, situation: &Situation<'_>) -> BTreeSet<Obstacle> {
        let needed = self.needed(situation).into_iter();
        let behind = needed.filter(|node| !situation.has_confirmed(*node, self.version));
        behind.map(|node| waits_to_confirm(situation, node)).collect()
    }

    /// Why a flipped home cannot finish. A member of the new set that has lost its store since the
    /// flip fills from the old set, too, as long as the home has not finished. A leaver that can
    /// take nothing would never be full, so a class goes on without it if another member is.
    pub(super) fn obstacles_to_finish(&self, situation: &Situation<'_>) -> BTreeSet<Obstacle> {
        let mut found = self.unconfirmed(situation);
        for class in &self.classes {
            let lacking = class.new.iter().filter(|node| situation.lacks(**node, self.home, class.n));
            let needed =
                lacking.filter(|node| !situation.is_excepted(**node) && !class.can_spare(self, situation, **node));
            found.extend(needed.map(|node| waits_for(situation, *node, Obstacle::NotFull)));
        }
        found
    }

    /// What the members of the old sets are to prove.
    pub(super) fn orders(&self, situation: &Situation<'_>) -> impl Iterator<Item = (NodeId, ProofOrder)> {
        let needed = self.needed(situation);
        let new = &self.new_members() & &needed;
        let provers = &self.old_members() & &needed;
        let (home, begun) = (self.home, self.version.number);
        provers.into_iter().map(move |prover| {
            let to = new.iter().copied().filter(|node| *node != prover).collect();
            (prover, ProofOrder { home, begun, to })
        })
    }

    fn has_proved(&self, situation: &Situation<'_>, node: NodeId) -> bool {
        situation.proof(node, self.home, self.version.number).is_some()
    }

    /// Why a home that everybody has confirmed cannot flip.
    pub(super) fn obstacles_to_flip(&self, situation: &Situation<'_>) -> BTreeSet<Obstacle> {
        let needed = self.needed(situation);
        let mut found = BTreeSet::new();
        for class in &self.classes {
            let unproved = class.old.iter().filter(|node| needed.contains(node) && !self.has_proved(situation, **node));
            let unproved: Vec<_> = unproved.map(|node| waits_for(situation, *node, Obstacle::Unproved)).collect();
            if unproved.is_empty() && !class.has_full_proof(situation, self) {
                found.extend(class.needs_down(self, situation));
            }
            found.extend(unproved);
            for node in class.new.iter().filter(|node| needed.contains(node)) {
                if !situation.is_up(*node) {
                    found.insert(Obstacle::Silent(*node));
                } else if situation.lacks(*node, self.home, class.n) {
                    found.insert(Obstacle::NotFull(*node));
                }
            }
        }
        found
    }
}

impl ClassChange {
    /// Whether a member of the old set has proved that was full when it began to prove.
    fn has_full_proof(&self, situation: &Situation<'_>, change: &HomeChange) -> bool {
        let mut proofs = self.old.iter().filter_map(|node| situation.proof(*node, change.home, change.version.number));
        proofs.any(|proof| proof.full.contains(&self.n))
    }

    /// Whether a member of the new set leaves and cannot take what it lacks, and another member of
    /// that set is full. The goal was set after the home had flipped to that member.
    fn can_spare(&self, change: &HomeChange, situation: &Situation<'_>, node: NodeId) -> bool {
        let is_full =
            |other: &NodeId| *other != node && situation.is_up(*other) && !situation.lacks(*other, change.home, self.n);
        situation.leaves(node) && situation.takes_no_copies(node) && self.new.iter().any(is_full)
    }

    /// The members that are marked as down and have not proved: the class waits for one of them if
    /// nobody else has everything.
    fn needs_down(&self, change: &HomeChange, situation: &Situation<'_>) -> BTreeSet<Obstacle> {
        let is_down = |node: &NodeId| situation.is_excepted(*node) && !situation.is_removed(*node);
        let down = self.old.iter().copied().filter(is_down);
        let unproved = down.filter(|node| !change.has_proved(situation, *node));
        unproved.map(|node| Obstacle::NeedsDown { node, n: self.n }).collect()
    }
}

/// The obstacle of a home that waits for a member to confirm a step. What has to be noted on a disk
/// before that is the likely cause where the disk is full.
pub(super) fn waits_to_confirm(situation: &Situation<'_>, node: NodeId) -> Obstacle {
    let is_unable = situation.takes_no_copies(node);
    waits_for(situation, node, if is_unable { Obstacle::CannotNote } else { Obstacle::Unconfirmed })
}

/// A member that does not report has to answer first, whatever else the home waits for.
pub(super) fn waits_for(situation: &Situation<'_>, node: NodeId, what: fn(NodeId) -> Obstacle) -> Obstacle {
    if situation.is_up(node) { what(node) } else { Obstacle::Silent(node) }
}
