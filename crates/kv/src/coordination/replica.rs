//! The part of one node in a request.

use ombak_types::NodeId;

/// One node that a request asks, and how much its single answer counts (docs/design/replication.md
/// §14). Coordinators identify replicas by their index in the request's list. A node is in the list
/// once, however many positions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// Positions of the preference list that this node has.
    pub positions: u32,
    /// Number of these positions that the node owns: only they count for `pr` and `pw`.
    pub primaries: u32,
    /// How much its answer counts in the other set, while the home changes. Gets do not count
    /// there.
    pub other: Weight,
}

/// How much the answer of a node counts in one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Positions that the node has in the set.
    pub positions: u32,
    /// Number of these positions that the node owns.
    pub primaries: u32,
}

/// The sets in which the answers to a request count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountedSets {
    /// The set in force alone.
    #[default]
    One,
    /// Each quorum must be met in the set in force, and in the other set of a home that changes.
    Both,
}

impl Replica {
    /// A node that owns all its positions.
    pub const fn primary(node: NodeId, positions: u32) -> Self {
        Self::in_force(node, positions, positions)
    }

    /// A node that replaces the owners of its positions.
    pub const fn fallback(node: NodeId, positions: u32) -> Self {
        Self::in_force(node, positions, 0)
    }

    /// A node that counts in the set in force alone.
    pub const fn in_force(node: NodeId, positions: u32, primaries: u32) -> Self {
        Self { node, positions, primaries, other: Weight { positions: 0, primaries: 0 } }
    }

    /// Whether the node owns a position in either set.
    pub const fn is_owner(&self) -> bool {
        self.primaries > 0 || self.other.primaries > 0
    }
}

/// The sum of the answers for or against a request, in one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Positions that were answered.
    pub positions: u32,
    /// Positions that their owner answered.
    pub primaries: u32,
    /// Distinct nodes that answered.
    pub nodes: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, replica: Replica) {
        self.add_weight(Weight { positions: replica.positions, primaries: replica.primaries });
    }

    pub(crate) fn of(replicas: &[Replica]) -> Self {
        let mut all = Self::default();
        replicas.iter().for_each(|r| all.add(*r));
        all
    }

    const fn add_weight(&mut self, weight: Weight) {
        self.positions += weight.positions;
        self.primaries += weight.primaries;
        self.nodes += (weight.positions > 0) as u32;
    }

    const fn take_weight(&mut self, weight: Weight) {
        self.positions -= weight.positions;
        self.primaries -= weight.primaries;
        self.nodes -= (weight.positions > 0) as u32;
    }
}

/// The sums of the answers in each set that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tallies {
    in_force: Tally,
    other: Tally,
    sets: CountedSets,
}

impl Tallies {
    pub(crate) fn none(sets: CountedSets) -> Self {
        Self { sets, ..Self::default() }
    }

    pub(crate) fn of(sets: CountedSets, replicas: impl IntoIterator<Item = Replica>) -> Self {
        let mut all = Self::none(sets);
        replicas.into_iter().for_each(|r| all.add(r));
        all
    }

    pub(crate) fn add(&mut self, replica: Replica) {
        self.in_force.add(replica);
        self.other.add_weight(replica.other);
    }

    pub(crate) fn take(&mut self, replica: Replica) {
        self.in_force.take_weight(Weight { positions: replica.positions, primaries: replica.primaries });
        self.other.take_weight(replica.other);
    }

    /// The lesser sum of each kind. A quorum is met in all sets that count if this meets it, and it
    /// cannot be met in one of them if this cannot meet it.
    pub(crate) fn least(&self) -> Tally {
        let Self { in_force, other, sets } = *self;
        match sets {
            CountedSets::One => in_force,
            CountedSets::Both => Tally {
                positions: in_force.positions.min(other.positions),
                primaries: in_force.primaries.min(other.primaries),
                nodes: in_force.nodes.min(other.nodes),
            },
        }
    }
}
