//! Another node of the cluster.

use ombak_types::NodeId;
use std::net::SocketAddr;

/// Another node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its identity.
    pub id: NodeId,
    /// Its name, for people.
    pub name: String,
    /// Where it listens for its peers.
    pub address: SocketAddr,
}
