//! The placement, and how it changes.

use super::home::{HomePlacement, Phase};
use super::saved::Saved;
use crate::partition::RingSize;
use crate::ring::{Ring, RingVersion};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// So many rings can be in use at a time: the one before the change, the goal, and goals that were
/// replaced while homes were on their way to them.
pub(super) const RINGS_MAX: usize = 4;

/// Which nodes hold each home partition. A clone shares the rings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Placement {
    pub(super) version: RingVersion,
    /// The goal comes first. All have the same size.
    pub(super) rings: Vec<Arc<Ring>>,
    pub(super) homes: Arc<[Home]>,
}

/// One home; rings are places in the list of rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// The number of the version at which the home changed last.
    pub(super) changed: u64,
    pub(super) in_force: u8,
    pub(super) other: Option<u8>,
    pub(super) phase: Phase,
}

/// What happens to a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A settled home is to get the goal: from now on puts count in both sets.
    Begin,
    /// The goal is in force: from now on gets count in the new set.
    Flip,
    /// Puts count in the new set alone.
    Finish,
    /// A pending home stays with the ring in force.
    Abort,
}

/// A step of one home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepOf {
    /// The home partition.
    pub home: u32,
    /// The number of the home's version that the step was decided from. If it is another one by
    /// now, the step has no effect.
    pub seen: u64,
    /// The step.
    pub step: Step,
}

/// Why a placement is invalid, or cannot change like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The rings have different sizes.
    #[error("the ring has {found} partitions, and the cluster has {expected}")]
    OtherSize {
        /// The number of partitions of the new ring.
        found: u32,
        /// The number of partitions of the cluster.
        expected: u32,
    },
    /// Too many earlier changes have not ended.
    #[error("earlier changes of the ring have not ended; wait for them, and try again")]
    TooManyRings,
    /// The version of the ring does not follow the version of the placement.
    #[error("the ring has version {found}, and the next one is {expected}")]
    NotNext {
        /// The version of the new ring.
        found: RingVersion,
        /// The version that follows.
        expected: RingVersion,
    },
    /// A saved placement is damaged.
    #[error("the saved placement is damaged: {0}")]
    Damaged(&'static str),
    /// A later version of the program saved the placement.
    #[error("the placement was saved in format {found}; this version reads format {known}")]
    Format {
        /// The format that was found.
        found: u32,
        /// The format that this version reads.
        known: u32,
    },
}

impl Placement {
    /// All homes settled with one ring.
    pub fn of_ring(ring: Arc<Ring>) -> Self {
        let version = ring.version();
        let home = Home { changed: version.number, in_force: 0, other: None, phase: Phase::Settled };
        Self { version, homes: vec![home; ring.size().get() as usize].into(), rings: vec![ring] }
    }

    /// The version of the placement.
    pub const fn version(&self) -> RingVersion {
        self.version
    }

    /// The number of home partitions.
    pub fn size(&self) -> RingSize {
        self.goal().size()
    }

    /// The ring that all homes get, or have.
    pub fn goal(&self) -> &Arc<Ring> {
        &self.rings[0]
    }

    /// All rings in use, the goal first.
    pub fn rings(&self) -> &[Arc<Ring>] {
        &self.rings
    }

    /// One home. Numbers beyond the number of homes wrap around.
    pub fn home(&self, home: u32) -> HomePlacement<'_> {
        let home = home % self.size().get();
        let Home { changed, in_force, other, phase } = self.homes[home as usize];
        let ring = |place: u8| &self.rings[usize::from(place)];
        let version = RingVersion { lineage: self.version.lineage, number: changed };
        let before_goal = if self.has_taken_a_step() { &[] } else { &self.rings[1..] };
        HomePlacement { home, version, phase, in_force: ring(in_force), other: other.map(ring), before_goal }
    }

    /// Whether a home has taken a step since the goal was set. The first one is taken when all
    /// members have confirmed the goal. If all homes got the goal at once, there is no other ring.
    pub fn has_taken_a_step(&self) -> bool {
        self.version != self.goal().version()
    }

    /// All homes, in order.
    pub fn homes(&self) -> impl Iterator<Item = HomePlacement<'_>> {
        (0..self.size().get()).map(|home| self.home(home))
    }

    /// Whether every home is settled with the goal.
    pub fn is_settled(&self) -> bool {
        // A ring that no home uses is forgotten, so this is nearly always known at once.
        self.rings.len() == 1 || self.homes.iter().all(|home| home.in_force == 0 && home.other.is_none())
    }

    /// Whether a home is settled with the goal.
    pub fn has_goal(&self, home: u32) -> bool {
        let home = self.homes[(home % self.size().get()) as usize];
        home.in_force == 0 && home.other.is_none()
    }

    /// Whether all homes got the goal at once, by no step.
    pub fn is_of_ring(&self) -> bool {
        *self == Self::of_ring(self.goal().clone())
    }

    /// The nodes that own partitions in a ring in use.
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.rings.iter().flat_map(|ring| ring.nodes().map(|(_, node)| node)).collect()
    }

    /// Sets another goal. Pending homes are aborted. Homes whose replicas are the same in the goal,
    /// for each of these n, have it at once.
    pub fn with_goal(&self, goal: Arc<Ring>, ns: &BTreeSet<u32>) -> Result<Self, PlacementError> {
        let expected = self.version.next();
        if goal.version() != expected {
            return Err(PlacementError::NotNext { found: goal.version(), expected });
        }
        if goal.size() != self.size() {
            let (found, expected) = (goal.size().get(), self.size().get());
            return Err(PlacementError::OtherSize { found, expected });
        }
        let mut next = Self { version: expected, rings: self.rings.clone(), homes: self.homes.clone() };
        next.rings.insert(0, goal);
        let mut homes = self.homes.to_vec();
        for (number, home) in (0..).zip(&mut homes) {
            home.in_force += 1;
            home.other = home.other.map(|ring| ring + 1);
            if home.phase == Phase::Pending {
                home.changed = expected.number;
                (home.other, home.phase) = (None, Phase::Settled);
            }
            let in_force = &next.rings[usize::from(home.in_force)];
            if home.phase == Phase::Settled && ns.iter().all(|n| in_force.has_same_shares(&next.rings[0], number, *n)) {
                (home.in_force, home.changed) = (0, expected.number);
            }
        }
        next.homes = homes.into();
        next.forget_unused_rings();
        if next.rings.len() > RINGS_MAX { Err(PlacementError::TooManyRings) } else { Ok(next) }
    }

    /// Takes steps. A step that does not fit its home any more has no effect. Returns nothing if no
    /// step had an effect.
    pub fn after(&self, steps: &[StepOf]) -> Option<Self> {
        let version = self.version.next();
        let mut homes = self.homes.to_vec();
        for StepOf { home, seen, step } in steps {
            let Some(home) = homes.get_mut(*home as usize).filter(|home| home.changed == *seen) else { continue };
            if home.take(*step) {
                home.changed = version.number;
            }
        }
        if homes[..] == self.homes[..] {
            return None;
        }
        let mut next = Self { version, rings: self.rings.clone(), homes: homes.into() };
        next.forget_unused_rings();
        Some(next)
    }

    fn forget_unused_rings(&mut self) {
        let is_used =
            |place: u8| place == 0 || self.homes.iter().any(|h| h.in_force == place || h.other == Some(place));
        let kept: Vec<u8> = (0..self.rings.len() as u8).filter(|place| is_used(*place)).collect();
        if kept.len() == self.rings.len() {
            return;
        }
        let place = |old: u8| kept.iter().position(|kept| *kept == old).unwrap_or(0) as u8;
        let moved = |home: &Home| Home { in_force: place(home.in_force), other: home.other.map(place), ..*home };
        self.homes = self.homes.iter().map(moved).collect();
        self.rings = kept.iter().map(|kept| self.rings[usize::from(*kept)].clone()).collect();
    }
}

impl Home {
    /// Returns whether the step fits.
    fn take(&mut self, step: Step) -> bool {
        match (step, self.phase) {
            (Step::Begin, Phase::Settled) if self.in_force != 0 => {
                (self.other, self.phase) = (Some(0), Phase::Pending);
            }
            (Step::Flip, Phase::Pending) => {
                let former = self.in_force;
                (self.in_force, self.other, self.phase) = (self.other.unwrap_or(former), Some(former), Phase::Flipped);
            }
            (Step::Finish, Phase::Flipped) | (Step::Abort, Phase::Pending) => {
                (self.other, self.phase) = (None, Phase::Settled);
            }
            _ => return false,
        }
        true
    }
}
