//! Work near the data: which nodes hold what, and reads from the store of this node alone.
//!
//! A caller that has much to read from the objects of a bucket divides the work among the replicas,
//! and each reads its own copies. [`Kv::share`] says who can do so for one home partition.

use crate::engine::{Kv, check_bucket, check_key};
use crate::requests::GetReply;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_types::{Bucket, Error, NodeId};

/// Who holds everything that buckets with one n have in a home partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The home partition.
    pub home: u32,
    /// The n of the buckets.
    pub n: u32,
    /// The version of the placement in which the home got its replicas.
    pub ring: RingVersion,
    /// The replicas that are up and answer for others, the best first.
    pub nodes: Vec<NodeId>,
}

impl Kv {
    /// The number of home partitions.
    pub fn homes(&self) -> u32 {
        self.engine.placement().size().get()
    }

    /// The replicas of a home partition.
    pub fn share(&self, home: u32, n: u32) -> Share {
        let placement = self.engine.placement();
        let home_placement = placement.home(home);
        let states = home_placement.replica_set(n).into_iter().map(|node| {
            let state = self.engine.replica_state(node, home, n);
            (state, node)
        });
        let mut able: Vec<_> = states.filter(|(state, _)| state.is_up).collect();
        // The order of the preference list stays among equals, so that the homes spread the work.
        able.sort_by_key(|(state, _)| (!state.is_full, !state.participates, state.missed_writes));
        let nodes = able.into_iter().map(|(_, node)| node).collect();
        Share { home, n, ring: home_placement.version(), nodes }
    }

    /// The replicas of a key.
    pub fn share_of_key(&self, bucket: &Bucket, key: &Bytes) -> Result<Share, Error> {
        check_bucket(bucket)?;
        check_key(key)?;
        let props = self.engine.buckets.props(bucket)?;
        let placement = self.engine.placement();
        let home = self.engine.home_of(&placement, bucket, key, &props);
        Ok(self.share(home, props.n_val))
    }

    /// Whether a node answers requests. This node always does.
    pub fn is_node_up(&self, node: NodeId) -> bool {
        node == self.engine.identity.node_id || self.engine.config.peers.is_up(node)
    }

    /// Reads a key from the copy of this node, as a client would see it if no other copy existed.
    /// `None`: this node is no replica, or has no copy that can be read, so others must be asked.
    /// Blocks: not for network threads.
    pub fn read_here(&self, bucket: &Bucket, key: &Bytes) -> Result<Option<GetReply>, Error> {
        check_bucket(bucket)?;
        check_key(key)?;
        self.engine.read_here(bucket, key)
    }
}
