//! The nodes of a run: what each of them has, and what can be done to them.

use crate::changes::Decided;
use crate::disks::{Disks, NODE_DIR, STORES_DIR};
use crate::made::Made;
use crate::network::{SimNetwork, address_of};
use crate::oracle::{HostWitness, Key, Witness};
use crate::random::Random;
use crate::times;
use crate::watched_stores::{WatchedFactory, WatchedStores};
use crate::wires::Wires;
use crate::world::{HostId, World};

use ombak_cluster::{Detection, MemberNode, MemberParts, MemberTiming, NobodyIsUp, NodeParts, Seeds};
use ombak_kv::{BrokenRule, DeleteMode, Kv, KvConfig, ScrubConfig, head_terms, is_broken};
use ombak_peer::handshake::Secret;
use ombak_repair::Repair;
use ombak_ring::placement::{Decision, Placement, Step};
use ombak_ring::{KeyHash, Ring};
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::fs::{DiskReserve, ReservedFs};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, MemoryConfig, MemoryFactory, MergeConfig, SyncStrategy,
};
use ombak_types::NodeId;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The ring size of all runs.
pub const RING_SIZE: u32 = 8;
/// How many successive partitions shall have distinct owners.
pub(crate) const TARGET_N_VAL: u32 = 4;
/// How many successive partitions shall have distinct locations.
pub(crate) const TARGET_LOCATION_N_VAL: u32 = 3;
/// The port on which nodes listen for each other.
pub(crate) const PEER_PORT: u16 = 7;
/// The secret of the cluster.
const SECRET: &[u8] = b"the secret of a simulated cluster";
/// The time limit of requests that set none.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// When tombstones may be removed.
const REAP_AFTER: Duration = Duration::from_millis(200);
/// How often the stores do background work.
const MAINTAIN: Duration = Duration::from_secs(1);
/// How often stores with that setting sync.
const SYNC_INTERVAL: Duration = Duration::from_secs(2);
/// The length of a data file. A run fills several.
const FILE_BYTES_MAX: u64 = 16 << 10;
/// What a node can allocate for what it must note on a full disk.
const RESERVE_BYTES: u64 = 512 << 10;

/// The backend of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// bitcask that syncs only where a request asks for it.
    Bitcask,
    /// bitcask that syncs at an interval.
    BitcaskInterval,
    /// In memory: the end of the process is the end of the store.
    Memory,
}

/// What nodes have repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairCounts {
    /// Reads that have repaired a replica.
    pub read_repairs: u64,
    /// Keys that were pushed to where they belong.
    pub pushed_keys: u64,
    /// Marks of a peer that missed writes and has got them.
    pub owed_paid: u64,
    /// Classes that may have lacked something and are full again.
    pub filled: u64,
    /// Puts of members that another node has coordinated.
    pub forwarded: u64,
    /// Exchanges after which another primary held everything.
    pub exchanges: u64,
    /// Versions that exchanges have brought to other primaries.
    pub exchange_repaired: u64,
    /// Versions that exchanges have dropped, because they had been removed everywhere else.
    pub exchange_dropped: u64,
}

/// What a node is to its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberStage {
    /// Nothing runs on its machine yet.
    Spare,
    /// It runs, and is about to be a member. No client uses it.
    Joining,
    /// It is a member.
    Member,
    /// It was a member. What is on its disks counts no more.
    Gone,
}

/// A node.
pub struct Node {
    /// Its host.
    pub host: HostId,
    /// What it is to its cluster.
    pub stage: MemberStage,
    /// Its backend.
    pub backend: BackendKind,
    /// Its identity, once it has started.
    pub id: Option<NodeId>,
    /// Its engine while it runs.
    pub kv: Option<Kv>,
    /// The member around the engine, if nodes are connected by streams.
    pub(crate) member: Option<MemberNode>,
    /// The stores of its process, from the beginning of its start on.
    stores: Option<Arc<WatchedStores>>,
    /// Its disks.
    pub disks: Disks,
    /// What its process has allocated on the disk of its own files, or can allocate.
    pub(crate) reserve: Option<Arc<DiskReserve>>,
    /// Whether its disks are full while it leaves.
    pub(crate) leaves_on_full_disks: bool,
    /// Whether a record of it was damaged, or its stores were set back, since its stores began.
    pub is_damaged: bool,
    /// Whether a start may take some of that damage for writes that were interrupted.
    pub may_hide_damage: bool,
    /// The marks that it had at the last look.
    owed: u64,
    /// The classes that might have lacked something at the last look.
    filling: u64,
}

impl Node {
    fn new(host: HostId, stage: MemberStage, backend: BackendKind, disks: Disks) -> Self {
        Self {
            host,
            stage,
            backend,
            id: None,
            kv: None,
            member: None,
            stores: None,
            disks,
            reserve: None,
            leaves_on_full_disks: false,
            is_damaged: false,
            may_hide_damage: false,
            owed: 0,
            filling: 0,
        }
    }

    /// The store of a partition, while the node has it open.
    pub fn store(&self, partition: u32) -> Option<Arc<dyn Backend>> {
        self.stores.as_ref()?.get(partition)
    }
}

/// How nodes reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wiring {
    /// The engines call each other by messages of their own: each goes its own way.
    Messages,
    /// Members with their transport, failure detection and metadata, over streams.
    Streams,
}

/// The backends of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backends {
    /// bitcask, and memory on at most one node in three. No listings and index queries: the order
    /// that bitcask builds for them lies in files of a tree library, which knows no simulated
    /// disks.
    Mixed,
    /// Memory everywhere, with listings and index queries.
    OnlyMemory,
    /// bitcask everywhere, so that no process takes a store with it.
    OnlyBitcask,
}

/// The machines of a run.
#[derive(Clone, Copy, Debug)]
pub struct Machines {
    /// How many nodes form the cluster.
    pub nodes: usize,
    /// How many more machines there are, on which nodes may start later.
    pub spares: usize,
    /// How nodes reach each other.
    pub wiring: Wiring,
    /// What nodes store in.
    pub backends: Backends,
}

/// All nodes.
pub struct Cluster {
    /// The world.
    pub world: World,
    /// The network between them.
    pub network: SimNetwork,
    /// The messages between them.
    pub wires: Wires,
    /// The nodes; the first one is on host 1.
    pub nodes: Vec<Node>,
    /// How the nodes reach each other.
    pub wiring: Wiring,
    /// What the nodes store in.
    pub backends: Backends,
    /// What is decided about members and placement, if engines are connected by single messages.
    pub(crate) decided: Decided,
    /// How many homes went back to the ring in force.
    pub(crate) aborted_homes: u64,
    /// Why homes waited in the last round of the driver, where engines are connected by messages.
    pub(crate) obstacles: Vec<String>,
    /// The ring size of nodes that start.
    pub(crate) ring_size: u32,
    /// Whether members have the times of the program in place of those of runs.
    pub(crate) has_default_times: bool,
    /// Whether the file systems of stores cannot tell what is in memory, as that of tmpfs, so that
    /// no read of a file is allowed on a network thread.
    pub(crate) is_nothing_cached: bool,
    /// Values of data types of up to this many bytes are written as a whole. `None`: there are no
    /// bucket types with data types.
    pub(crate) whole_bytes_max: Option<usize>,
    ring: Option<Arc<Ring>>,
    random: Random,
    made: Made,
    repairs: RepairCounts,
    witness: Witness,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[error("the node on host {host} does not start: {why}")]
pub struct NoStart {
    /// The number of its host.
    pub host: usize,
    /// The error.
    pub why: String,
}

impl Cluster {
    /// The machines of a cluster, on which nothing runs yet.
    pub fn new(world: &World, machines: Machines, made: &Made, witness: Witness) -> Self {
        let Machines { nodes: count, spares, wiring, backends } = machines;
        let network = SimNetwork::new(world, count + spares);
        let wires = Wires::new(world, &network, &witness);
        let mut random = world.fork_random();
        let mut nodes = Vec::new();
        for host in (1..=count + spares).map(HostId) {
            let backend = *random.pick(&[BackendKind::Bitcask, BackendKind::BitcaskInterval, BackendKind::Memory]);
            // At most one node in three may forget everything.
            let may_forget = host.0 % 3 == 0;
            let backend = match (backends, backend) {
                (Backends::OnlyMemory, _) => BackendKind::Memory,
                (Backends::OnlyBitcask, BackendKind::Memory) => BackendKind::Bitcask,
                (Backends::OnlyBitcask, backend) => backend,
                (Backends::Mixed, BackendKind::Memory) if !may_forget => BackendKind::Bitcask,
                (Backends::Mixed, backend) => backend,
            };
            let stage = if host.0 <= count { MemberStage::Member } else { MemberStage::Spare };
            nodes.push(Node::new(host, stage, backend, Disks::new(random.next(), &world.runtime(host))));
        }
        made.note("the network".to_owned(), &network.streams);
        let (world, made) = (world.clone(), made.clone());
        Self {
            world,
            network,
            wires,
            nodes,
            wiring,
            backends,
            decided: Decided::default(),
            aborted_homes: 0,
            obstacles: Vec::new(),
            ring_size: RING_SIZE,
            has_default_times: false,
            is_nothing_cached: false,
            whole_bytes_max: None,
            ring: None,
            random,
            made,
            repairs: RepairCounts::default(),
            witness,
        }
    }

    /// What nodes have repaired, also those whose process has ended.
    pub const fn repairs(&self) -> RepairCounts {
        self.repairs
    }

    /// Looks which marks and fillings have gone since the last look.
    pub(crate) fn look_at_repairs(&mut self) {
        for node in &mut self.nodes {
            let Some(kv) = &node.kv else { continue };
            let (owed, filling) = (kv.owed_marks().len() as u64, kv.filling_classes().len() as u64);
            self.repairs.owed_paid += node.owed.saturating_sub(owed);
            self.repairs.filled += node.filling.saturating_sub(filling);
            (node.owed, node.filling) = (owed, filling);
        }
    }

    /// Counts what a process has done that is about to end.
    fn count_repairs(&mut self, host: HostId) {
        let node = &mut self.nodes[host.0 - 1];
        let Some(kv) = &node.kv else { return };
        let read_repairs =
            kv.stats().spirals().iter().find(|(name, _)| *name == "read_repairs").map_or(0, |(_, s)| s.total());
        self.repairs.read_repairs += read_repairs;
        self.repairs.pushed_keys += Repair::of(kv).pushed().0;
        let classes = Repair::of(kv).exchange_figures().map(|figures| figures.classes).unwrap_or_default();
        for class in classes.values() {
            self.repairs.exchanges += class.exchanges;
            self.repairs.exchange_repaired += class.repaired;
            self.repairs.exchange_dropped += class.dropped;
        }
        if let Some(member) = &node.member {
            self.repairs.forwarded += member.node().replica_counts().puts_forwarded;
        }
        (node.owed, node.filling) = (0, 0);
    }

    /// The node on a host.
    pub fn node(&self, host: HostId) -> &Node {
        &self.nodes[host.0 - 1]
    }

    pub(crate) fn node_mut(&mut self, host: HostId) -> &mut Node {
        &mut self.nodes[host.0 - 1]
    }

    /// The hosts of all nodes that are members, or about to be.
    pub fn hosts(&self) -> Vec<HostId> {
        let runs = |node: &&Node| matches!(node.stage, MemberStage::Member | MemberStage::Joining);
        self.nodes.iter().filter(runs).map(|node| node.host).collect()
    }

    /// The engines that run on these hosts.
    pub(crate) fn engines(&self) -> Vec<(HostId, Kv)> {
        self.hosts().into_iter().filter_map(|host| Some((host, self.node(host).kv.clone()?))).collect()
    }

    /// The hosts of all members.
    pub fn member_hosts(&self) -> Vec<HostId> {
        self.nodes.iter().filter(|node| node.stage == MemberStage::Member).map(|node| node.host).collect()
    }

    /// The hosts of all machines that may have a part: nodes that are gone have none.
    pub fn present_hosts(&self) -> Vec<HostId> {
        self.nodes.iter().filter(|node| node.stage != MemberStage::Gone).map(|node| node.host).collect()
    }

    /// Whether a host and more than half of the members can exchange messages.
    pub(crate) fn is_connected(&self, host: HostId) -> bool {
        let members = self.member_hosts();
        let links = self.network.links().lock();
        let is_linked = |other: &&HostId| !links.link(host, **other).is_cut && !links.link(**other, host).is_cut;
        members.iter().filter(is_linked).count() * 2 > members.len()
    }

    /// The n of all buckets.
    pub(crate) fn all_n_vals(&self) -> BTreeSet<u32> {
        let running = self.nodes.iter().filter_map(|node| node.kv.as_ref());
        running.flat_map(|kv| kv.buckets().snapshot().all_n_vals()).collect()
    }

    /// Notes what the driver has decided.
    pub(crate) fn note_decision(&mut self, decision: &Decision) {
        self.aborted_homes += decision.steps.iter().filter(|step| step.step == Step::Abort).count() as u64;
        self.obstacles = decision.obstacles.iter().map(|(why, homes)| format!("{why:?} {homes:?}")).collect();
    }

    /// The ring, once the nodes have formed a cluster.
    pub const fn ring(&self) -> Option<&Arc<Ring>> {
        self.ring.as_ref()
    }

    pub(crate) fn set_ring(&mut self, ring: Arc<Ring>) {
        self.ring = Some(ring);
    }

    /// The newest placement that a node has put in force, once there is a ring.
    pub(crate) fn placement(&self) -> Option<Arc<Placement>> {
        let ring = self.ring()?;
        let first = || Arc::new(Placement::of_ring(ring.clone()));
        Some(self.witness.newest_placement().filter(|it| it.version() >= ring.version()).unwrap_or_else(first))
    }

    /// The host of a node.
    pub(crate) fn host_of(&self, id: NodeId) -> Option<HostId> {
        self.nodes.iter().find(|node| node.id == Some(id)).map(|node| node.host)
    }

    /// The home partition of a key.
    pub fn home_of(&self, key: &Key) -> Option<u32> {
        Some(self.ring()?.home_of(&KeyHash::of_key(&key.kind.bucket(), &key.bytes())))
    }

    /// The hosts of the members that keep a key, each once.
    pub fn owners_of(&self, key: &Key) -> Vec<HostId> {
        let (Some(placement), Some(home)) = (self.placement(), self.home_of(key)) else { return Vec::new() };
        let owners = placement.home(home).replica_set(key.kind.n);
        let hosts = owners.iter().filter_map(|owner| self.host_of(*owner));
        hosts.filter(|host| self.node(*host).stage != MemberStage::Gone).collect()
    }

    /// What a process on a host needs for its engine.
    pub(crate) fn engine_parts(&mut self, host: HostId) -> Result<KvConfig, NoStart> {
        let (runtime, wiring, ring_size) = (self.world.runtime(host), self.wiring, self.ring_size);
        let scrub = if self.has_default_times { ScrubConfig::default() } else { times::scrubbing() };
        let kinds = self.whole_bytes_max.map_or_else(Vec::new, |bytes_max| {
            ombak_datatypes::kinds_with(Arc::new(ombak_runtime::TokioRuntime), bytes_max)
        });
        let (made, witness, is_nothing_cached) = (self.made.clone(), self.witness.clone(), self.is_nothing_cached);
        let node = self.node_mut(host);
        node.disks.stores.set_nothing_is_cached(is_nothing_cached);
        // The engine, its services and its tasks keep the runtime of their process alive.
        made.note(format!("a process of host {}", host.0), &runtime);
        made.note(format!("a disk of host {}", host.0), &node.disks.node);
        made.note(format!("a disk of stores of host {}", host.0), &node.disks.stores);
        let factory: Arc<dyn BackendFactory> = match node.backend {
            BackendKind::Memory => {
                Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()).on_machine(runtime.clone()))
            }
            BackendKind::Bitcask | BackendKind::BitcaskInterval => {
                let sync = match node.backend {
                    BackendKind::BitcaskInterval => SyncStrategy::Interval(SYNC_INTERVAL),
                    BackendKind::Bitcask | BackendKind::Memory => SyncStrategy::None,
                };
                let merge = MergeConfig { check_interval_secs: 5, ..MergeConfig::default() };
                let config = JournalConfig { sync, merge, file_bytes_max: FILE_BYTES_MAX, ..JournalConfig::default() };
                let factory = BitcaskFactory::new(node.disks.stores.clone(), STORES_DIR, config);
                let factory = factory.map_err(|e| no_start(host, e))?;
                // Without the marks, a store trusts the boot id of its machine alone.
                let marks = node.disks.append_marks.clone();
                Arc::new(factory.with_append_marks(Some(marks).filter(|_| !is_broken(BrokenRule::LostTailsAreNoticed))))
            }
        };
        let opened = Arc::<WatchedStores>::default();
        node.stores = Some(opened.clone());
        witness.process_begins(host, opened.clone());
        let mut config =
            KvConfig::new(format!("node{}", host.0), NODE_DIR, Arc::new(WatchedFactory { factory, opened }));
        let reserve = Arc::new(DiskReserve::new(node.disks.node.clone(), Path::new(NODE_DIR), RESERVE_BYTES));
        config.fs = match is_broken(BrokenRule::ReservesPayForNotes) {
            true => node.disks.node.clone(),
            false => Arc::new(ReservedFs::new(node.disks.node.clone(), reserve.clone())),
        };
        node.reserve = Some(reserve);
        config.ring_size = ring_size;
        config.io_threads = 2;
        config.timeout = REQUEST_LIMIT;
        config.delete_mode = DeleteMode::After(REAP_AFTER);
        config.maintain_interval = MAINTAIN;
        config.scrub = scrub;
        (config.keeps_sums, config.tolerates_sums_differences) = (true, true);
        config.runtime = runtime;
        config.hooks.kinds = kinds;
        config.hooks.observers.push(Arc::new(HostWitness { witness, host }));
        if wiring == Wiring::Messages {
            config.peers = self.wires.of(host);
        }
        Ok(config)
    }

    /// What a process on a host needs to be a member.
    pub(crate) fn member_parts(&mut self, host: HostId) -> Result<MemberParts, NoStart> {
        let kv = self.engine_parts(host)?;
        let (network, address) = (self.network.of(&self.world, host), address_of(host, PEER_PORT));
        let secret = Secret::new(SECRET).map_err(|e| no_start(host, e))?;
        let mut node = NodeParts::new(kv, network, address, (0, secret), Arc::new(NobodyIsUp));
        // The counts of clusters of the program's own times are about requests.
        node.exchange = (!self.has_default_times).then(times::exchanges);
        node.detection = Some(if self.has_default_times { Detection::default() } else { times::detection() });
        let metadata_dir = Path::new(NODE_DIR).join("metadata");
        Ok(MemberParts {
            node,
            metadata_dir,
            advertised: None,
            target_n_val: TARGET_N_VAL,
            target_location_n_val: TARGET_LOCATION_N_VAL,
            peers: Seeds::default(),
            timing: if self.has_default_times { MemberTiming::default() } else { times::members() },
        })
    }

    /// A process has started an engine.
    pub(crate) fn runs(&mut self, host: HostId, kv: Kv, member: Option<MemberNode>) {
        let node = self.node_mut(host);
        let id = kv.identity().node_id;
        node.id = Some(id);
        (node.kv, node.member) = (Some(kv.clone()), member);
        self.witness.runs(host, id, kv);
    }

    /// Ends the process of a node. `loss` says what becomes of what was not synced:
    /// [`Loss::Nothing`] kills only the process. A remount kills it, too, and its file systems
    /// lose what was not synced. Everything else cuts the power of the machine.
    pub fn stop(&mut self, host: HostId, loss: Loss) {
        self.count_repairs(host);
        let node = self.node_mut(host);
        // The old disks take nothing any more, so the end of the process cannot write.
        node.disks = node.disks.restart(loss);
        node.stores = None;
        let running = (node.kv.take(), node.member.take());
        self.network.process_ended(host, !loss.ends_machine());
        self.world.kill(host);
        self.wires.detach(host);
        self.witness.process_ended(host);
        drop(running);
    }

    /// Ends all nodes. An engine and its peers hold each other until then.
    pub fn end(&mut self) {
        for host in (1..=self.nodes.len()).map(HostId) {
            self.stop(host, Loss::Nothing);
        }
    }

    /// Replaces the disk of the stores of a stopped node.
    pub fn lose_stores(&mut self, host: HostId) {
        let (seed, machine) = (self.random.next(), self.world.runtime(host));
        let node = self.node_mut(host);
        node.disks.lose_stores(seed, &machine);
        (node.is_damaged, node.may_hide_damage) = (false, false);
    }

    /// Lets the next process of a stopped node find its stores as they were in an earlier copy of
    /// their disk.
    pub(crate) fn set_stores_back(&mut self, host: HostId, copy: Arc<FaultyFs>) {
        self.node_mut(host).disks.stores = copy;
    }
}

pub(crate) fn no_start(host: HostId, why: impl std::fmt::Display) -> NoStart {
    NoStart { host: host.0, why: why.to_string() }
}
