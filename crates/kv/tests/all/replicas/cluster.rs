//! The engines of a cluster. The tests of `ombak-repair` use them, too.

#![allow(dead_code, reason = "the tests of each crate use a part of it")]

use crate::replicas::network::{Network, View};
use crate::support::faulty::{Faults, FaultyFactory};
use bytes::Bytes;
use ombak_kv::replica::{NodeCounter, ReplicaStore, StoreKind, StoreMode};
use ombak_kv::{
    DeleteMode, DeleteRequest, GetOptions, GetReply, GetRequest, Kv, KvConfig, OpenError, PutOptions, PutRequest,
};
use ombak_ring::{Ring, RingVersion};
use ombak_storage::{Backend, ReadMode};
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, NodeId, Object, PropMap, Quorum, Sibling, VectorClock};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const LIMIT: Duration = Duration::from_secs(30);
const RING_SIZE: u32 = 8;

pub struct Cluster {
    pub network: Network,
    pub nodes: Vec<Kv>,
    /// What goes wrong in the stores of each node.
    pub faults: Vec<Arc<Faults>>,
    dirs: Vec<TempDir>,
    owners: usize,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.network.links().wires.disconnect(|_| true);
        // A test that fails while a fault holds a thread ends nevertheless.
        self.faults.iter().for_each(|faults| faults.hold_puts(false));
        self.nodes.iter().for_each(Kv::close);
    }
}

fn try_open(
    number: usize,
    dir: &Path,
    network: &Network,
    change: &dyn Fn(usize, &mut KvConfig),
) -> Result<(Kv, Arc<Faults>), OpenError> {
    let stores = Arc::new(FaultyFactory::new());
    let faults = stores.faults.clone();
    let mut config = KvConfig::new(format!("node{number}"), dir, stores);
    config.ring_size = RING_SIZE;
    config.io_threads = 1;
    let viewer = Arc::new(OnceLock::new());
    config.peers = Arc::new(View { network: network.clone(), viewer: viewer.clone() });
    config.timeout = LIMIT;
    config.delete_mode = DeleteMode::Immediate;
    config.default_props.insert("allow_mult".into(), true.into());
    change(number, &mut config);
    let node = Kv::open(config)?;
    viewer.set(node.identity().node_id).unwrap();
    Ok((node, faults))
}

impl Cluster {
    pub fn of(count: usize) -> Self {
        Self::configured(count, |_| ())
    }

    pub fn configured(count: usize, change: impl Fn(&mut KvConfig)) -> Self {
        Self::configured_each(count, move |_, config| change(config))
    }

    /// Starts nodes that share one ring. `change` is told the number of each node.
    pub fn configured_each(count: usize, change: impl Fn(usize, &mut KvConfig)) -> Self {
        Self::start(count, count, change)
    }

    /// Starts nodes of which the first `owners` own the ring.
    pub fn with_owners(count: usize, owners: usize) -> Self {
        Self::start(count, owners, |_, _| ())
    }

    fn start(count: usize, owners: usize, change: impl Fn(usize, &mut KvConfig)) -> Self {
        let (network, mut nodes, mut faults, mut dirs) = (Network::default(), Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            let dir = tempfile::tempdir().unwrap();
            let (node, its_faults) = try_open(number, dir.path(), &network, &change).unwrap();
            nodes.push(node);
            faults.push(its_faults);
            dirs.push(dir);
        }
        let cluster = Self { network, nodes, faults, dirs, owners };
        let ring = cluster.ring();
        for node in &cluster.nodes {
            node.set_ring(ring.clone()).unwrap();
            cluster.network.links().wires.connect(node);
        }
        cluster.shake_hands();
        cluster
    }

    fn ring(&self) -> Ring {
        let owners =
            self.nodes[..self.owners].iter().map(|node| node.identity().node_id).cycle().take(RING_SIZE as usize);
        Ring::from_owners(&owners.collect::<Vec<_>>(), RingVersion::first(7)).unwrap()
    }

    /// Ends a node in order, removes all objects that it had, and starts it again with the
    /// configuration of [`Self::of`], without the work of transfers.
    pub async fn restart_without_objects(&mut self, node: usize) {
        let id = self.id(node);
        self.network.links().wires.disconnect(|other| other == id);
        let ended = self.nodes.remove(node);
        tokio::task::spawn_blocking(move || ended.close()).await.unwrap();
        // What ends in the background may have the directory for a moment yet.
        let deadline = Instant::now() + LIMIT;
        let (started, faults) = loop {
            match try_open(node, self.dirs[node].path(), &self.network, &|_, _| ()) {
                Ok(opened) => break opened,
                Err(why) => assert!(Instant::now() < deadline, "{why}"),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        self.nodes.insert(node, started);
        self.faults[node] = faults;
        assert_eq!(self.id(node), id);
        self.nodes[node].set_ring(self.ring()).unwrap();
        self.network.links().wires.connect(&self.nodes[node]);
        self.shake_hands();
    }

    /// Creates and activates a bucket type on every node.
    pub fn create_type(&self, name: &str, props: &PropMap) {
        for node in &self.nodes {
            node.buckets().create_type(name.as_bytes(), props).unwrap();
            node.buckets().activate_type(name.as_bytes()).unwrap();
        }
    }

    /// Tells each node the counters of all, as new connections do.
    pub fn shake_hands(&self) {
        for (node, peer) in self.nodes.iter().flat_map(|node| self.nodes.iter().map(move |peer| (node, peer))) {
            node.note_counter(peer.identity().node_id, peer.counter());
        }
    }

    pub fn name_of(&self, node: usize) -> String {
        format!("name of {}", self.id(node))
    }

    pub fn id(&self, node: usize) -> NodeId {
        self.nodes[node].identity().node_id
    }

    pub fn set_down(&self, node: usize, down: bool) {
        self.network.links().wires.set_down(self.id(node), down);
    }

    /// Lets one node believe that another is down.
    pub fn set_down_for(&self, viewer: usize, node: usize) {
        self.network.links().set_down_for(self.id(viewer), self.id(node));
    }

    /// Lets no node of one side reach or believe in a node of the other side.
    pub fn set_parted(&self, side: &[usize], other_side: &[usize], parted: bool) {
        for (a, b) in side.iter().flat_map(|a| other_side.iter().map(move |b| (*a, *b))) {
            self.network.links().set_parted(self.id(a), self.id(b), parted);
        }
    }

    /// Lets messages take times that a seed decides.
    pub fn delay_messages(&self, seed: u64) {
        self.network.links().delay_messages(seed);
    }

    /// Lets a node answer nothing any more, like a process that is paused.
    pub fn set_stopped(&self, node: usize, stopped: bool) {
        self.network.links().set_stopped(self.id(node), stopped);
    }

    pub fn set_cut(&self, node: usize, cut: bool) {
        self.network.links().wires.set_cut(self.id(node), cut);
    }

    pub async fn put(&self, through: usize, key: &str, value: &'static str, options: PutOptions) -> Result<(), Error> {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value)] };
        self.put_object(through, key, object, options).await
    }

    pub async fn put_object(
        &self,
        through: usize,
        key: &str,
        object: Object,
        options: PutOptions,
    ) -> Result<(), Error> {
        let key = Some(Bytes::copy_from_slice(key.as_bytes()));
        self.nodes[through].put(PutRequest { bucket: bucket(), key, object, options }).await.map(drop)
    }

    pub async fn get(&self, through: usize, key: &str, options: GetOptions) -> Result<GetReply, Error> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        self.nodes[through].get(GetRequest { bucket: bucket(), key, options }).await
    }

    /// The values that a read shows.
    pub async fn values(&self, through: usize, key: &str) -> Vec<String> {
        match self.get(through, key, GetOptions::default()).await.unwrap() {
            GetReply::NotFound { .. } => Vec::new(),
            GetReply::Found(object) => {
                let text = |s: &Sibling| String::from_utf8(s.value.to_vec()).unwrap();
                let mut values: Vec<_> = object.siblings.iter().map(text).collect();
                values.sort();
                values
            }
        }
    }

    /// The values that a read of all replicas shows.
    pub async fn get_all(&self, through: usize, key: &str) -> Vec<String> {
        let all = GetOptions { r: count(3), ..GetOptions::default() };
        match self.get(through, key, all).await.unwrap() {
            GetReply::NotFound { .. } => Vec::new(),
            GetReply::Found(object) => {
                object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect()
            }
        }
    }

    /// The clock that a read shows.
    pub async fn clock(&self, through: usize, key: &str) -> VectorClock {
        match self.get(through, key, GetOptions::default()).await.unwrap() {
            GetReply::NotFound { .. } => VectorClock::new(),
            GetReply::Found(object) => object.clock,
        }
    }

    /// A number for a put that was not used before.
    pub fn next_put_number(&self) -> u64 {
        self.network.links().next_put_number()
    }

    /// The digest of the version that a node's own store has.
    pub fn stored(&self, node: usize, key: &str) -> Option<u64> {
        let mut storage_key = Vec::new();
        encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
        let digest = |store: Arc<dyn Backend>| store.head(&storage_key, ReadMode::Blocking).unwrap();
        self.nodes[node].stores().find_map(|(_, store)| digest(store)).map(|found| found.digest)
    }

    /// A node's copy, as a message for a node whose counter was noted.
    pub fn copy_of(&self, node: usize, key: &str, noted: NodeCounter) -> ReplicaStore {
        let mut storage_key = Vec::new();
        encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
        let get = |store: Arc<dyn Backend>| store.get(&storage_key, ReadMode::Blocking).unwrap();
        let (partition, found) = self.nodes[node].stores().find_map(|(n, store)| Some((n, get(store)?))).unwrap();
        ReplicaStore {
            partition,
            n: 3,
            ring: self.nodes[node].placement_version(),
            key: storage_key.clone().into(),
            head: found.head,
            body: found.body.unwrap(),
            stored_secs: None,
            kind: StoreKind { dvv: true, values: 0 },
            mode: StoreMode::Merge,
            noted: Some(noted),
            synced: false,
            deadline: None,
        }
    }

    /// Removes a copy, as a stand-in does after all primaries have proved that they have it.
    pub fn drop_copy(&self, node: usize, key: &str) {
        let mut storage_key = Vec::new();
        encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
        self.nodes[node].stores().for_each(|(_, store)| assert!(store.delete(&storage_key).is_ok()));
    }

    pub fn holders(&self, key: &str) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| self.stored(node, key).is_some()).collect()
    }

    /// Waits until something holds.
    pub async fn wait_until(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !holds() {
            assert!(Instant::now() < deadline, "it never happened that {what}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub async fn delete(&self, through: usize, key: &str) {
        self.delete_with(through, key, 3).await;
    }

    /// Deletes what this many nodes have, at this many nodes.
    pub async fn delete_with(&self, through: usize, key: &str, quorum: u32) {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let put = PutOptions { w: count(quorum), ..PutOptions::default() };
        let get = GetOptions { r: count(quorum), ..GetOptions::default() };
        let request = DeleteRequest { bucket: bucket(), key, clock: None, get, put, rw: None };
        assert!(self.nodes[through].delete(request).await.unwrap().found);
    }

    /// Waits until the stores of these nodes hold the same version, and returns its digest.
    pub async fn wait_until_equal(&self, nodes: &[usize], key: &str) -> u64 {
        let deadline = Instant::now() + LIMIT;
        loop {
            let found: BTreeSet<Option<u64>> = nodes.iter().map(|&node| self.stored(node, key)).collect();
            if let (1, Some(&Some(digest))) = (found.len(), found.first()) {
                return digest;
            }
            assert!(Instant::now() < deadline, "the replicas differ: {found:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub fn bucket() -> Bucket {
    Bucket::untyped("b")
}

pub fn count(n: u32) -> Option<Quorum> {
    Some(Quorum::Count(n))
}
