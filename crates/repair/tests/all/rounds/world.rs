//! Five engines, what clients do with them, and what is known of it.

use super::network::{Network, View, Wires};
use super::one_thread::{OneThread, Random};
use bytes::Bytes;
use ombak_kv::{
    DeleteMode, DeleteRequest, GetOptions, GetReply, GetRequest, Kv, KvConfig, PutOptions, PutRequest, is_tombstone,
};
use ombak_repair::Repair;
use ombak_ring::placement::Placement;
use ombak_ring::{Ring, RingVersion};
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{BitcaskFactory, JournalConfig, Scope};
use ombak_types::names::encode_storage_key;
use ombak_types::props::SyncOnWrite;
use ombak_types::{Bucket, NodeId, Object, Quorum, Sibling, VectorClock};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const NODES: usize = 5;
const KEYS: usize = 3;
/// How long everything may take to settle after the faults.
const SETTLE_MAX: Duration = Duration::from_secs(400);

/// A put or a delete of a client.
struct Write {
    is_delete: bool,
    /// The writes whose values the client had seen.
    seen: BTreeSet<usize>,
    is_acknowledged: bool,
}

/// What is known of one key.
#[derive(Default)]
pub(super) struct KeyHistory {
    writes: Vec<Write>,
    /// What reads have shown: a clock, and the writes of its values.
    pub(super) contexts: Vec<(VectorClock, BTreeSet<usize>)>,
}

/// What readers see of concurrent values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All of them.
    Siblings,
    /// The newest one (`allow_mult=false`).
    Newest,
}

/// What goes wrong in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Faults {
    /// Messages, and what nodes believe of each other.
    Network,
    /// Processes are killed and machines lose their power, too. So that what is acknowledged
    /// survives, every write is synced.
    Restarts,
}

/// The process and the disk of one node.
struct Node {
    kv: Kv,
    disk: Arc<FaultyFs>,
}

pub(super) struct World {
    pub(super) network: Network,
    nodes: Vec<Node>,
    pub(super) keys: Vec<KeyHistory>,
    faults: Faults,
    shown: Shown,
    /// How often a node was started again.
    pub(super) restarts: u64,
}

pub(super) fn bucket() -> Bucket {
    Bucket::untyped("b")
}

pub(super) fn key(number: usize) -> Bytes {
    format!("k{number}").into()
}

fn values_of(object: &Object) -> BTreeSet<usize> {
    let alive = object.siblings.iter().filter(|sibling| !sibling.meta.deleted);
    alive.map(|sibling| str::from_utf8(&sibling.value).unwrap().parse().unwrap()).collect()
}

/// What is wrong with the value that a reader of the newest one sees. Writes have the times of
/// their order, so nothing may be shown that is older than an acknowledged write.
fn wrong_newest(writes: &[Write], shown: &BTreeSet<usize>) -> Option<String> {
    let acknowledged = writes.iter().rposition(|write| write.is_acknowledged)?;
    match shown.first() {
        Some(value) if *value < acknowledged && writes[acknowledged].is_delete => {
            Some(format!("RETURNED: value {value}, before delete {acknowledged}"))
        }
        Some(value) if *value < acknowledged => Some(format!("HIDDEN: value {acknowledged}, by value {value}")),
        None if writes[acknowledged..].iter().all(|write| !write.is_delete) => {
            Some(format!("LOST: value {acknowledged}"))
        }
        _ => None,
    }
}

/// Starts the process of a node.
fn open(number: usize, disk: &Arc<FaultyFs>, network: &Network, shown: Shown) -> Kv {
    let dir = Path::new("/node");
    let fs: Arc<dyn FileSystem> = disk.clone();
    let stores = BitcaskFactory::new(fs.clone(), dir.join("bitcask"), JournalConfig::default()).unwrap();
    let mut config = KvConfig::new(format!("node{number}"), dir, Arc::new(stores));
    let viewer = Arc::new(OnceLock::new());
    config.fs = fs;
    config.ring_size = 8;
    config.runtime = Arc::new(OneThread(network.random.clone()));
    config.peers = Arc::new(View { network: network.clone(), viewer: viewer.clone() });
    config.timeout = Duration::from_secs(3);
    config.delete_mode = DeleteMode::Immediate;
    config.maintain_interval = Duration::from_secs(3600);
    config.default_props.insert("allow_mult".into(), (shown == Shown::Siblings).into());
    config.default_props.insert("dvv_enabled".into(), true.into());
    let node = Kv::open(config).unwrap();
    viewer.set(node.identity().node_id).unwrap();
    // From here on it answers.
    Repair::of(&node);
    node
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults, shown: Shown) -> Self {
        let network = Network { wires: Arc::default(), random: Arc::new(Random::new(seed)) };
        let start = |number| {
            let disk = FaultyFs::new(seed * NODES as u64 + number as u64);
            Node { kv: open(number, &disk, &network, shown), disk }
        };
        let nodes: Vec<Node> = (0..NODES).map(start).collect();
        let keys = (0..KEYS).map(|_| KeyHistory::default()).collect();
        let world = Self { network, nodes, keys, faults, shown, restarts: 0 };
        (0..NODES).for_each(|number| world.join(number));
        world
    }

    /// Lets a process take part: it knows the ring, and shakes hands with the others.
    fn join(&self, number: usize) {
        let ids = || self.nodes.iter().map(|node| node.kv.identity().node_id);
        let owners: Vec<NodeId> = ids().cycle().take(8).collect();
        let here = &self.nodes[number].kv;
        here.set_placement(Placement::of_ring(Arc::new(Ring::from_owners(&owners, RingVersion::first(7)).unwrap())))
            .unwrap();
        for node in self.nodes.iter().map(|node| &node.kv) {
            node.note_counter(here.identity().node_id, here.counter());
            here.note_counter(node.identity().node_id, node.counter());
        }
        self.network.wires.lock().replicas.insert(here.identity().node_id, here.local_replica());
        let repair = Repair::of(here);
        repair.start_reaping();
        repair.start_transfers();
    }

    /// Kills a process, or cuts the power of its machine, and starts it again. What it had sent
    /// still arrives.
    fn restart(&mut self) {
        let number = self.network.random.below(NODES);
        let loss = [Loss::Nothing, Loss::Some, Loss::Everything][self.network.random.below(3)];
        let disk = self.nodes[number].disk.restart(loss);
        let kv = open(number, &disk, &self.network, self.shown);
        self.nodes[number] = Node { kv, disk };
        self.join(number);
        self.restarts += 1;
    }

    pub(super) fn any_node(&self) -> &Kv {
        &self.nodes[self.network.random.below(NODES)].kv
    }

    fn any_id(&self) -> NodeId {
        self.any_node().identity().node_id
    }

    pub(super) async fn read(&mut self, at: usize, r: u32) -> Option<BTreeSet<usize>> {
        let options = GetOptions { r: Some(Quorum::Count(r)), ..GetOptions::default() };
        let reply = self.any_node().get(GetRequest { bucket: bucket(), key: key(at), options }).await;
        match reply.ok()? {
            GetReply::Found(object) => {
                let shown = values_of(&object);
                self.keys[at].contexts.push((object.clock, shown.clone()));
                Some(shown)
            }
            GetReply::NotFound { .. } => Some(BTreeSet::new()),
        }
    }

    async fn write(&mut self, at: usize, is_delete: bool) {
        if self.network.random.once_in(2) {
            self.read(at, 2).await;
        }
        let contexts = &self.keys[at].contexts;
        let newest = if is_delete { contexts.len().min(2) } else { contexts.len() };
        let context = match newest {
            0 => None,
            some if is_delete || self.network.random.once_in(2) => {
                Some(contexts[contexts.len() - 1 - self.network.random.below(some)].clone())
            }
            _ => None,
        };
        if is_delete && context.is_none() {
            return;
        }
        let (clock, seen) = context.unwrap_or_default();
        let number = self.keys[at].writes.len();
        self.keys[at].writes.push(Write { is_delete, seen, is_acknowledged: false });
        let quorum = Some(Quorum::Count(1 + self.network.random.below(3) as u32));
        let sync_on_write = (self.faults == Faults::Restarts).then_some(SyncOnWrite::All);
        let options = PutOptions { w: quorum, sync_on_write, ..PutOptions::default() };
        let (bucket, key) = (bucket(), key(at));
        let done = if is_delete {
            let get = GetOptions::default();
            let request = DeleteRequest { bucket, key, clock: Some(clock), get, put: options, rw: None };
            self.any_node().delete(request).await.map(drop)
        } else {
            let object = Object { clock, siblings: vec![Sibling::new(number.to_string())] };
            self.any_node().put(PutRequest { bucket, key: Some(key), object, options }).await.map(drop)
        };
        self.keys[at].writes[number].is_acknowledged = done.is_ok();
    }

    /// Lets a fault begin, or all of them end.
    pub(super) fn fault(&self) {
        let mut wires = self.network.wires.lock();
        match self.network.random.below(6) {
            0 | 1 => {
                wires.believed_down.insert((self.any_id(), self.any_id()));
            }
            2 => {
                let down = self.any_id();
                let viewers = self.nodes.iter().map(|node| node.kv.identity().node_id);
                wires.believed_down.extend(viewers.map(|viewer| (viewer, down)));
            }
            3 => {
                wires.cut.insert((self.any_id(), self.any_id()));
            }
            _ => {
                wires.believed_down.clear();
                wires.cut.clear();
            }
        }
    }

    pub(super) async fn step(&mut self) {
        let at = self.network.random.below(KEYS);
        match self.network.random.below(20) {
            0..=6 => self.write(at, false).await,
            7..=11 => self.write(at, true).await,
            12 | 13 => drop(self.read(at, 1).await),
            14 if self.faults == Faults::Restarts => self.restart(),
            _ => self.fault(),
        }
        let pause_ms = [0, 20, 400, 3_000][self.network.random.below(4)];
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }

    /// The digests that each node holds of a key, if it holds the key.
    fn copies(&self, at: usize) -> Vec<Option<u64>> {
        let mut storage_key = Vec::new();
        encode_storage_key(&bucket(), &key(at), &mut storage_key);
        let scope = Scope { prefix: &storage_key, ..Scope::EVERYTHING };
        let of_node = |node: &Node| {
            node.kv.stores().find_map(|(_, store)| {
                let entries = store.snapshot().unwrap().next(&scope, ombak_storage::Detail::Keys, 10).unwrap();
                entries.iter().find(|entry| entry.key == storage_key).map(|entry| entry.digest)
            })
        };
        self.nodes.iter().map(of_node).collect()
    }

    /// Why a key has not settled.
    fn unsettled(&self, at: usize) -> Option<String> {
        let copies = self.copies(at);
        let held: BTreeSet<u64> = copies.iter().flatten().copied().collect();
        let holders = copies.iter().flatten().count();
        match () {
            () if held.iter().any(|digest| is_tombstone(*digest)) => Some(format!("k{at} has a tombstone")),
            () if held.len() > 1 => Some(format!("the copies of k{at} differ")),
            () if ![0, 3].contains(&holders) => Some(format!("k{at} has {holders} copies")),
            () => None,
        }
    }

    pub(super) async fn heal(&mut self) -> Option<String> {
        *self.network.wires.lock() = {
            let replicas = self.network.wires.lock().replicas.clone();
            Wires { replicas, is_healed: true, ..Wires::default() }
        };
        let mut waited = Duration::ZERO;
        loop {
            // What came late has arrived, too.
            let why = (0..KEYS).find_map(|at| self.unsettled(at));
            if waited >= Duration::from_secs(30) && why.is_none() {
                return None;
            }
            if waited >= SETTLE_MAX {
                return why.map(|why| format!("not live: {why}"));
            }
            for at in 0..KEYS {
                self.read(at, 3).await;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            waited += Duration::from_secs(5);
        }
    }

    pub(super) async fn check(&mut self) -> Option<String> {
        for at in 0..KEYS {
            let Some(shown) = self.read(at, 3).await else { return Some(format!("k{at} cannot be read")) };
            let writes = &self.keys[at].writes;
            if self.shown == Shown::Newest {
                if let Some(wrong) = wrong_newest(writes, &shown) {
                    return Some(format!("{wrong} of k{at}"));
                }
                if shown.is_empty() && self.copies(at).iter().any(Option::is_some) {
                    return Some(format!("k{at} is deleted, and its values stay"));
                }
                continue;
            }
            for (number, write) in writes.iter().enumerate().filter(|(_, write)| !write.is_delete) {
                let replaced = writes.iter().any(|by| by.seen.contains(&number));
                let for_good = writes.iter().any(|by| by.is_acknowledged && by.seen.contains(&number));
                if shown.contains(&number) && for_good {
                    return Some(format!("RETURNED: value {number} of k{at}"));
                }
                if !shown.contains(&number) && write.is_acknowledged && !replaced {
                    return Some(format!("LOST: value {number} of k{at}"));
                }
            }
        }
        None
    }

    /// How many fences removals and answers have raised in the processes of now.
    pub(super) fn fences(&self) -> u64 {
        self.nodes.iter().map(|node| node.kv.counter().counter).sum()
    }

    /// Ends everything: the wires hold engines, and engines hold the wires.
    pub(super) fn end(&self) {
        self.network.wires.lock().replicas.clear();
    }
}
