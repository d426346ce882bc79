//! A replica as a coordinator sees it: a partition of this node, or of another node.
//!
//! What it is: the questions that a coordinator asks ([`ReplicaClient`]), the answer of this node
//! ([`LocalReplica`]), and the set of nodes that a request asks.
//!
//! What it is not: it has no quorums (`coordination`) and no transport. Another node's replica is
//! whatever the node was given as [`Peers`].

mod client;
mod local;
mod peers;
mod request_replicas;

pub use client::{Found, ReplicaClient, ReplicaRead, ReplicaStore, StoreKind, StoredVersion};
pub use local::LocalReplica;
pub use peers::{NoPeers, Peers, UnreachableNode};
pub(crate) use request_replicas::RequestReplicas;
