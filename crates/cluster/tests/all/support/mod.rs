//! Several nodes in one process, connected by real sockets of the loopback interface.

#![allow(dead_code, reason = "each test uses a part")]

#[path = "../../../../kv/tests/all/support/faulty.rs"]
pub mod faulty;
pub mod freezing;

use bytes::Bytes;
use faulty::{Faults, FaultyFactory};
use ombak_cluster::{ClusterNode, Liveness, Member, NodeParts, RequestOutcome};
use ombak_kv::replica::ReplicaClient;
use ombak_kv::{DeleteMode, GetOptions, GetReply, GetRequest, KvConfig, Peers, PutOptions, PutReply, PutRequest};
use ombak_peer::handshake::Secret;
use ombak_ring::{Ring, RingVersion};
use ombak_runtime::TcpNetwork;
use ombak_storage::ReadMode;
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, NodeId, Object, Quorum, Sibling, SiblingMeta, VectorClock};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(60);
pub const RING_SIZE: u32 = 8;
const LINEAGE: u64 = 7;

/// What all nodes believe about each other: the test says it.
#[derive(Default)]
pub struct Beliefs {
    down: Mutex<BTreeSet<NodeId>>,
    outcomes: Mutex<Vec<(NodeId, RequestOutcome)>>,
}

impl Beliefs {
    pub fn set_down(&self, node: NodeId, is_down: bool) {
        let mut down = self.down.lock();
        if is_down {
            down.insert(node)
        } else {
            down.remove(&node)
        };
    }

    /// How the requests to a node have ended.
    pub fn outcomes_of(&self, node: NodeId) -> Vec<RequestOutcome> {
        self.outcomes.lock().iter().filter(|(to, _)| *to == node).map(|(_, outcome)| *outcome).collect()
    }
}

impl Liveness for Beliefs {
    fn is_up(&self, node: NodeId) -> bool {
        !self.down.lock().contains(&node)
    }

    fn ended(&self, node: NodeId, outcome: RequestOutcome, _took: Duration) {
        self.outcomes.lock().push((node, outcome));
    }
}

/// A node, and the faults of its stores.
pub struct TestNode {
    pub node: ClusterNode,
    pub faults: Arc<Faults>,
    _dir: TempDir,
}

pub struct Cluster {
    pub nodes: Vec<TestNode>,
    pub beliefs: Arc<Beliefs>,
}

impl Cluster {
    pub fn of(count: usize) -> Self {
        Self::configured(count, |_| {})
    }

    /// Starts nodes that share one ring.
    pub fn configured(count: usize, configure: impl Fn(&mut NodeParts)) -> Self {
        let beliefs = Arc::new(Beliefs::default());
        let nodes: Vec<_> = (0..count).map(|number| start(number, &beliefs, &configure)).collect();
        let cluster = Self { nodes, beliefs };
        cluster.set_ring(RingVersion::first(LINEAGE));
        let members: Vec<_> = cluster.nodes.iter().map(TestNode::as_member).collect();
        for node in cluster.nodes.iter().map(|test| &test.node) {
            node.set_members(members.iter().filter(|member| member.id != node.id()).cloned().collect());
        }
        cluster
    }

    pub fn set_ring(&self, version: RingVersion) {
        let ids: Vec<NodeId> = self.nodes.iter().map(|test| test.node.id()).collect();
        let owners: Vec<NodeId> = ids.into_iter().cycle().take(RING_SIZE as usize).collect();
        for test in &self.nodes {
            test.node.kv().set_ring(Ring::from_owners(&owners, version).unwrap()).unwrap();
        }
    }

    pub fn id(&self, node: usize) -> NodeId {
        self.nodes[node].node.id()
    }

    pub fn node(&self, node: usize) -> &ClusterNode {
        &self.nodes[node].node
    }

    /// The replicas of `to`, as `from` sees them.
    pub fn replica(&self, from: usize, to: usize) -> Arc<dyn ReplicaClient> {
        self.node(from).peers().replica(self.id(to))
    }

    pub async fn put(&self, through: usize, key: &str, value: &str, options: PutOptions) -> Result<PutReply, Error> {
        self.node(through).kv().put(put_request(key, value, options)).await
    }

    pub async fn get(&self, through: usize, key: &str, options: GetOptions) -> Result<GetReply, Error> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        self.node(through).kv().get(GetRequest { bucket: bucket(), key, options }).await
    }

    /// The values that a read shows, in order.
    pub async fn values(&self, through: usize, key: &str) -> Vec<String> {
        self.values_with(through, key, GetOptions::default()).await
    }

    pub async fn values_with(&self, through: usize, key: &str, options: GetOptions) -> Vec<String> {
        match self.get(through, key, options).await.unwrap() {
            GetReply::NotFound { .. } => Vec::new(),
            GetReply::Found(object) => {
                object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect()
            }
        }
    }

    /// The digest of the version that a node's own store has.
    pub fn stored(&self, node: usize, key: &str) -> Option<u64> {
        let key = storage_key(key);
        let mut found = self.node(node).kv().stores().map(|(_, s)| s.head(&key, ReadMode::Blocking).unwrap());
        found.find_map(|found| found.map(|found| found.digest))
    }

    /// The nodes whose stores have a key.
    pub fn holders(&self, key: &str) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| self.stored(*node, key).is_some()).collect()
    }

    pub async fn stop(self) {
        for test in &self.nodes {
            soon(test.node.stop()).await;
        }
    }
}

impl Drop for TestNode {
    /// A test that fails while a fault holds a thread ends nevertheless.
    fn drop(&mut self) {
        self.faults.hold_syncs(false);
        self.faults.hold_puts(false);
    }
}

impl TestNode {
    fn as_member(&self) -> Member {
        let name = format!("node {}", self.node.id());
        Member { id: self.node.id(), name, address: self.node.listens_on() }
    }
}

fn start(number: usize, beliefs: &Arc<Beliefs>, configure: &impl Fn(&mut NodeParts)) -> TestNode {
    let dir = tempfile::tempdir().unwrap();
    let stores = FaultyFactory::new();
    let faults = stores.faults.clone();
    let mut kv = KvConfig::new(format!("node{number}"), dir.path(), Arc::new(stores));
    kv.ring_size = RING_SIZE;
    kv.io_threads = 2;
    kv.timeout = PATIENCE;
    kv.delete_mode = DeleteMode::Keep;
    kv.default_props.insert("allow_mult".into(), true.into());
    let network = Arc::new(TcpNetwork::default());
    let secret = Secret::new(b"the secret of the test cluster").unwrap();
    let mut parts = NodeParts::new(kv, network, "127.0.0.1:0".parse().unwrap(), (5, secret), beliefs.clone());
    // Their questions would be counted beside those of the tests.
    parts.exchange = None;
    configure(&mut parts);
    TestNode { node: ClusterNode::start(parts).unwrap(), faults, _dir: dir }
}

pub fn bucket() -> Bucket {
    Bucket::untyped("b")
}

pub fn storage_key(key: &str) -> Bytes {
    let mut storage_key = Vec::new();
    encode_storage_key(&bucket(), key.as_bytes(), &mut storage_key);
    storage_key.into()
}

pub fn put_request(key: &str, value: &str, options: PutOptions) -> PutRequest {
    let sibling = Sibling { value: Bytes::copy_from_slice(value.as_bytes()), meta: SiblingMeta::default() };
    let object = Object { clock: VectorClock::new(), siblings: vec![sibling] };
    PutRequest { bucket: bucket(), key: Some(Bytes::copy_from_slice(key.as_bytes())), object, options }
}

/// A put that all `w` positions have to acknowledge.
pub fn with_w(w: u32) -> PutOptions {
    PutOptions { w: Some(Quorum::Count(w)), ..PutOptions::default() }
}

pub fn with_r(r: u32) -> GetOptions {
    GetOptions { r: Some(Quorum::Count(r)), ..GetOptions::default() }
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "it never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
