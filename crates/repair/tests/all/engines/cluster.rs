//! Several engines that are replicas of each other, in one process, on simulated disks. Their peers
//! are called directly.

use super::wires::Wires;
use bytes::Bytes;
use ombak_kv::replica::{
    AskRequest, Compare, Compared, ConditionalClient, CoverageClient, CoverageRequest, CoverageStream, ForwardedPut,
    Give, Giving, Ordered, PromiseReply, PromiseRequest, Push, Pushed, PutFailure, ReadReply, ReapOrder, ReapReply,
    ReapingClient, RemoveRequest, ReplicaClient, ReplicaRead, ReplicaStore, StoreKind, StoreMode, StoreReply,
    Summarize, Summary, TransferClient, UnreachableNode, Vote, VoteRequest, checksum_of,
};
use ombak_kv::{
    ClassId, DeleteMode, DeleteRequest, FillReason, GetOptions, GetReply, GetRequest, Kv, KvConfig, LocalReplica,
    Peers, PutOptions, PutReply, PutRequest,
};
use ombak_repair::Repair;
use ombak_ring::placement::{Phase, Placement, ProofOrder, Step, StepOf};
use ombak_ring::{Ring, RingVersion};
use ombak_runtime::BoxFuture;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, OpenMode};
use ombak_storage::{AppendMarks, BitcaskFactory, JournalConfig, ReadMode, Stored, SyncStrategy};
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, NodeId, Object, PropMap, Quorum, Sibling, VectorClock, stored_object};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const LIMIT: Duration = Duration::from_secs(60);
pub const RING_SIZE: u32 = 8;

/// Called with the node that is asked, when its answer to a comparison or a push is ready and
/// before the asking node gets it.
type Hook = Arc<dyn Fn(NodeId) + Send + Sync>;

/// What connects the engines.
#[derive(Default)]
pub struct Links {
    wires: Wires,
    on_answer: Option<Hook>,
    /// The number of pushed copies.
    pushed: u64,
    /// The number of questions for sums.
    asked_for_sums: u64,
    /// The number of versions that were compared one by one.
    compared: u64,
    /// The nodes that are no members any more.
    removed: BTreeSet<NodeId>,
    /// The members that an operator has marked as down.
    marked_down: BTreeSet<NodeId>,
    /// The members that leave.
    leaving: BTreeSet<NodeId>,
}

#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Links>>);

impl Peers for Network {
    fn is_up(&self, node: NodeId) -> bool {
        self.0.lock().wires.is_up(node)
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        Arc::new(Remote { node, network: self.clone() })
    }

    fn transfer(&self, node: NodeId) -> Arc<dyn TransferClient> {
        Arc::new(Remote { node, network: self.clone() })
    }

    fn conditional(&self, node: NodeId) -> Arc<dyn ConditionalClient> {
        Arc::new(Remote { node, network: self.clone() })
    }

    fn reaping(&self, node: NodeId) -> Arc<dyn ReapingClient> {
        Arc::new(Remote { node, network: self.clone() })
    }

    fn coverage(&self, node: NodeId) -> Arc<dyn CoverageClient> {
        Arc::new(Remote { node, network: self.clone() })
    }

    fn may_stand_in(&self, node: NodeId) -> bool {
        !self.0.lock().leaving.contains(&node)
    }

    fn was_removed(&self, node: NodeId) -> bool {
        self.0.lock().removed.contains(&node)
    }

    fn is_marked_down(&self, node: NodeId) -> bool {
        self.0.lock().marked_down.contains(&node)
    }

    fn name(&self, node: NodeId) -> Option<String> {
        Some(format!("name of {node}"))
    }
}

/// A replica behind the wires.
struct Remote {
    node: NodeId,
    network: Network,
}

impl Remote {
    fn target(&self) -> Arc<dyn ReplicaClient> {
        self.network.0.lock().wires.replica(self.node)
    }

    fn transfers(&self) -> Arc<dyn TransferClient> {
        let local = self.network.0.lock().wires.reach(self.node);
        local.map_or_else(|| Arc::new(UnreachableNode(self.node)) as _, |local| Arc::new(local) as _)
    }

    fn reached<C: ?Sized>(
        &self,
        local: impl FnOnce(LocalReplica) -> Arc<C>,
        unreachable: impl FnOnce(UnreachableNode) -> Arc<C>,
    ) -> Arc<C> {
        let reached = self.network.0.lock().wires.reach(self.node);
        reached.map_or_else(|| unreachable(UnreachableNode(self.node)), local)
    }

    fn hooked<T: Send + 'static>(
        &self,
        answer: BoxFuture<'static, Result<T, Error>>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let (network, node) = (self.network.clone(), self.node);
        Box::pin(async move {
            let answer = answer.await;
            let hook = network.0.lock().on_answer.clone();
            if let Some(hook) = hook {
                hook(node);
            }
            answer
        })
    }
}

impl ReplicaClient for Remote {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        self.target().read(read)
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        self.target().store(store)
    }

    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        self.target().coordinate(put)
    }
}

impl ReapingClient for Remote {
    fn vote(&self, request: VoteRequest) -> BoxFuture<'static, Result<ReapReply<Vote>, Error>> {
        self.reached::<dyn ReapingClient>(|local| Arc::new(local), |node| Arc::new(node)).vote(request)
    }

    fn ask(&self, request: AskRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.reached::<dyn ReapingClient>(|local| Arc::new(local), |node| Arc::new(node)).ask(request)
    }

    fn remove(&self, request: RemoveRequest) -> BoxFuture<'static, Result<ReapReply<bool>, Error>> {
        self.reached::<dyn ReapingClient>(|local| Arc::new(local), |node| Arc::new(node)).remove(request)
    }

    fn order(&self, order: ReapOrder) -> BoxFuture<'static, Result<Vec<Ordered>, Error>> {
        self.reached::<dyn ReapingClient>(|local| Arc::new(local), |node| Arc::new(node)).order(order)
    }
}

impl CoverageClient for Remote {
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        self.reached::<dyn CoverageClient>(|local| Arc::new(local), |node| Arc::new(node)).open(request)
    }
}

impl ConditionalClient for Remote {
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        self.reached::<dyn ConditionalClient>(|local| Arc::new(local), |node| Arc::new(node)).promise(request)
    }
}

impl TransferClient for Remote {
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>> {
        self.network.0.lock().compared += compare.versions.len() as u64;
        self.hooked(self.transfers().compare(compare))
    }

    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>> {
        self.network.0.lock().pushed += push.copies.len() as u64;
        self.hooked(self.transfers().push(push))
    }

    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>> {
        self.network.0.lock().asked_for_sums += 1;
        self.transfers().summarize(summarize)
    }

    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>> {
        self.transfers().give(give)
    }
}

/// A machine with its disk, and the engine that runs on it.
struct Machine {
    fs: Arc<FaultyFs>,
    /// How far its stores have come, in its memory.
    append_marks: Arc<AppendMarks>,
    id: NodeId,
    kv: Option<Kv>,
    /// Whether the power was lost and the engine still runs, without its disk.
    is_powerless: bool,
}

pub struct Cluster {
    pub network: Network,
    /// Locked before the network, never while the network is locked.
    machines: Mutex<Vec<Machine>>,
    ring: Ring,
    /// What all nodes follow.
    placement: Mutex<Placement>,
    change: fn(&mut KvConfig),
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.network.0.lock().wires.disconnect(|_| true);
        self.machines.lock().iter().filter_map(|machine| machine.kv.as_ref()).for_each(Kv::close);
    }
}

fn open(
    (fs, append_marks): (&Arc<FaultyFs>, &Arc<AppendMarks>),
    number: usize,
    network: &Network,
    change: fn(&mut KvConfig),
) -> Kv {
    let fs: Arc<dyn FileSystem> = fs.clone();
    let journal = JournalConfig { sync: SyncStrategy::None, ..JournalConfig::default() };
    let stores = BitcaskFactory::new(fs.clone(), Path::new("/bitcask"), journal).unwrap();
    let stores = stores.with_append_marks(Some(append_marks.clone()));
    let mut config = KvConfig::new(format!("node{number}"), "/data", Arc::new(stores));
    config.fs = fs;
    config.ring_size = RING_SIZE;
    config.io_threads = 1;
    config.peers = Arc::new(network.clone());
    config.timeout = LIMIT;
    config.delete_mode = DeleteMode::Keep;
    config.default_props.insert("allow_mult".into(), true.into());
    change(&mut config);
    Kv::open(config).unwrap()
}

#[allow(dead_code, reason = "each test file uses a part of it")]
impl Cluster {
    pub fn of(count: usize) -> Self {
        Self::configured(count, |_| ())
    }

    pub fn configured(count: usize, change: fn(&mut KvConfig)) -> Self {
        Self::with_owners(count, count, change)
    }

    /// A cluster in which only the first nodes own partitions.
    pub fn with_owners(count: usize, owners: usize, change: fn(&mut KvConfig)) -> Self {
        let network = Network::default();
        let mut machines = Vec::new();
        for number in 0..count {
            let (fs, append_marks) = (FaultyFs::new(number as u64), AppendMarks::in_memory(RING_SIZE));
            let kv = open((&fs, &append_marks), number, &network, change);
            let id = kv.identity().node_id;
            machines.push(Machine { fs, append_marks, id, kv: Some(kv), is_powerless: false });
        }
        let owners = machines[..owners].iter().map(|m| m.id).cycle();
        let owners: Vec<NodeId> = owners.take(RING_SIZE as usize).collect();
        let ring = Ring::from_owners(&owners, RingVersion::first(7)).unwrap();
        let placement = Mutex::new(Placement::of_ring(Arc::new(ring.clone())));
        let cluster = Self { network, machines: Mutex::new(machines), ring, placement, change };
        (0..count).for_each(|node| cluster.join(node));
        cluster
    }

    /// Connects the engine of a machine, and starts its work.
    fn join(&self, node: usize) {
        let kv = self.kv(node);
        kv.set_placement(self.placement()).unwrap();
        self.network.0.lock().wires.connect(&kv);
        Repair::of(&kv).start();
    }

    /// What all nodes follow.
    pub fn placement(&self) -> Placement {
        self.placement.lock().clone()
    }

    /// Lets some nodes adopt a placement, as a member does.
    pub async fn adopt(&self, nodes: impl IntoIterator<Item = usize>, placement: &Placement) {
        for node in nodes.into_iter().filter(|node| self.is_running(*node)) {
            let kv = self.kv(node);
            kv.prepare_placement(placement).await.unwrap();
            kv.set_placement(placement.clone()).unwrap();
        }
    }

    /// Lets all nodes adopt a placement.
    pub async fn follow(&self, placement: Placement) {
        *self.placement.lock() = placement.clone();
        self.adopt(0..self.count(), &placement).await;
    }

    /// Sets a goal with these owners, which come again and again.
    pub async fn set_goal(&self, owners: &[usize]) {
        let ids: Vec<NodeId> = owners.iter().map(|node| self.id(*node)).cycle().take(RING_SIZE as usize).collect();
        let goal = Ring::from_owners(&ids, self.placement().version().next()).unwrap();
        let ns = (1..=3).collect();
        self.follow(self.placement().with_goal(Arc::new(goal), &ns).unwrap()).await;
    }

    /// The placement after a step of all homes that can take it.
    pub fn after(&self, step: Step) -> Placement {
        let placement = self.placement();
        let steps = placement.homes().map(|home| StepOf { home: home.home(), seen: home.version().number, step });
        placement.after(&steps.collect::<Vec<_>>()).unwrap()
    }

    /// Takes a step of all homes that can take it, at all nodes.
    pub async fn step(&self, step: Step) {
        self.follow(self.after(step)).await;
    }

    /// Orders a member to prove all pending homes to the nodes that run.
    pub fn order_proofs_of(&self, node: usize) {
        let placement = self.placement();
        let pending = placement.homes().filter(|home| home.phase() == Phase::Pending);
        let order = |home: ombak_ring::placement::HomePlacement<'_>| {
            let to = (0..self.count()).filter(|node| self.is_running(*node)).map(|node| self.id(node)).collect();
            ProofOrder { home: home.home(), begun: home.version().number, to }
        };
        self.repair(node).set_proofs_wanted(pending.map(order).collect());
    }

    /// Whether a member has proved all pending homes.
    pub fn has_proved_all(&self, node: usize) -> bool {
        let placement = self.placement();
        let proved = self.repair(node).ring_report(placement.version()).proved;
        let pending = placement.homes().filter(|home| home.phase() == Phase::Pending);
        pending.into_iter().all(|home| {
            let is_of = |proved: &ombak_ring::placement::ProvedHome| {
                proved.home == home.home() && proved.begun == home.version().number
            };
            proved.iter().any(is_of)
        })
    }

    /// Removes a node from the cluster by force. A ring in use may still have it.
    pub async fn remove(&self, node: usize) {
        self.stop(node, Loss::Nothing).await;
        self.network.0.lock().removed.insert(self.id(node));
    }

    /// The node leaves the cluster.
    pub fn leaves(&self, node: usize) {
        self.network.0.lock().leaving.insert(self.id(node));
    }

    /// An operator marks a node as down.
    pub fn mark_down(&self, node: usize) {
        self.network.0.lock().marked_down.insert(self.id(node));
    }

    /// Waits until all nodes that run have proved all pending homes.
    pub async fn prove_all(&self) {
        let running: Vec<usize> = (0..self.count()).filter(|node| self.is_running(*node)).collect();
        running.iter().for_each(|node| self.order_proofs_of(*node));
        self.wait_until("all homes are proved", |c| running.iter().all(|node| c.has_proved_all(*node))).await;
    }

    /// Lets all nodes push copies and take them, or none.
    pub fn set_handoffs(&self, enabled: bool) {
        (0..self.count())
            .filter(|node| self.is_running(*node))
            .for_each(|n| self.repair(n).set_handoff(enabled, enabled));
    }

    /// The owners of a key in the ring that its home is to get.
    pub fn owners_after(&self, bucket: &Bucket, key: &str) -> Vec<usize> {
        let placement = self.placement();
        let set = placement.home(self.home_of(bucket, key)).other_set(3);
        set.into_iter().map(|id| self.number_of(id)).collect()
    }

    /// Stores a tombstone that covers what a node has of a key, in the node alone.
    pub async fn store_tombstone(&self, node: usize, bucket: &Bucket, key: &str, clock: &VectorClock) {
        let object = Object { clock: clock.clone(), siblings: vec![Sibling::tombstone()] };
        let store = self.copy_of(node, bucket, key, &object);
        self.kv(node).local_replica().store(store).await.unwrap();
    }

    /// Stores a version that another node has, in one node alone.
    pub async fn store_version(&self, node: usize, bucket: &Bucket, key: &str, n: u32, found: &Stored) {
        let object = stored_object::decode(&found.head, found.body.as_ref()).unwrap();
        let (head, body) = (found.head.clone(), found.body.clone().unwrap_or_default());
        let store = ReplicaStore { n, head, body, ..self.copy_of(node, bucket, key, &object) };
        self.kv(node).local_replica().store(store).await.unwrap();
    }

    /// A push of one value to the first node.
    pub fn push_of(&self, bucket: &Bucket, key: &str, value: &'static str) -> Push {
        let object =
            Object { clock: VectorClock::new(), siblings: vec![Sibling::new(Bytes::from_static(value.as_bytes()))] };
        let copy = self.copy_of(0, bucket, key, &object);
        let class = ClassId { partition: copy.partition, n: copy.n };
        let copies = vec![copy];
        Push { class, checksum: Some(checksum_of(&copies)), copies, synced: true }
    }

    fn copy_of(&self, node: usize, bucket: &Bucket, key: &str, object: &Object) -> ReplicaStore {
        let (mut storage_key, mut head) = (Vec::new(), Vec::new());
        encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
        stored_object::encode_head(object, &mut head);
        ReplicaStore {
            partition: self.home_of(bucket, key),
            n: 3,
            ring: self.placement().version(),
            key: storage_key.into(),
            head: head.into(),
            body: object.siblings[0].value.clone(),
            stored_secs: None,
            kind: StoreKind::default(),
            mode: StoreMode::Merge,
            noted: Some(self.kv(node).counter()),
            synced: false,
            deadline: None,
        }
    }

    pub fn kv(&self, node: usize) -> Kv {
        self.machines.lock()[node].kv.clone().expect("the node runs")
    }

    pub fn repair(&self, node: usize) -> Repair {
        Repair::of(&self.kv(node))
    }

    pub fn is_running(&self, node: usize) -> bool {
        self.machines.lock()[node].kv.is_some()
    }

    pub fn count(&self) -> usize {
        self.machines.lock().len()
    }

    pub fn id(&self, node: usize) -> NodeId {
        self.machines.lock()[node].id
    }

    pub fn number_of(&self, id: NodeId) -> usize {
        self.machines.lock().iter().position(|machine| machine.id == id).unwrap()
    }

    /// The owners of a key, in the order of their positions.
    pub fn owners(&self, bucket: &Bucket, key: &str, n: u32) -> Vec<usize> {
        let hash = ombak_ring::KeyHash::of_key(bucket, key.as_bytes());
        let set = self.placement().home(self.ring.home_of(&hash)).replica_set(n);
        set.into_iter().map(|id| self.number_of(id)).collect()
    }

    /// The home partition of a key.
    pub fn home_of(&self, bucket: &Bucket, key: &str) -> u32 {
        self.ring.home_of(&ombak_ring::KeyHash::of_key(bucket, key.as_bytes()))
    }

    pub fn set_down(&self, node: usize, down: bool) {
        let id = self.id(node);
        self.network.0.lock().wires.set_down(id, down);
    }

    pub fn set_cut(&self, node: usize, cut: bool) {
        let id = self.id(node);
        self.network.0.lock().wires.set_cut(id, cut);
    }

    /// Creates and activates a bucket type on every node, and returns a bucket of it.
    pub fn create_type(&self, name: &str, n_val: u32) -> Bucket {
        for node in 0..self.count() {
            let kv = self.kv(node);
            let props: PropMap =
                [("n_val".to_owned(), n_val.into()), ("allow_mult".to_owned(), true.into())].into_iter().collect();
            kv.buckets().create_type(name.as_bytes(), &props).unwrap();
            kv.buckets().activate_type(name.as_bytes()).unwrap();
        }
        Bucket::typed(name.to_owned(), "b")
    }

    /// Calls `hook` before each answer to a comparison or push arrives.
    pub fn on_answer(&self, hook: impl Fn(NodeId) + Send + Sync + 'static) {
        self.network.0.lock().on_answer = Some(Arc::new(hook));
    }

    /// Removes the hook. When this returns, no answer calls it any more.
    pub fn no_hook(&self) {
        let Some(hook) = self.network.0.lock().on_answer.take() else { return };
        while Arc::strong_count(&hook) > 1 {
            std::thread::yield_now();
        }
    }

    /// The number of copies that were pushed so far.
    pub fn pushed(&self) -> u64 {
        self.network.0.lock().pushed
    }

    /// The number of questions for sums so far.
    pub fn asked_for_sums(&self) -> u64 {
        self.network.0.lock().asked_for_sums
    }

    /// The number of versions that were compared one by one so far.
    pub fn compared(&self) -> u64 {
        self.network.0.lock().compared
    }

    /// Ends the process of a node at once; its machine keeps what `loss` leaves. The node is down.
    pub async fn stop(&self, node: usize, loss: Loss) {
        self.set_down(node, true);
        let id = self.id(node);
        let kv = {
            let mut machines = self.machines.lock();
            if !std::mem::take(&mut machines[node].is_powerless) {
                machines[node].fs = machines[node].fs.restart(loss);
                if loss.ends_machine() {
                    machines[node].append_marks = AppendMarks::in_memory(RING_SIZE);
                }
            }
            machines[node].kv.take()
        };
        self.network.0.lock().wires.disconnect(|node| node == id);
        if let Some(kv) = kv {
            // The files are gone for it; this ends its threads.
            tokio::task::spawn_blocking(move || kv.close()).await.unwrap();
        }
    }

    /// Takes the power of a node, and everything unsynced with it. The engine still runs, but
    /// reaches neither its disk nor the other nodes.
    pub fn lose_power(&self, node: usize) {
        let mut machines = self.machines.lock();
        if machines[node].kv.is_some() && !machines[node].is_powerless {
            machines[node].fs = machines[node].fs.restart(Loss::Everything);
            machines[node].append_marks = AppendMarks::in_memory(RING_SIZE);
            machines[node].is_powerless = true;
            self.network.0.lock().wires.disconnect(|other| other == machines[node].id);
        }
    }

    /// The nodes that have no power.
    pub fn powerless(&self) -> Vec<usize> {
        let machines = self.machines.lock();
        (0..machines.len()).filter(|&node| machines[node].is_powerless).collect()
    }

    /// Ends the process of a node that has no power.
    pub async fn finish_power_loss(&self, node: usize) {
        let kv = {
            let mut machines = self.machines.lock();
            machines[node].is_powerless = false;
            machines[node].kv.take()
        };
        if let Some(kv) = kv {
            tokio::task::spawn_blocking(move || kv.close()).await.unwrap();
        }
    }

    /// Ends the process of a node in order. The node is down.
    pub async fn close(&self, node: usize) {
        self.set_down(node, true);
        let (id, kv) = (self.id(node), self.kv(node));
        tokio::task::spawn_blocking(move || kv.close()).await.unwrap();
        self.network.0.lock().wires.disconnect(|node| node == id);
        let mut machines = self.machines.lock();
        machines[node].kv = None;
        machines[node].fs = machines[node].fs.restart(Loss::Nothing);
    }

    /// Waits until a node has saved once what it knows of its replicas.
    pub async fn wait_until_saved(&self, node: usize) {
        let fs = self.machines.lock()[node].fs.clone();
        self.wait_until("it is saved", |_| fs.length(Path::new("/data/replicas.json")).is_ok()).await;
    }

    /// Starts a node that was stopped, with its disk. The node is up.
    pub fn start(&self, node: usize) {
        self.start_knowing(node, None);
    }

    /// Starts a node. Before it joins, it is told why its replicas may lack something, as a member
    /// is whose directory is older than what its cluster knows.
    pub fn start_knowing(&self, node: usize, loss: Option<FillReason>) {
        self.start_alone(node);
        if let Some(loss) = loss {
            assert!(self.kv(node).set_all_filling(loss));
        }
        self.learn_ring(node);
    }

    /// Starts a node that was stopped, with its disk. It has a ring of its own, as a member has
    /// until it knows that of its cluster.
    pub fn start_alone(&self, node: usize) {
        let mut machines = self.machines.lock();
        let disk = (&machines[node].fs, &machines[node].append_marks);
        machines[node].kv = Some(open(disk, node, &self.network, self.change));
    }

    /// Gives a node that has started alone the ring of the cluster. The node is up.
    pub fn learn_ring(&self, node: usize) {
        self.join(node);
        self.set_down(node, false);
    }

    /// Damages the newest copy of a key on the disk of a node.
    pub fn damage(&self, node: usize, bucket: &Bucket, key: &str) {
        let storage_key = self.flip(node, bucket, key);
        assert!(!self.is_running(node) || self.is_unreadable(node, &storage_key));
    }

    /// Damages the newest record of a key on the disk of a node that does not run, so that nobody
    /// can say which key it is of.
    pub fn damage_key(&self, node: usize, bucket: &Bucket, key: &str) {
        let (path, at, _) = self.place_of(node, bucket, key);
        self.disk(node).flip_bit(&path, at as u64 * 8).unwrap();
    }

    /// Undoes the damage of a copy.
    pub fn heal(&self, node: usize, bucket: &Bucket, key: &str) {
        let storage_key = self.flip(node, bucket, key);
        assert!(!self.is_unreadable(node, &storage_key));
    }

    /// Flips a bit in the newest copy of a key on the disk of a node, behind its key.
    fn flip(&self, node: usize, bucket: &Bucket, key: &str) -> Vec<u8> {
        let (path, at, storage_key) = self.place_of(node, bucket, key);
        let fs = self.disk(node);
        fs.flip_bit(&path, (at + storage_key.len() + 2) as u64 * 8).unwrap();
        storage_key
    }

    /// Lets reads of the newest copy of a key fail with EIO, on the disk of a node.
    pub fn lose_sector(&self, node: usize, bucket: &Bucket, key: &str) {
        let (path, at, storage_key) = self.place_of(node, bucket, key);
        let behind = (at + storage_key.len() + 2) as u64;
        self.disk(node).set_unreadable(&path, behind..behind + 1).unwrap();
        assert!(!self.is_running(node) || self.is_unreadable(node, &storage_key));
    }

    /// Lets all sectors on the disk of a node be read again.
    pub fn regain_sectors(&self, node: usize) {
        let fs = self.disk(node);
        fs.set_media_errors(0);
        store_files(&fs).iter().for_each(|path| fs.set_readable(path).unwrap());
    }

    /// The disk of a node.
    pub fn disk(&self, node: usize) -> Arc<FaultyFs> {
        self.machines.lock()[node].fs.clone()
    }

    /// Removes a file from the disk of a node that does not run.
    pub fn remove_file(&self, node: usize, path: &Path) {
        let disk = self.disk(node);
        disk.remove_file(path).unwrap();
        path.parent().into_iter().for_each(|dir| disk.sync_dir(dir).unwrap());
    }

    /// Where the newest copy of a key is on the disk of a node, and the key in the store.
    fn place_of(&self, node: usize, bucket: &Bucket, key: &str) -> (PathBuf, usize, Vec<u8>) {
        let mut storage_key = Vec::new();
        encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
        let fs = self.disk(node);
        let mut newest = None;
        for path in store_files(&fs).into_iter().filter(|path| path.extension() != Some("hint".as_ref())) {
            let bytes = whole(&fs, &path);
            let found = (0..bytes.len()).rev().find(|at| bytes[*at..].starts_with(&storage_key));
            newest = found.map(|at| (path, at)).or(newest);
        }
        let (path, at) = newest.expect("it has a copy");
        (path, at, storage_key)
    }

    fn is_unreadable(&self, node: usize, storage_key: &[u8]) -> bool {
        self.kv(node).stores().any(|(_, store)| store.get(storage_key, ReadMode::Blocking).is_err())
    }

    /// Limits the room on the disk of a node.
    pub fn set_free_bytes(&self, node: usize, bytes: Option<u64>) {
        self.machines.lock()[node].fs.set_free_bytes(bytes);
    }

    /// The disk of a node as it is now, with all its inodes, as a hypervisor copies it.
    pub fn snapshot(&self, node: usize) -> Arc<FaultyFs> {
        self.machines.lock()[node].fs.snapshot()
    }

    /// Takes the stores of a node that was stopped, and leaves its own files.
    pub fn lose_stores(&self, node: usize) {
        let mut machines = self.machines.lock();
        let disk = FaultyFs::new(1);
        copy_dir(&machines[node].fs, &disk, Path::new("/data"));
        machines[node].fs = disk;
    }

    /// Gives a node that was stopped another disk, and another machine.
    pub fn set_disk(&self, node: usize, disk: &FaultyFs) {
        let mut machines = self.machines.lock();
        machines[node].append_marks = AppendMarks::in_memory(RING_SIZE);
        machines[node].fs = disk.snapshot();
    }

    pub async fn delete(&self, through: usize, bucket: &Bucket, key: &str, w: u32) -> Result<(), Error> {
        let key = Bytes::from(key.to_owned());
        let put = PutOptions { w: count(w), ..PutOptions::default() };
        let get = GetOptions { r: count(w), ..GetOptions::default() };
        let request = DeleteRequest { bucket: bucket.clone(), key, clock: None, get, put, rw: None };
        self.kv(through).delete(request).await.map(drop)
    }

    /// The keys of a bucket, as a node lists them.
    pub async fn list(&self, through: usize, bucket: &Bucket) -> Result<BTreeSet<String>, Error> {
        let mut listing = self.kv(through).list_keys(bucket, Some(LIMIT))?;
        let mut keys = BTreeSet::new();
        while let Some(batch) = listing.next().await {
            keys.extend(batch?.into_iter().map(|key| String::from_utf8(key.to_vec()).unwrap()));
        }
        Ok(keys)
    }

    pub async fn put(
        &self,
        through: usize,
        bucket: &Bucket,
        key: &str,
        value: &str,
        options: PutOptions,
    ) -> Result<(), Error> {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(Bytes::from(value.to_owned()))] };
        self.put_object(through, bucket, key, object, options).await
    }

    pub async fn put_object(
        &self,
        through: usize,
        bucket: &Bucket,
        key: &str,
        object: Object,
        options: PutOptions,
    ) -> Result<(), Error> {
        let key = Some(Bytes::from(key.to_owned()));
        self.kv(through).put(PutRequest { bucket: bucket.clone(), key, object, options }).await.map(drop)
    }

    pub async fn get(
        &self,
        through: usize,
        bucket: &Bucket,
        key: &str,
        options: GetOptions,
    ) -> Result<GetReply, Error> {
        self.kv(through).get(GetRequest { bucket: bucket.clone(), key: Bytes::from(key.to_owned()), options }).await
    }

    /// The digest of the version that a node's own store has.
    pub fn stored(&self, node: usize, bucket: &Bucket, key: &str) -> Option<u64> {
        self.head(node, bucket, key).map(|found| found.digest)
    }

    /// The sequence number of what a node's own store has of a key.
    pub fn stored_seq(&self, node: usize, bucket: &Bucket, key: &str) -> Option<u64> {
        self.head(node, bucket, key).map(|found| found.seq)
    }

    fn head(&self, node: usize, bucket: &Bucket, key: &str) -> Option<Stored> {
        let mut storage_key = Vec::new();
        encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
        let kv = self.kv(node);
        kv.stores().find_map(|(_, store)| store.head(&storage_key, ReadMode::Blocking).unwrap())
    }

    /// What a node's own store has of a key, for people.
    pub fn describe(&self, node: usize, bucket: &Bucket, key: &str) -> String {
        let mut storage_key = Vec::new();
        encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
        let kv = self.kv(node);
        let found = kv.stores().find_map(|(_, store)| store.get(&storage_key, ReadMode::Blocking).unwrap());
        let Some(found) = found else { return "nothing".into() };
        let object = stored_object::decode(&found.head, found.body.as_ref()).unwrap();
        let value = |s: &Sibling| {
            format!("{} of {:?}", String::from_utf8_lossy(&s.value), s.meta.dot.as_ref().map(|dot| &dot.actor))
        };
        let values: Vec<_> = object.siblings.iter().map(value).collect();
        format!("seq {}, {}", found.seq, values.join(", "))
    }

    /// The nodes that run and hold a version of a key.
    pub fn holders(&self, bucket: &Bucket, key: &str) -> Vec<usize> {
        (0..self.count()).filter(|&node| self.is_running(node) && self.stored(node, bucket, key).is_some()).collect()
    }

    /// Waits until a condition holds.
    pub async fn wait_until(&self, what: &str, is_true: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !is_true(self) {
            if Instant::now() >= deadline {
                let settled: Vec<_> =
                    (0..self.count()).filter(|&n| self.is_running(n)).map(|n| self.repair(n).settled()).collect();
                panic!("{what}: not after {LIMIT:?}; {settled:?}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until every node that runs is settled.
    pub async fn wait_until_settled(&self) {
        let all = |c: &Self| (0..c.count()).all(|node| !c.is_running(node) || c.repair(node).settled().is_settled());
        self.wait_until("everything lies where it belongs", all).await;
    }

    /// Checks that exactly the owners hold a key, all with the same version.
    pub fn assert_only_owners_hold(&self, bucket: &Bucket, key: &str, n: u32) {
        let mut owners = self.owners(bucket, key, n);
        owners.sort_unstable();
        assert_eq!(self.holders(bucket, key), owners, "the holders of {key}");
        let versions: BTreeSet<_> = owners.iter().map(|&node| self.stored(node, bucket, key)).collect();
        let copies = || owners.iter().map(|&node| format!("\n  node {node}: {}", self.describe(node, bucket, key)));
        assert_eq!(versions.len(), 1, "the versions of {key}, n={n}: {}", copies().collect::<String>());
    }
}

#[allow(dead_code, reason = "each test file uses a part of it")]
pub fn bucket() -> Bucket {
    Bucket::untyped("b")
}

pub fn count(n: u32) -> Option<Quorum> {
    Some(Quorum::Count(n))
}

/// A disk with copies of all files, as `cp -r` makes it: each file has another inode.
#[allow(dead_code, reason = "each test file uses a part of it")]
pub fn copied(disk: &FaultyFs) -> Arc<FaultyFs> {
    let copy = FaultyFs::new(1);
    for number in 0..500 {
        copy.open(Path::new(&format!("/other{number}")), OpenMode::CreateNew).unwrap();
    }
    for dir in ["/data", "/bitcask"] {
        copy_dir(disk, &copy, Path::new(dir));
    }
    copy
}

fn copy_dir(from: &FaultyFs, to: &FaultyFs, dir: &Path) {
    to.create_dir_all(dir).unwrap();
    for name in from.list(dir).unwrap() {
        let path = dir.join(name);
        if from.list(&path).is_ok() {
            copy_dir(from, to, &path);
            continue;
        }
        let bytes = whole(from, &path);
        let file = to.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&bytes, 0).unwrap();
        file.sync_data().unwrap();
    }
    to.sync_dir(dir).unwrap();
}

/// The files of the stores on a disk.
fn store_files(fs: &FaultyFs) -> Vec<PathBuf> {
    let root = Path::new("/bitcask");
    let dirs = fs.list(root).unwrap().into_iter().map(|partition| root.join(partition));
    dirs.flat_map(|dir| fs.list(&dir).unwrap_or_default().into_iter().map(move |name| dir.join(name))).collect()
}

fn whole(fs: &FaultyFs, path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; fs.length(path).unwrap() as usize];
    let read = fs.open(path, OpenMode::Read).unwrap().read_at(&mut bytes, 0, ReadMode::Blocking).unwrap();
    assert_eq!(read, bytes.len());
    bytes
}
