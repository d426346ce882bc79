//! One home partition in a placement.

use crate::change_set::ReplicaSet;
use crate::ring::{Ring, RingVersion};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How far a home is on its way to another ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// One ring is in force, and there is no other.
    Settled,
    /// The other ring is to be in force. Gets count in the ring in force, and puts in both.
    Pending,
    /// The other ring was in force before. Gets count in the ring in force, and puts in both.
    Flipped,
}

/// One home partition in a placement.
#[derive(Clone, Copy, Debug)]
pub struct HomePlacement<'a> {
    pub(super) home: u32,
    pub(super) version: RingVersion,
    pub(super) phase: Phase,
    pub(super) in_force: &'a Arc<Ring>,
    pub(super) other: Option<&'a Arc<Ring>>,
    /// Before the first step towards the goal: the rings before it. Empty afterwards.
    pub(super) before_goal: &'a [Arc<Ring>],
}

impl<'a> HomePlacement<'a> {
    /// The number of the home partition.
    pub const fn home(&self) -> u32 {
        self.home
    }

    /// The version of the placement at which this home changed last. A request whose placement is
    /// older may have chosen other replicas.
    pub const fn version(&self) -> RingVersion {
        self.version
    }

    /// How far the home is on its way to another ring.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the home is between two rings.
    pub const fn is_changing(&self) -> bool {
        self.other.is_some()
    }

    /// The ring in which gets count.
    pub const fn in_force(&self) -> &'a Arc<Ring> {
        self.in_force
    }

    /// The ring in which puts count, too, while the home changes: the pending ring, or the former
    /// one.
    pub const fn other(&self) -> Option<&'a Arc<Ring>> {
        self.other
    }

    /// Whether every member knows that this node owns partitions. The driver takes the first step
    /// towards a goal when all have confirmed it. A node that is new in the goal must not be a
    /// fallback before that: a member that does not know it would reap without asking it
    /// (docs/design/ring-changes.md, "Fallbacks").
    pub fn is_known_to_all(&self, node: NodeId) -> bool {
        self.before_goal.is_empty() || self.before_goal.iter().any(|ring| ring.node(node).is_some())
    }

    /// The nodes in which gets of this n count.
    pub fn replica_set(&self, n: u32) -> ReplicaSet {
        self.in_force.replica_set(self.home, n)
    }

    /// The nodes of this n in the other ring; empty if there is none.
    pub fn other_set(&self, n: u32) -> ReplicaSet {
        self.other.map_or_else(ReplicaSet::new, |ring| ring.replica_set(self.home, n))
    }

    /// All primaries of the class (home, n): the nodes in the ring in force, then those that are
    /// only in the other ring.
    pub fn primaries(&self, n: u32) -> ReplicaSet {
        let mut all = self.replica_set(n);
        for node in self.other_set(n) {
            if !all.contains(&node) {
                all.push(node);
            }
        }
        all
    }

    /// Whether a node is a primary of the class (home, n) in either ring.
    pub fn is_primary(&self, node: NodeId, n: u32) -> bool {
        self.rank(node).is_some_and(|rank| rank < n)
    }

    /// The place of a node among the distinct owners that a walk from the home finds, from 0: the
    /// smaller one of both rings. The node is a primary of the classes with a larger n. `None` if
    /// it is in neither ring.
    pub fn rank(&self, node: NodeId) -> Option<u32> {
        let all = self.in_force.size().get();
        let of = |ring: &Ring| ring.replica_set(self.home, all).iter().position(|owner| *owner == node);
        let ranks = [Some(self.in_force), self.other].into_iter().flatten().filter_map(|ring| of(ring));
        ranks.min().map(|rank| rank as u32)
    }
}
