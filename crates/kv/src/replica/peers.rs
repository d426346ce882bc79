//! The other nodes, as the engine sees them.

use super::client::{Found, ReplicaClient, ReplicaRead, ReplicaStore, StoredVersion};
use crate::interface::{PutReply, PutRequest};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;

/// The other nodes of the cluster. Asked for each request, so it must neither block nor take long.
pub trait Peers: Send + Sync {
    /// Whether requests may be sent to a node. A node that answers gossip but no requests is not
    /// up.
    fn is_up(&self, node: NodeId) -> bool;

    /// The replicas of a node. Those of a node that is not known are unreachable.
    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient>;

    /// The name of a node, for answers to people.
    fn name(&self, node: NodeId) -> Option<String>;
}

/// The peers of a node that is alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl Peers for NoPeers {
    fn is_up(&self, _node: NodeId) -> bool {
        false
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        Arc::new(UnreachableNode(node))
    }

    fn name(&self, _node: NodeId) -> Option<String> {
        None
    }
}

/// The replicas of a node that cannot be reached. No request is delivered.
#[derive(Clone, Copy, Debug)]
pub struct UnreachableNode(pub NodeId);

impl UnreachableNode {
    fn refuse<T: Send + 'static>(self) -> BoxFuture<'static, Result<T, Error>> {
        let text = format!("node {} cannot be reached", self.0);
        Box::pin(ready(Err(StoreFailure::new(StoreFailureKind::Unreachable, text).into())))
    }
}

impl ReplicaClient for UnreachableNode {
    fn read(&self, _read: ReplicaRead) -> BoxFuture<'static, Result<Found, Error>> {
        self.refuse()
    }

    fn store(&self, _store: ReplicaStore) -> BoxFuture<'static, Result<StoredVersion, Error>> {
        self.refuse()
    }

    fn coordinate(&self, _put: PutRequest, _deadline: Option<Instant>) -> BoxFuture<'static, Result<PutReply, Error>> {
        self.refuse()
    }
}
