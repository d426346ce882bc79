//! The messages between engines: late, lost or doubled.

use super::one_thread::Random;
use ombak_kv::replica::{
    AskRequest, Compare, Compared, ConditionalClient, ForwardedPut, Give, Giving, Ordered, PromiseReply,
    PromiseRequest, Push, Pushed, PutFailure, ReadReply, ReapOrder, ReapReply, ReapingClient, RemoveRequest,
    ReplicaClient, ReplicaRead, ReplicaStore, StoreReply, Summarize, Summary, TransferClient, Vote, VoteRequest,
};
use ombak_kv::{LocalReplica, Peers, PutReply};
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a caller waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// What connects the engines.
#[derive(Default)]
pub(super) struct Wires {
    pub(super) replicas: BTreeMap<NodeId, LocalReplica>,
    /// Pairs of nodes of which the first believes that the second is down.
    pub(super) believed_down: BTreeSet<(NodeId, NodeId)>,
    /// Pairs of nodes between which nothing passes, in this direction.
    pub(super) cut: BTreeSet<(NodeId, NodeId)>,
    pub(super) is_healed: bool,
}

#[derive(Clone)]
pub(super) struct Network {
    pub(super) wires: Arc<Mutex<Wires>>,
    pub(super) random: Arc<Random>,
}

/// The peers of one node.
pub(super) struct View {
    pub(super) network: Network,
    pub(super) viewer: Arc<OnceLock<NodeId>>,
}

#[derive(Clone)]
struct Remote {
    network: Network,
    from: NodeId,
    to: NodeId,
}

impl View {
    fn remote(&self, to: NodeId) -> Arc<Remote> {
        let from = self.viewer.get().copied().unwrap_or(to);
        Arc::new(Remote { network: self.network.clone(), from, to })
    }
}

impl Peers for View {
    fn is_up(&self, node: NodeId) -> bool {
        let viewer = self.viewer.get().copied().unwrap_or(node);
        !self.network.wires.lock().believed_down.contains(&(viewer, node))
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

    fn name(&self, node: NodeId) -> Option<String> {
        Some(node.to_string())
    }
}

/// Why a question has no answer.
enum NoAnswer {
    NotDelivered,
    Late,
}

impl From<NoAnswer> for Error {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::NotDelivered => StoreFailure::new(StoreFailureKind::Unreachable, "cut").into(),
            NoAnswer::Late => Self::Timeout,
        }
    }
}

impl Network {
    fn passes(&self, from: NodeId, to: NodeId) -> bool {
        !self.wires.lock().cut.contains(&(from, to))
    }

    /// How long a message is on its way: mostly short, at times as long as many requests.
    fn delay(&self) -> Duration {
        let healed = self.wires.lock().is_healed;
        Duration::from_millis(match self.random.below(12) {
            0 if !healed => self.random.below(25_000) as u64,
            1 | 2 if !healed => self.random.below(900) as u64,
            _ => self.random.below(10) as u64,
        })
    }
}

impl Remote {
    /// Brings a question to a node, and its answer back. The question is executed also if the
    /// caller does not wait any more.
    async fn ask<T: Send + 'static>(
        self,
        copies: usize,
        ask: impl Fn(LocalReplica) -> BoxFuture<'static, T> + Send + Sync + 'static,
    ) -> Result<T, NoAnswer> {
        let Self { network, from, to } = self;
        if !network.passes(from, to) {
            return Err(NoAnswer::NotDelivered);
        }
        let (give, take) = oneshot::channel();
        let (mut give, ask) = (Some(give), Arc::new(ask));
        for _ in 0..copies {
            let (network, ask, give) = (network.clone(), ask.clone(), give.take());
            drop(tokio::spawn(async move {
                tokio::time::sleep(network.delay()).await;
                let Some(replica) = network.wires.lock().replicas.get(&to).cloned() else { return };
                let answer = ask(replica).await;
                tokio::time::sleep(network.delay()).await;
                if let Some(give) = give.filter(|_| network.passes(to, from)) {
                    drop(give.send(answer));
                }
            }));
        }
        match tokio::time::timeout(ANSWER_MAX, take).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(NoAnswer::Late),
        }
    }

    fn flat<T: Send + 'static>(
        &self,
        copies: usize,
        ask: impl Fn(LocalReplica) -> BoxFuture<'static, Result<T, Error>> + Send + Sync + 'static,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let asked = self.clone().ask(copies, ask);
        Box::pin(async move { asked.await.map_err(Error::from)? })
    }
}

impl ReplicaClient for Remote {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        self.flat(1, move |to| to.read(read.clone()))
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        let copies = if self.network.random.once_in(6) { 2 } else { 1 };
        self.flat(copies, move |to| to.store(store.clone()))
    }

    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        let asked = self.clone().ask(1, move |to: LocalReplica| to.coordinate(put.clone()));
        Box::pin(async move {
            match asked.await {
                Ok(answer) => answer,
                Err(NoAnswer::NotDelivered) => Err(PutFailure::Refused(NoAnswer::NotDelivered.into())),
                Err(NoAnswer::Late) => Err(PutFailure::Ended(Error::Timeout)),
            }
        })
    }
}

impl ConditionalClient for Remote {
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        self.flat(1, move |to| to.promise(request.clone()))
    }
}

impl ReapingClient for Remote {
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        self.flat(1, move |to| to.vote(request.clone()))
    }

    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.flat(1, move |to| ReapingClient::ask(&to, request.clone()))
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.flat(2, move |to| to.remove(request.clone()))
    }

    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        self.flat(1, move |to| to.order(order.clone()))
    }
}

impl TransferClient for Remote {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.flat(1, move |to| to.compare(compare.clone()))
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.flat(1, move |to| to.push(push.clone()))
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        self.flat(1, move |to| to.summarize(summarize))
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        self.flat(1, move |to| to.give(give.clone()))
    }
}
