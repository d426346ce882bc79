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
}

impl Replica {
    /// A node that owns all its positions.
    pub const fn primary(node: NodeId, positions: u32) -> Self {
        Self { node, positions, primaries: positions }
    }

    /// A node that replaces the owners of its positions.
    pub const fn fallback(node: NodeId, positions: u32) -> Self {
        Self { node, positions, primaries: 0 }
    }
}

/// The sum of the answers for or against a request.
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
