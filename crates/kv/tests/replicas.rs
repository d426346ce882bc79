//! Several engines that are replicas of each other, in one process. Their peers are called directly,
//! so that what is tested is the coordination and not the transport.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use bytes::Bytes;
use ombak_kv::{
    DeleteMode, DeleteRequest, Found, GetOptions, GetReply, GetRequest, Kv, KvConfig, LocalReplica, Peers, PutOptions,
    PutReply, PutRequest, ReplicaClient, ReplicaRead, ReplicaStore, StoredVersion, UnreachableNode, is_tombstone,
};
use ombak_ring::{Ring, RingVersion};
use ombak_runtime::BoxFuture;
use ombak_storage::{Backend, MemoryConfig, MemoryFactory, ReadMode};
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, NodeId, Object, Quorum, Sibling, VectorClock};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(30);
const RING_SIZE: u32 = 8;

/// What connects the engines.
#[derive(Default)]
struct Wires {
    replicas: BTreeMap<NodeId, LocalReplica>,
    /// Nodes that all others believe to be down.
    down: BTreeSet<NodeId>,
    /// Nodes that all others believe to be up, but that get nothing.
    cut: BTreeSet<NodeId>,
}

#[derive(Clone, Default)]
struct Network(Arc<Mutex<Wires>>);

impl Peers for Network {
    fn is_up(&self, node: NodeId) -> bool {
        !self.0.lock().down.contains(&node)
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        Arc::new(Remote { node, network: self.clone() })
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
        let wires = self.network.0.lock();
        match wires.replicas.get(&self.node) {
            Some(replica) if !wires.cut.contains(&self.node) => Arc::new(replica.clone()),
            _ => Arc::new(UnreachableNode(self.node)),
        }
    }
}

impl ReplicaClient for Remote {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<Found, Error>> {
        self.target().read(read)
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoredVersion, Error>> {
        self.target().store(store)
    }

    fn coordinate(&self, put: PutRequest, deadline: Option<Instant>) -> BoxFuture<'static, Result<PutReply, Error>> {
        self.target().coordinate(put, deadline)
    }
}

struct Cluster {
    network: Network,
    nodes: Vec<Kv>,
    _dirs: Vec<TempDir>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.network.0.lock().replicas.clear();
        self.nodes.iter().for_each(Kv::close);
    }
}

impl Cluster {
    fn of(count: usize) -> Self {
        let network = Network::default();
        let (mut nodes, mut dirs) = (Vec::new(), Vec::new());
        for number in 0..count {
            let dir = tempfile::tempdir().unwrap();
            let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
            let mut config = KvConfig::new(format!("node{number}"), dir.path(), stores);
            config.ring_size = RING_SIZE;
            config.io_threads = 1;
            config.peers = Arc::new(network.clone());
            config.timeout = LIMIT;
            config.delete_mode = DeleteMode::Immediate;
            config.default_props.insert("allow_mult".into(), true.into());
            nodes.push(Kv::open(config).unwrap());
            dirs.push(dir);
        }
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.identity().node_id).collect();
        let owners: Vec<NodeId> = ids.iter().copied().cycle().take(RING_SIZE as usize).collect();
        for node in &nodes {
            node.set_ring(Ring::from_owners(&owners, RingVersion::first(7)).unwrap()).unwrap();
            network.0.lock().replicas.insert(node.identity().node_id, node.local_replica());
        }
        Self { network, nodes, _dirs: dirs }
    }

    fn id(&self, node: usize) -> NodeId {
        self.nodes[node].identity().node_id
    }

    fn set_down(&self, node: usize, down: bool) {
        let id = self.id(node);
        let mut wires = self.network.0.lock();
        if down {
            wires.down.insert(id)
        } else {
            wires.down.remove(&id)
        };
    }

    fn set_cut(&self, node: usize, cut: bool) {
        let id = self.id(node);
        let mut wires = self.network.0.lock();
        if cut {
            wires.cut.insert(id)
        } else {
            wires.cut.remove(&id)
        };
    }

    async fn put(&self, through: usize, key: &str, value: &'static str, options: PutOptions) -> Result<(), Error> {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value)] };
        self.put_object(through, key, object, options).await
    }

    async fn put_object(&self, through: usize, key: &str, object: Object, options: PutOptions) -> Result<(), Error> {
        let key = Some(Bytes::copy_from_slice(key.as_bytes()));
        self.nodes[through].put(PutRequest { bucket: bucket(), key, object, options }).await.map(drop)
    }

    async fn get(&self, through: usize, key: &str, options: GetOptions) -> Result<GetReply, Error> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        self.nodes[through].get(GetRequest { bucket: bucket(), key, options }).await
    }

    /// The values that a read shows.
    async fn values(&self, through: usize, key: &str) -> Vec<String> {
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

    /// The digest of the version that a node's own store has.
    fn stored(&self, node: usize, key: &str) -> Option<u64> {
        let mut storage_key = Vec::new();
        encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
        let digest = |store: Arc<dyn Backend>| store.head(&storage_key, ReadMode::Blocking).unwrap();
        self.nodes[node].stores().find_map(|(_, store)| digest(store)).map(|found| found.digest)
    }

    fn holders(&self, key: &str) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&node| self.stored(node, key).is_some()).collect()
    }

    /// Waits until the stores of these nodes hold the same version, and returns its digest.
    async fn wait_until_equal(&self, nodes: &[usize], key: &str) -> u64 {
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

fn bucket() -> Bucket {
    Bucket::untyped("b")
}

fn count(n: u32) -> Option<Quorum> {
    Some(Quorum::Count(n))
}

#[tokio::test]
async fn what_is_written_through_one_node_is_read_through_each() {
    let cluster = Cluster::of(3);
    for (through, key) in [(0, "k0"), (1, "k1"), (2, "k2")] {
        cluster.put(through, key, "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        for node in 0..3 {
            assert_eq!(cluster.values(node, key).await, ["v"]);
        }
        assert_eq!(cluster.holders(key), [0, 1, 2]);
        cluster.wait_until_equal(&[0, 1, 2], key).await;
    }
}

#[tokio::test]
async fn values_that_were_written_without_knowing_of_each_other_are_siblings_on_every_node() {
    let cluster = Cluster::of(3);
    let all = || PutOptions { w: count(3), ..PutOptions::default() };
    let (first, second) = tokio::join!(cluster.put(0, "k", "x", all()), cluster.put(1, "k", "y", all()));
    assert_eq!((first, second), (Ok(()), Ok(())));
    for node in 0..3 {
        assert_eq!(cluster.values(node, "k").await, ["x", "y"]);
    }
    cluster.wait_until_equal(&[0, 1, 2], "k").await;
    // A write that has seen both replaces both.
    let GetReply::Found(seen) = cluster.get(2, "k", GetOptions::default()).await.unwrap() else { panic!("not found") };
    let object = Object { clock: seen.clock, siblings: vec![Sibling::new("z")] };
    cluster.put_object(2, "k", object, all()).await.unwrap();
    assert_eq!(cluster.values(0, "k").await, ["z"]);
}

#[tokio::test]
async fn a_node_without_a_position_lets_another_one_coordinate() {
    let cluster = Cluster::of(5);
    // With five nodes and n=3 each key has two nodes without a position.
    for key in ["a", "b", "c", "d", "e", "f"] {
        for through in 0..5 {
            let options = PutOptions { w: count(3), return_body: true, ..PutOptions::default() };
            cluster.put(through, &format!("{key}{through}"), "v", options).await.unwrap();
            assert_eq!(cluster.holders(&format!("{key}{through}")).len(), 3);
        }
    }
}

#[tokio::test]
async fn a_stand_in_takes_the_write_of_a_node_that_is_down() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    cluster.set_down(owners[0], true);
    let through = owners[1];
    let strict = PutOptions { pw: count(3), ..PutOptions::default() };
    let refused = cluster.put(through, "k", "new", strict).await;
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "pw", need: 3, got: 2 }));
    cluster.put(through, "k", "new", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    assert_eq!(cluster.holders("k").len(), 4, "three owners, one of which is down, and the stand-in");
    assert_eq!(cluster.values(through, "k").await, ["new", "old"]);
    let unsloppy = PutOptions { w: count(3), sloppy_quorum: false, ..PutOptions::default() };
    let refused = cluster.put(through, "k", "newer", unsloppy).await;
    assert_eq!(refused, Err(Error::InsufficientVnodes { have: 2, need: 3 }));
}

#[tokio::test]
async fn a_read_repairs_the_replica_that_missed_a_write() {
    let cluster = Cluster::of(3);
    cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, true);
    let refused = cluster.put(0, "k", "x", PutOptions { w: count(3), ..PutOptions::default() }).await;
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "w", need: 3, got: 2 }));
    cluster.put(0, "k", "y", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, false);
    assert_ne!(cluster.stored(2, "k"), cluster.stored(0, "k"));
    assert_eq!(cluster.values(1, "k").await, ["old", "x", "y"]);
    cluster.wait_until_equal(&[0, 1, 2], "k").await;
    // The key is new to one replica.
    cluster.set_cut(1, true);
    cluster.put(0, "new", "v", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(1, false);
    assert_eq!(cluster.stored(1, "new"), None);
    assert_eq!(cluster.values(1, "new").await, ["v"]);
    cluster.wait_until_equal(&[0, 1, 2], "new").await;
}

#[tokio::test]
async fn a_read_counts_nodes_that_do_not_answer_as_failures() {
    let cluster = Cluster::of(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(1, true);
    cluster.set_cut(2, true);
    let two = GetOptions { r: count(2), ..GetOptions::default() };
    let answer = cluster.get(0, "k", two).await;
    assert!(matches!(answer, Err(Error::QuorumUnsatisfied { option: "r", need: 2, .. })), "{answer:?}");
    let one = GetOptions { r: count(1), ..GetOptions::default() };
    assert!(matches!(cluster.get(0, "k", one).await, Ok(GetReply::Found(_))));
}

#[tokio::test]
async fn a_delete_leaves_a_tombstone_on_every_node_and_no_node_reaps_it_alone() {
    let cluster = Cluster::of(3);
    let mut request = DeleteRequest {
        bucket: bucket(),
        key: "k".into(),
        clock: None,
        get: GetOptions::default(),
        put: PutOptions { w: count(3), ..PutOptions::default() },
        rw: None,
    };
    assert!(!cluster.nodes[1].delete(request.clone()).await.unwrap().found);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    request.get.r = count(3);
    assert!(cluster.nodes[1].delete(request).await.unwrap().found);
    assert!(is_tombstone(cluster.wait_until_equal(&[0, 1, 2], "k").await));
    for node in 0..3 {
        let read = cluster.get(node, "k", GetOptions::default()).await.unwrap();
        assert!(matches!(read, GetReply::NotFound { tombstone: Some(_) }), "{read:?}");
    }
}
