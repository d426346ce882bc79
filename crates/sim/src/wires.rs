//! Nodes that call each other's engines directly, by messages that the network delays, loses,
//! doubles and reorders.
//!
//! This is harsher than a transport over ordered streams: each message goes its own way.

use crate::changes::{DecidedState, Follower};
use crate::network::SimNetwork;
use crate::oracle::Witness;
use crate::random::Random;
use crate::world::{Event, HostId, HostKey, HostRuntime, World};
use ombak_cluster::{Liveness, RequestOutcome};
use ombak_kv::replica::{
    AskRequest, Compare, Compared, ConditionalClient, ForwardedPut, Give, Giving, Ordered, PromiseReply,
    PromiseRequest, Push, Pushed, PutFailure, ReadReply, ReapOrder, ReapReply, ReapingClient, RemoveRequest,
    ReplicaClient, ReplicaRead, ReplicaStore, StoreReply, Summarize, Summary, TransferClient, UnreachableNode, Vote,
    VoteRequest,
};
use ombak_kv::{ClassId, Kv, LocalReplica, Peers, PutReply};
use ombak_ring::RingVersion;
use ombak_ring::staging::MemberStatus;
use ombak_runtime::{BoxFuture, Runtime, RuntimeExt, within};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a caller waits for an answer when its question has no deadline.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long a broken connection takes to be noticed.
const NOTICED: std::ops::Range<u64> = 100..2_000;
/// How much longer a straggler takes than other messages.
const STRAGGLES_NS: std::ops::Range<u64> = 300_000_000..4_000_000_000;
/// How much longer a store of a key takes that is to outlive its tombstone.
const OUTLIVES_NS: std::ops::Range<u64> = 800_000_000..8_000_000_000;

/// What has happened to messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounts {
    /// Messages that were delivered.
    pub delivered: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// Messages that were delivered twice.
    pub doubled: u64,
    /// Messages that took much longer than others.
    pub straggled: u64,
    /// Puts that were forwarded to a coordinator.
    pub forwarded: u64,
    /// Messages that have overtaken an earlier one of the same way.
    pub reordered: u64,
}

/// A node that answers.
struct Server {
    on: HostKey,
    runtime: Arc<HostRuntime>,
    replica: LocalReplica,
    kv: Kv,
    follower: Follower,
}

#[derive(Default)]
struct State {
    hosts: BTreeMap<NodeId, HostId>,
    servers: BTreeMap<HostId, Server>,
    /// (who, whom): who believes whom to be down.
    believed_down: BTreeSet<(HostId, HostId)>,
    /// When the last message of each way arrives.
    last_ns: BTreeMap<(HostId, HostId), u64>,
    doubled_per_mille: u64,
    straggling_per_mille: u64,
    /// The storage keys of which stores straggle, with the number of clients that want it.
    straggling_keys: BTreeMap<Vec<u8>, u32>,
    counts: WireCounts,
}

/// How a question travels.
#[derive(Clone, Copy)]
struct Travel {
    /// It may arrive twice.
    may_double: bool,
    /// It is on its way for longer than a key lives.
    outlives: bool,
}

/// A question that must not be asked twice.
const ONCE: Travel = Travel { may_double: false, outlives: false };
/// A question that may be asked twice.
const REPEATABLE: Travel = Travel { may_double: true, outlives: false };

/// The messages between all nodes.
#[derive(Clone)]
pub struct Wires {
    world: World,
    network: SimNetwork,
    witness: Witness,
    state: Arc<Mutex<State>>,
}

impl Wires {
    /// Wires over the links of a network. Votes in rounds of reaping are told to the witness.
    pub fn new(world: &World, network: &SimNetwork, witness: &Witness) -> Self {
        Self { world: world.clone(), network: network.clone(), witness: witness.clone(), state: Arc::default() }
    }

    /// What has happened so far.
    pub fn counts(&self) -> WireCounts {
        self.state.lock().counts
    }

    /// How many of 1,000 stores are delivered twice.
    pub fn set_doubled_per_mille(&self, doubled: u64) {
        self.state.lock().doubled_per_mille = doubled;
    }

    /// How many of 1,000 messages take much longer than others.
    pub fn set_straggling_per_mille(&self, straggling: u64) {
        self.state.lock().straggling_per_mille = straggling;
    }

    /// Lets stores of a key straggle, or their doubles, until this is said with `false` as often.
    pub fn set_straggling(&self, storage_key: &[u8], is_straggling: bool) {
        let mut state = self.state.lock();
        let wanted = state.straggling_keys.entry(storage_key.to_vec()).or_default();
        *wanted = if is_straggling { *wanted + 1 } else { wanted.saturating_sub(1) };
        if *wanted == 0 {
            state.straggling_keys.remove(storage_key);
        }
    }

    /// A node begins to answer.
    pub(crate) fn attach(&self, host: HostId, follower: Follower, kv: Kv) {
        let (on, replica, node) = (self.world.inner().process_of(host), kv.local_replica(), kv.identity().node_id);
        let server = Server { on, runtime: self.world.runtime(host), replica, kv, follower };
        let old = {
            let mut state = self.state.lock();
            state.hosts.insert(node, host);
            state.servers.insert(host, server)
        };
        drop(old);
    }

    /// What follows the log in the process on a host.
    pub(crate) fn follower(&self, host: HostId) -> Option<Follower> {
        self.state.lock().servers.get(&host).map(|server| server.follower.clone())
    }

    /// A node ends.
    pub fn detach(&self, host: HostId) {
        let old = self.state.lock().servers.remove(&host);
        drop(old);
    }

    /// What one host believes about another one.
    pub fn believe(&self, who: HostId, whom: HostId, is_down: bool) {
        let mut state = self.state.lock();
        if is_down {
            state.believed_down.insert((who, whom));
        } else {
            state.believed_down.remove(&(who, whom));
        }
    }

    /// The peers of a host.
    pub fn of(&self, host: HostId) -> Arc<dyn Peers> {
        Arc::new(self.peers_of(host))
    }

    /// The ways of the process that runs on a host.
    pub(crate) fn peers_of(&self, host: HostId) -> HostPeers {
        HostPeers { wires: self.clone(), from: self.world.inner().process_of(host) }
    }

    /// The host of a node, if the node has ever answered.
    pub(crate) fn host_of(&self, node: NodeId) -> Option<HostId> {
        self.state.lock().hosts.get(&node).copied()
    }

    /// The engine that runs on a host, if it answers.
    pub(crate) fn engine_on(&self, host: HostId) -> Option<Kv> {
        self.state.lock().servers.get(&host).map(|server| server.kv.clone())
    }

    /// What a host believes about the others.
    pub fn beliefs_of(&self, host: HostId) -> Arc<dyn Liveness> {
        Arc::new(self.peers_of(host))
    }

    /// Whether the node on a host may lack something of a class.
    fn is_filling(&self, host: HostId, class: ClassId) -> bool {
        self.engine_on(host).is_some_and(|kv| kv.filling_classes().iter().any(|(filling, _)| *filling == class))
    }

    fn server(&self, to: HostId) -> Option<(HostKey, Arc<HostRuntime>, LocalReplica)> {
        let state = self.state.lock();
        state.servers.get(&to).map(|server| (server.on, server.runtime.clone(), server.replica.clone()))
    }

    /// Lets something happen at the other end of a way, unless the message is lost. Returns whether
    /// it is on its way.
    fn send(&self, from: HostId, to: HostId, outlives: bool, arrive: impl FnOnce() + Send + 'static) -> bool {
        let link = self.network.links().lock().link(from, to);
        let (delay_ns, is_lost) = self
            .world
            .inner()
            .random(|random: &mut Random| (link.delay_ns(random), random.within(0..1000) < link.lost_per_mille));
        let mut state = self.state.lock();
        if link.is_cut || is_lost {
            state.counts.lost += 1;
            return false;
        }
        let straggling = state.straggling_per_mille;
        let late_ns = self.world.inner().random(|random| match random.within(0..1000) < straggling {
            _ if outlives => random.within(OUTLIVES_NS),
            true => random.within(STRAGGLES_NS),
            false => 0,
        });
        state.counts.straggled += u64::from(late_ns > 0);
        let at_ns = self.world.inner().clock.now_ns() + delay_ns + late_ns;
        let last_ns = state.last_ns.entry((from, to)).or_default();
        let overtakes = at_ns < *last_ns;
        *last_ns = at_ns.max(*last_ns);
        state.counts.reordered += u64::from(overtakes);
        state.counts.delivered += 1;
        drop(state);
        let links = self.network.links().clone();
        let arrive = move || {
            if !links.lock().link(from, to).is_cut {
                arrive();
            }
        };
        let way = (from.0 as u64) << 8 | to.0 as u64;
        self.world.inner().schedule(at_ns, Event::World(way, Box::new(arrive)));
        true
    }

    /// Asks a node. `ask` is called on its host, twice if the message is doubled.
    async fn ask<T, E, F, A>(
        self,
        from: HostKey,
        to: HostId,
        deadline: Option<Instant>,
        travel: Travel,
        ask: A,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: OfMessage,
        F: Future<Output = Result<T, E>> + Send + 'static,
        A: Fn(LocalReplica) -> F + Send + Sync + 'static,
    {
        let runtime = self.world.runtime(from.host);
        let Some((on, ..)) = self.server(to) else {
            return Err(E::not_delivered(self.unnoticed(&runtime, to, deadline).await));
        };
        let ask = Arc::new(ask);
        let (give, take) = oneshot::channel();
        // Of a question that outlives its key, either the double or the question itself straggles.
        let doubled_per_mille = if travel.outlives { 500 } else { self.state.lock().doubled_per_mille };
        let doubled =
            travel.may_double && self.world.inner().random(|random| random.within(0..1000) < doubled_per_mille);
        if doubled {
            self.state.lock().counts.doubled += 1;
            self.deliver(from.host, on, travel.outlives, ask.clone(), None);
        }
        if !self.deliver(from.host, on, travel.outlives && !doubled, ask, Some(give)) {
            return Err(E::not_delivered(self.unnoticed(&runtime, to, deadline).await));
        }
        let until = deadline.unwrap_or_else(|| runtime.now() + ANSWER_MAX);
        match within(&*runtime, Some(until), take).await {
            Ok(Ok(answer)) => answer,
            // The node has ended, or its answer was lost.
            Ok(Err(_)) => Err(E::without_answer(self.unnoticed(&runtime, to, deadline).await)),
            Err(_) => Err(E::without_answer(Error::Timeout)),
        }
    }

    /// Brings a question to a process, and its answer back.
    fn deliver<T, E, F, A>(
        &self,
        from: HostId,
        on: HostKey,
        outlives: bool,
        ask: Arc<A>,
        give: Option<oneshot::Sender<Result<T, E>>>,
    ) -> bool
    where
        T: Send + 'static,
        E: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
        A: Fn(LocalReplica) -> F + Send + Sync + 'static,
    {
        let wires = self.clone();
        let arrive = move || {
            // A message dies with the process that it was sent to.
            let Some((_, runtime, replica)) = wires.server(on.host).filter(|(present, ..)| *present == on) else {
                return;
            };
            let answers = async move {
                let answer = ask(replica).await;
                if let Some(give) = give {
                    let give = move || drop(give.send(answer));
                    wires.send(on.host, from, false, give);
                }
            };
            runtime.spawn(Box::pin(answers));
        };
        self.send(from, on.host, outlives, arrive)
    }

    /// Waits until a caller notices that there is no connection.
    async fn unnoticed(&self, runtime: &HostRuntime, to: HostId, deadline: Option<Instant>) -> Error {
        let noticed_ms = self.world.inner().random(|random| random.within(NOTICED));
        let noticed = runtime.sleep(Duration::from_millis(noticed_ms));
        match within(runtime, deadline, noticed).await {
            Ok(()) => StoreFailure::new(StoreFailureKind::Unreachable, format!("host {} is silent", to.0)).into(),
            Err(_) => Error::Timeout,
        }
    }
}

/// The failure of a question, which says whether it may have been executed.
trait OfMessage: Send + 'static {
    fn not_delivered(error: Error) -> Self;
    fn without_answer(error: Error) -> Self;
}

impl OfMessage for Error {
    fn not_delivered(error: Error) -> Self {
        error
    }

    fn without_answer(error: Error) -> Self {
        error
    }
}

impl OfMessage for PutFailure {
    fn not_delivered(error: Error) -> Self {
        Self::Refused(error)
    }

    /// The put may have been executed, whatever ended the wait.
    fn without_answer(_error: Error) -> Self {
        Self::Ended(Error::Timeout)
    }
}

impl Liveness for HostPeers {
    fn is_up(&self, node: NodeId) -> bool {
        Peers::is_up(self, node)
    }

    fn ended(&self, _node: NodeId, _outcome: RequestOutcome, _took: Duration) {}
}

/// The peers of one process.
pub(crate) struct HostPeers {
    pub(crate) wires: Wires,
    pub(crate) from: HostKey,
}

impl Peers for HostPeers {
    fn is_up(&self, node: NodeId) -> bool {
        let state = self.wires.state.lock();
        state.hosts.get(&node).is_some_and(|host| !state.believed_down.contains(&(self.from.host, *host)))
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        match self.wires.state.lock().hosts.get(&node) {
            Some(to) => Arc::new(Remote { wires: self.wires.clone(), from: self.from, to: *to }),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn transfer(&self, node: NodeId) -> Arc<dyn TransferClient> {
        match self.wires.state.lock().hosts.get(&node) {
            Some(to) => Arc::new(Remote { wires: self.wires.clone(), from: self.from, to: *to }),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn reaping(&self, node: NodeId) -> Arc<dyn ReapingClient> {
        match self.wires.state.lock().hosts.get(&node) {
            Some(to) => Arc::new(Remote { wires: self.wires.clone(), from: self.from, to: *to }),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn conditional(&self, node: NodeId) -> Arc<dyn ConditionalClient> {
        match self.wires.state.lock().hosts.get(&node) {
            Some(to) => Arc::new(Remote { wires: self.wires.clone(), from: self.from, to: *to }),
            None => Arc::new(UnreachableNode(node)),
        }
    }

    fn members(&self) -> Vec<NodeId> {
        self.followed().map(|state| state.members.keys().copied().collect()).unwrap_or_default()
    }

    fn may_stand_in(&self, node: NodeId) -> bool {
        self.followed().is_none_or(|state| state.may_stand_in(node))
    }

    fn was_removed(&self, node: NodeId) -> bool {
        self.followed().is_some_and(|state| state.removed.contains(&node))
    }

    fn is_marked_down(&self, node: NodeId) -> bool {
        self.followed().is_some_and(|state| state.members.get(&node) == Some(&MemberStatus::Down))
    }

    fn learn_placement(&self, from: NodeId, _at_least: RingVersion) -> BoxFuture<'static, ()> {
        let (wires, on) = (self.wires.clone(), self.from);
        Box::pin(async move {
            let Some(to) = wires.state.lock().hosts.get(&from).copied() else { return };
            let there = wires.clone();
            let known = wires.clone().ask(on, to, None, ONCE, move |_| {
                let followed = there.follower(to).and_then(|follower| follower.followed());
                async move { Ok::<_, Error>(followed) }
            });
            if let (Ok(Some(state)), Some(follower)) = (known.await, wires.follower(on.host)) {
                follower.adopt(state).await;
            }
        })
    }

    fn name(&self, node: NodeId) -> Option<String> {
        self.wires.state.lock().hosts.get(&node).map(|host| format!("node{}", host.0))
    }
}

impl HostPeers {
    fn followed(&self) -> Option<Arc<DecidedState>> {
        // The lock is free again before the log is asked.
        let follower = self.wires.follower(self.from.host);
        follower.and_then(|follower| follower.followed())
    }
}

/// The replicas of another node.
pub(crate) struct Remote {
    pub(crate) wires: Wires,
    pub(crate) from: HostKey,
    pub(crate) to: HostId,
}

impl ReplicaClient for Remote {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        let deadline = read.deadline;
        Box::pin(self.wires.clone().ask(self.from, self.to, deadline, REPEATABLE, move |to| to.read(read.clone())))
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        let deadline = store.deadline;
        let outlives = self.wires.state.lock().straggling_keys.contains_key(&store.key[..]);
        let travel = Travel { outlives, ..REPEATABLE };
        Box::pin(self.wires.clone().ask(self.from, self.to, deadline, travel, move |to| to.store(store.clone())))
    }

    /// A put must not be executed twice, so its message is not doubled.
    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        let (deadline, wires) = (put.deadline, self.wires.clone());
        wires.state.lock().counts.forwarded += 1;
        let asked = wires.ask(self.from, self.to, deadline, ONCE, move |to| to.coordinate(put.clone()));
        Box::pin(asked)
    }
}

impl Remote {
    /// Asks a question that may be asked twice.
    pub(crate) fn repeatable<Q, T, F, A>(&self, question: Q, ask: A) -> BoxFuture<'static, Result<T, Error>>
    where
        A: Fn(LocalReplica, Q) -> F + Send + Sync + 'static,
        Q: Clone + Send + Sync + 'static,
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let asked = self.wires.clone().ask(self.from, self.to, None, REPEATABLE, move |to| ask(to, question.clone()));
        Box::pin(asked)
    }
}

impl ConditionalClient for Remote {
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        let deadline = request.deadline;
        Box::pin(
            self.wires.clone().ask(self.from, self.to, deadline, REPEATABLE, move |to| to.promise(request.clone())),
        )
    }
}

impl TransferClient for Remote {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.repeatable(compare, |to, compare| to.compare(compare))
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.repeatable(push, |to, push| to.push(push))
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        self.repeatable(summarize, |to, summarize| to.summarize(summarize))
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        self.repeatable(give, |to, give| to.give(give))
    }
}

impl ReapingClient for Remote {
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        let (wires, host) = (self.wires.clone(), self.to);
        let asked = self.wires.clone().ask(self.from, host, None, REPEATABLE, move |to| {
            let (wires, request) = (wires.clone(), request.clone());
            async move {
                let class = ClassId { partition: request.round.partition, n: request.round.n_val };
                let was_filling = wires.is_filling(host, class);
                let reply = to.vote(request).await;
                if was_filling && reply.is_ok() && wires.is_filling(host, class) {
                    wires.witness.note_vote_of_filling(host, class);
                }
                reply
            }
        });
        Box::pin(asked)
    }

    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.repeatable(request, |to, request| ReapingClient::ask(&to, request))
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.repeatable(request, |to, request| to.remove(request))
    }

    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        self.repeatable(order, |to, order| to.order(order))
    }
}
