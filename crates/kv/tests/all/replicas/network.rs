//! What connects the engines of a cluster.

#![allow(dead_code, reason = "the tests of each crate use a part of it")]

use crate::support::random::Random;
use crate::wires::{Wires, set};
use ombak_kv::replica::{
    AskRequest, Compare, Compared, ConditionalClient, CoverageClient, CoverageRequest, CoverageStream, ForwardedPut,
    Give, Giving, Ordered, PromiseReply, PromiseRequest, Push, Pushed, PutFailure, ReadReply, ReapOrder, ReapReply,
    ReapingClient, RemoveRequest, ReplicaClient, ReplicaRead, ReplicaStore, StoreReply, Summarize, Summary,
    TransferClient, UnreachableNode, Vote, VoteRequest,
};
use ombak_kv::{LocalReplica, Peers, PutReply};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::sync::{Arc, OnceLock};

#[derive(Default)]
pub struct Links {
    pub wires: Wires,
    /// Pairs of a node and one that it alone believes to be down.
    down_for: BTreeSet<(NodeId, NodeId)>,
    /// Pairs of nodes of which the first reaches nothing of the second.
    parted: BTreeSet<(NodeId, NodeId)>,
    /// Nodes that get everything and answer nothing.
    stopped: BTreeSet<NodeId>,
    /// Lets each promise and each store take another time.
    delays: Option<Random>,
    /// The number of puts that were given to a coordinator directly.
    last_put_number: u64,
    /// Whether nodes refuse to remove tombstones when another node asks, as while the ring changes.
    refuses_removals: bool,
    /// How many removals were refused.
    refused_removals: u64,
}

impl Links {
    pub fn set_down_for(&mut self, viewer: NodeId, node: NodeId) {
        self.down_for.insert((viewer, node));
    }

    pub fn set_parted(&mut self, a: NodeId, b: NodeId, parted: bool) {
        set(&mut self.parted, (a, b), parted);
        set(&mut self.parted, (b, a), parted);
    }

    pub fn delay_messages(&mut self, seed: u64) {
        self.delays = Some(Random(seed));
    }

    /// A number for a put that was not used before.
    pub fn next_put_number(&mut self) -> u64 {
        self.last_put_number += 1;
        self.last_put_number
    }

    pub fn refuse_removals(&mut self, refuse: bool) {
        self.refuses_removals = refuse;
    }

    pub fn refused_removals(&self) -> u64 {
        self.refused_removals
    }

    pub fn set_stopped(&mut self, node: NodeId, stopped: bool) {
        set(&mut self.stopped, node, stopped);
    }

    /// The engine of a node, if what `viewer` sends arrives there.
    fn reach(&self, viewer: NodeId, node: NodeId) -> Option<LocalReplica> {
        self.wires.reach(node).filter(|_| !self.parted.contains(&(viewer, node)))
    }
}

#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Links>>);

impl Network {
    pub fn links(&self) -> MutexGuard<'_, Links> {
        self.0.lock()
    }
}

/// What one node sees of the others.
pub struct View {
    pub network: Network,
    /// The node; it is known after the engine is open.
    pub viewer: Arc<OnceLock<NodeId>>,
}

impl View {
    fn remote(&self, node: NodeId) -> Arc<Remote> {
        let viewer = self.viewer.get().copied().unwrap_or(node);
        Arc::new(Remote { viewer, node, network: self.network.clone() })
    }
}

impl Peers for View {
    fn is_up(&self, node: NodeId) -> bool {
        let links = self.network.links();
        let pair = (self.viewer.get().copied().unwrap_or(node), node);
        links.wires.is_up(node) && !links.down_for.contains(&pair) && !links.parted.contains(&pair)
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        self.remote(node)
    }

    fn transfer(&self, node: NodeId) -> Arc<dyn TransferClient> {
        self.remote(node)
    }

    fn reaping(&self, node: NodeId) -> Arc<dyn ReapingClient> {
        self.remote(node)
    }

    fn conditional(&self, node: NodeId) -> Arc<dyn ConditionalClient> {
        self.remote(node)
    }

    fn coverage(&self, node: NodeId) -> Arc<dyn CoverageClient> {
        self.remote(node)
    }

    fn name(&self, node: NodeId) -> Option<String> {
        Some(format!("name of {node}"))
    }
}

/// A node behind the wires.
#[derive(Clone)]
struct Remote {
    viewer: NodeId,
    node: NodeId,
    network: Network,
}

/// Asks the engine of a node, or the stand-in of a node that is not reached. A node that is stopped
/// never answers.
macro_rules! ask {
    ($remote:expr, $node:ident => $question:expr) => {{
        let links = $remote.network.links();
        let (is_stopped, reached) = (links.stopped.contains(&$remote.node), links.reach($remote.viewer, $remote.node));
        drop(links);
        match reached {
            Some(_) if is_stopped => Box::pin(pending()),
            Some($node) => $question,
            None => {
                let $node = UnreachableNode($remote.node);
                $question
            }
        }
    }};
}

impl Remote {
    /// What a message waits, if messages take different times.
    fn delay(&self) -> impl Future<Output = ()> + Send + 'static {
        let turns = self.network.links().delays.as_mut().map_or(0, |random| random.below(12));
        async move {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        }
    }

    fn store_now(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        ask!(self, node => node.store(store))
    }

    fn promise_now(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        ask!(self, node => node.promise(request))
    }
}

impl ConditionalClient for Remote {
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        let (delay, to) = (self.delay(), self.clone());
        Box::pin(async move {
            delay.await;
            to.promise_now(request).await
        })
    }
}

impl ReplicaClient for Remote {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        ask!(self, node => node.read(read))
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        let (delay, to) = (self.delay(), self.clone());
        Box::pin(async move {
            delay.await;
            to.store_now(store).await
        })
    }

    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        ask!(self, node => node.coordinate(put))
    }
}

impl TransferClient for Remote {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        ask!(self, node => node.compare(compare))
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        ask!(self, node => node.push(push))
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        ask!(self, node => node.summarize(summarize))
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        ask!(self, node => node.give(give))
    }
}

impl ReapingClient for Remote {
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        ask!(self, node => node.vote(request))
    }

    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        ask!(self, node => node.ask(request))
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        let mut links = self.network.links();
        if links.refuses_removals {
            links.refused_removals += 1;
            let refused = StoreFailure::new(StoreFailureKind::Busy, "the home partition is changing");
            return Box::pin(async move { Err(refused.into()) });
        }
        drop(links);
        ask!(self, node => node.remove(request))
    }

    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        ask!(self, node => node.order(order))
    }
}

impl CoverageClient for Remote {
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        ask!(self, node => node.open(request))
    }
}
