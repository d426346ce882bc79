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

/// What a connection between two nodes carries. A node sends its requests over the connections that
/// it has opened. The peer's requests arrive over the peer's connections.
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
}

/// One of the connections that a node opens to a peer. Each thread that serves clients has a
/// connection for requests of its own, so that no request and no answer has to pass from one thread
/// to another on this side, and the peer spreads its work over as many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel {
    /// The lane.
    pub lane: Lane,
    /// The number of the thread whose requests it carries; 0 for all that are not on such a thread.
    pub thread: u8,
}

/// The largest number of a thread that has a connection of its own.
const THREADS_MAX: u8 = 16;

impl Channel {
    /// The connection for a request that is made on the thread with this number. If there are very
    /// many threads, several share one.
    pub(crate) fn of(lane: Lane, thread_number: usize) -> Self {
        let thread = match (lane, thread_number.checked_sub(1)) {
            (Lane::Requests, Some(place)) => 1 + (place % usize::from(THREADS_MAX)) as u8,
            _ => 0,
        };
        Self { lane, thread }
    }

    /// Its number in the handshake.
    pub(crate) const fn code(self) -> u8 {
        match self.lane {
            Lane::Requests if self.thread > 0 => self.thread + 1,
            lane => lane.code(),
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Lane::Requests.into()),
            1 => Some(Lane::Bulk.into()),
            code => Some(Self { lane: Lane::Requests, thread: code - 1 }).filter(|own| own.thread <= THREADS_MAX),
        }
    }
}

impl From<Lane> for Channel {
    fn from(lane: Lane) -> Self {
        Self { lane, thread: 0 }
    }
}

/// The maximum number of capabilities of a node.
pub const CAPABILITIES_MAX: usize = 256;
/// The maximum length of the name of a capability in bytes.
pub const CAPABILITY_BYTES_MAX: usize = 64;

/// What a node tells about itself, once the peer has proved that it knows the cluster's secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeIdentity {
    /// The id of the cluster. 0: the node belongs to no cluster with other members, so any cluster
    /// lets it in, because it may want to join.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// How many channels there are.
    const COUNT: usize = 2 + THREADS_MAX as usize;

    #[test]
    fn each_channel_has_a_code_of_its_own() {
        let of_threads = (0..100).map(|thread| Channel::of(Lane::Requests, thread));
        let all: BTreeSet<Channel> = of_threads.chain([Channel::of(Lane::Bulk, 3)]).collect();
        assert_eq!(all.len(), COUNT);
        for channel in all {
            assert_eq!(Channel::from_code(channel.code()), Some(channel));
            assert!(usize::from(channel.code()) < COUNT);
        }
        assert_eq!(Channel::from_code(COUNT as u8), None);
        assert_eq!(Channel::from_code(u8::MAX), None);
    }

    #[test]
    fn transfers_of_all_threads_share_one_channel() {
        assert_eq!(Channel::of(Lane::Bulk, 5), Channel::from(Lane::Bulk));
        assert_ne!(Channel::of(Lane::Requests, 5), Channel::from(Lane::Requests));
    }
}
