//! One node's part in a request.

/// One node that a request asks, and what its one answer counts for (docs/design/replication.md §14). Coordinators know
/// replicas by their place in the request's list; a node is in it once, whatever number of positions it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Positions of the preference list that this node stands in.
    pub positions: u32,
    /// How many of them it owns: only these count for `pr` and `pw`.
    pub primaries: u32,
}

impl Replica {
    /// A node that owns all the positions it stands in.
    pub const fn primary(positions: u32) -> Self {
        Self { positions, primaries: positions }
    }

    /// A node that stands in for others.
    pub const fn fallback(positions: u32) -> Self {
        Self { positions, primaries: 0 }
    }
}

/// Answers that count for or against a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Positions.
    pub positions: u32,
    /// Positions answered by their owner.
    pub primaries: u32,
    /// Distinct nodes.
    pub nodes: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, replica: Replica) {
        self.positions += replica.positions;
        self.primaries += replica.primaries;
        self.nodes += 1;
    }

    pub(crate) fn of(replicas: &[Replica]) -> Self {
        let mut all = Self::default();
        replicas.iter().for_each(|r| all.add(*r));
        all
    }
}
