//! The identity under which a node takes part in failure detection.

use ombak_types::NodeId;

/// One process of a node. A node that was restarted has a higher boot number, so the others take it
/// for a new incarnation and forget that the one before was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The node.
    pub node: NodeId,
    /// How many times the node's data directory has been started.
    pub boot_number: u64,
    /// A random number that is drawn at each start of the process.
    pub session: u64,
    /// How many times the process came back after others had taken it for dead.
    pub renewal: u32,
}

impl Process {
    pub(crate) const BYTES: usize = 28;

    /// The process of a node that has just been started.
    pub const fn new(node: NodeId, boot_number: u64, session: u64) -> Self {
        Self { node, boot_number, session, renewal: 0 }
    }

    /// Stands for whatever process a node has, as long as none is known.
    pub(crate) const fn any_of(node: NodeId) -> Self {
        Self::new(node, 0, 0)
    }

    /// Whether both are the same process of the same node, however often it came back.
    pub(crate) fn is_same_start(&self, other: &Self) -> bool {
        (self.node, self.boot_number, self.session) == (other.node, other.boot_number, other.session)
    }
}

impl foca::Identity for Process {
    type Addr = NodeId;

    fn renew(&self) -> Option<Self> {
        Some(Self { renewal: self.renewal.checked_add(1)?, ..*self })
    }

    fn addr(&self) -> NodeId {
        self.node
    }

    /// The later process wins. If two processes run from copies of one directory, they can have one
    /// boot number. Then any fixed order does: the transport lets in only one of them
    /// (docs/design/replication.md §8).
    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self > adversary
    }
}
