//! What a node knows about the others at one moment.

use crate::process::Process;
use crate::soft_state::SoftState;
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the failure detector says of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It answers.
    Up,
    /// It failed a probe, and has not refuted that yet. It counts as up.
    Suspect,
    /// It does not answer, or never has.
    Down,
    /// It stopped on purpose. It counts as down.
    Left,
}

impl PeerState {
    /// Whether the node counts as up.
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Suspect)
    }
}

/// What is known about one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// What the failure detector says.
    pub state: PeerState,
    /// The latest process that this node has heard of.
    pub process: Option<Process>,
    /// How many times the member has come up since this node started. An observer that was slow
    /// sees by it that the member went down and up again.
    pub times_up: u64,
    /// What the member last told about itself. It stays when the member goes down.
    pub soft_state: Option<Arc<SoftState>>,
}

/// What is known about all other members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeersView {
    /// The members.
    pub peers: BTreeMap<NodeId, PeerView>,
    /// A peer knows this node under this boot number, which is higher than its own: the node's
    /// directory is older than one that was used before (docs/design/replication.md §8).
    pub later_boot_number: Option<u64>,
}

impl PeersView {
    /// Whether the failure detector says that a node is up. The health of its requests does not
    /// count.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.state.is_up())
    }

    /// Whether any other member said that it owes writes of a class to `node`
    /// (docs/design/replication.md §2).
    pub fn is_owed(&self, node: NodeId, home: u32, n: u32) -> bool {
        let states =
            self.peers.iter().filter(|(peer, _)| **peer != node).filter_map(|(_, peer)| peer.soft_state.as_ref());
        states.filter_map(|state| state.owed.get(&node)).any(|classes| classes.contains(home, n))
    }
}
