//! What a node says about itself to its peers.

use ombak_types::NodeId;
use std::collections::BTreeSet;

/// The version of a ring (docs/design/replication.md §9). Numbers of different lineages cannot be
/// compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RingVersion {
    /// The random id of the lineage.
    pub lineage: u64,
    /// The number within the lineage.
    pub number: u64,
}

/// Which of the connections between two nodes this is. A node opens one connection of each lane to
/// a peer and sends its requests over them. The peer's requests arrive over the peer's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Control messages and the requests that clients wait for.
    Requests,
    /// Transfers that nobody waits for, such as hints, and streamed answers such as listings.
    Bulk,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 2] = [Self::Requests, Self::Bulk];

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Requests => 0,
            Self::Bulk => 1,
        }
    }

    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Requests),
            1 => Some(Self::Bulk),
            _ => None,
        }
    }
}

/// The maximum number of capabilities of a node.
pub const CAPABILITIES_MAX: usize = 256;
/// The maximum length of the name of a capability in bytes.
pub const CAPABILITY_BYTES_MAX: usize = 64;

/// What a node tells about itself, once the peer has proved that it knows the cluster's secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The id of the cluster.
    pub cluster: u64,
    /// The id of the node.
    pub node: NodeId,
    /// How many times the node's data directory has been started. It rises with each start.
    pub boot_number: u64,
    /// A random number that is drawn at each start of the process. Two processes that run from
    /// copies of one data directory differ in it.
    pub session: u64,
    /// The names of what the node can do. A feature that needs both sides asks for its name.
    pub capabilities: BTreeSet<String>,
}

impl NodeIdentity {
    /// Whether this node and `peer` both have a capability.
    pub fn shares(&self, peer: &Self, capability: &str) -> bool {
        self.capabilities.contains(capability) && peer.capabilities.contains(capability)
    }
}
