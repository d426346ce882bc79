//! The other nodes, as the engine sees them.

use super::client::{ForwardedPut, PutFailure, ReadReply, ReplicaClient, ReplicaRead, ReplicaStore, StoreReply};
use super::conditional::ConditionalClient;
use super::counters::NodeCounter;
use super::coverage::CoverageClient;
use super::reaping::ReapingClient;
use super::transfer::{Compare, Compared, Give, Giving, Push, Pushed, Summarize, Summary, TransferClient};
use crate::requests::PutReply;
use ombak_ring::{ReplicaState, RingVersion};
use ombak_runtime::BoxFuture;
use ombak_stats::ClusterFigures;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use std::future::ready;
use std::sync::Arc;

/// The other nodes of the cluster. Asked for each request, so it must neither block nor take long.
pub trait Peers: Send + Sync {
    /// Whether requests may be sent to a node. A node that answers gossip but no requests is not
    /// up.
    fn is_up(&self, node: NodeId) -> bool;

    /// Whether a node may be a fallback. A member that leaves, has left or joins without owning
    /// anything stands in for nobody (docs/design/ring-changes.md). Also asked about this node.
    fn may_stand_in(&self, _node: NodeId) -> bool {
        true
    }

    /// Whether a node was removed from the cluster. Nobody waits for it, although the ring in force
    /// may still have it.
    fn was_removed(&self, _node: NodeId) -> bool {
        false
    }

    /// Whether an operator has marked a node as down. Nobody waits for its answers when a home
    /// changes.
    fn is_marked_down(&self, _node: NodeId) -> bool {
        false
    }

    /// Fetches the placement, because another node has told a version that this node does not know.
    /// What is returned ends when there is nothing more to do for it; the caller waits by itself
    /// until the version is in force here.
    fn learn_placement(&self, _from: NodeId, _at_least: RingVersion) -> BoxFuture<'static, ()> {
        Box::pin(ready(()))
    }

    /// The replicas of a node. Those of a node that is not known are unreachable.
    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient>;

    /// The same node as a place where copies belong.
    fn transfer(&self, node: NodeId) -> Arc<dyn TransferClient> {
        Arc::new(UnreachableNode(node))
    }

    /// The part of a node in rounds of reaping.
    fn reaping(&self, node: NodeId) -> Arc<dyn ReapingClient> {
        Arc::new(UnreachableNode(node))
    }

    /// The part of a node in conditional puts.
    fn conditional(&self, node: NodeId) -> Arc<dyn ConditionalClient> {
        Arc::new(UnreachableNode(node))
    }

    /// The members of the cluster that own nothing in the ring in force. (Those of the ring are
    /// known.) Also members that are down or leaving: each may hold a copy of any key.
    fn members(&self) -> Vec<NodeId> {
        Vec::new()
    }

    /// The name of a node, for answers to people.
    fn name(&self, node: NodeId) -> Option<String>;

    /// What is counted about the other nodes.
    fn figures(&self) -> ClusterFigures {
        ClusterFigures::default()
    }

    /// The part of a node in listings and index queries.
    fn coverage(&self, node: NodeId) -> Arc<dyn CoverageClient> {
        Arc::new(UnreachableNode(node))
    }

    /// The counter of fences with which the process of a connected node began. It is asked for only
    /// while no answer of the node has told a counter.
    fn first_counter(&self, _node: NodeId) -> Option<NodeCounter> {
        None
    }

    /// What is known about a node as a replica of the class (home, n). Listings prefer replicas by
    /// it (docs/design/replication.md §16). A replica that says otherwise when it is asked is
    /// right: then another one is asked. For this node itself only `missed_writes` counts.
    fn replica_state(&self, node: NodeId, _home: u32, _n: u32) -> ReplicaState {
        ReplicaState { is_up: self.is_up(node), participates: true, is_full: true, missed_writes: false }
    }
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
    /// The failure of every request: it is not delivered.
    pub fn error(self) -> Error {
        let text = format!("node {} cannot be reached", self.0);
        StoreFailure::new(StoreFailureKind::Unreachable, text).into()
    }
}

impl ReplicaClient for UnreachableNode {
    fn read(&self, _read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn store(&self, _store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn coordinate(&self, _put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        Box::pin(ready(Err(PutFailure::Refused(self.error()))))
    }
}

impl TransferClient for UnreachableNode {
    fn compare(&self, _compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn push(&self, _push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn summarize(&self, _summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        Box::pin(ready(Err(self.error())))
    }

    fn give(&self, _give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        Box::pin(ready(Err(self.error())))
    }
}
