//! Listings and index queries over several engines in one process: each key once, whichever nodes
//! fail meanwhile (docs/design/replication.md §16).

use crate::wires::Wires;
use bytes::Bytes;
use ombak_kv::replica::{CoverageClient, CoverageItem, CoverageRequest, CoverageStream, ReplicaClient};
use ombak_kv::{
    DeleteMode, FillReason, IndexMatch, IndexQuery, Kv, KvConfig, Peers, PutOptions, PutRequest, QueryRange, head_terms,
};
use ombak_ring::{KeyHash, ReplicaState, Ring, RingVersion};
use ombak_runtime::BoxFuture;
use ombak_storage::{MemoryConfig, MemoryFactory, Write};
use ombak_types::names::encode_storage_key;
use ombak_types::{
    Bucket, Error, IndexEntry, IndexTerm, NodeId, Object, Quorum, Sibling, StoreFailure, StoreFailureKind, VectorClock,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const RING_SIZE: u32 = 8;
const LIMIT: Duration = Duration::from_secs(30);

/// What happens to the answers of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// After so many pieces each answer fails.
    Breaks(usize),
    /// After so many pieces nothing more comes.
    Hangs(usize),
    /// After so many pieces each answer ends as if it were complete.
    Ends(usize),
}

#[derive(Default)]
struct Links {
    wires: Wires,
    missed_writes: BTreeSet<NodeId>,
    faults: BTreeMap<NodeId, Fault>,
}

#[derive(Clone, Default)]
struct Network {
    links: Arc<Mutex<Links>>,
    pieces: Arc<AtomicUsize>,
    asked: Arc<Mutex<BTreeSet<NodeId>>>,
}

impl Peers for Network {
    fn is_up(&self, node: NodeId) -> bool {
        self.links.lock().wires.is_up(node)
    }

    fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        self.links.lock().wires.replica(node)
    }

    fn name(&self, _node: NodeId) -> Option<String> {
        None
    }

    fn coverage(&self, node: NodeId) -> Arc<dyn CoverageClient> {
        Arc::new(Remote { node, network: self.clone() })
    }

    fn replica_state(&self, node: NodeId, _home: u32, _n: u32) -> ReplicaState {
        let missed_writes = self.links.lock().missed_writes.contains(&node);
        ReplicaState { is_up: self.is_up(node), participates: true, is_full: true, missed_writes }
    }
}

struct Remote {
    node: NodeId,
    network: Network,
}

impl CoverageClient for Remote {
    fn open(&self, request: CoverageRequest) -> BoxFuture<'static, Result<Box<dyn CoverageStream>, Error>> {
        let (node, network) = (self.node, self.network.clone());
        Box::pin(async move {
            network.asked.lock().insert(node);
            let (replica, fault) = {
                let links = network.links.lock();
                let replica = links.wires.reach(node).filter(|_| links.wires.is_up(node));
                (replica, links.faults.get(&node).copied())
            };
            let replica = replica.ok_or_else(broken)?;
            let inner = replica.open(request).await?;
            Ok(Box::new(RemoteStream { inner, fault, pieces: 0, network }) as Box<dyn CoverageStream>)
        })
    }
}

struct RemoteStream {
    inner: Box<dyn CoverageStream>,
    fault: Option<Fault>,
    pieces: usize,
    network: Network,
}

impl CoverageStream for RemoteStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<CoverageItem, Error>>> {
        Box::pin(async move {
            match self.fault {
                Some(Fault::Breaks(pieces)) if pieces <= self.pieces => return Some(Err(broken())),
                Some(Fault::Ends(pieces)) if pieces <= self.pieces => return None,
                Some(Fault::Hangs(pieces)) if pieces <= self.pieces => std::future::pending().await,
                _ => {}
            }
            self.pieces += 1;
            self.network.pieces.fetch_add(1, Ordering::Relaxed);
            self.inner.next().await
        })
    }
}

fn broken() -> Error {
    StoreFailure::new(StoreFailureKind::Unreachable, "the wire broke").into()
}

pub(crate) struct Cluster {
    network: Network,
    pub(crate) nodes: Vec<Kv>,
    ring: Ring,
    _dirs: Vec<TempDir>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.network.links.lock().wires.disconnect(|_| true);
        self.nodes.iter().for_each(Kv::close);
    }
}

impl Cluster {
    pub(crate) fn of(count: usize) -> Self {
        Self::with(count, |_, _| {})
    }

    pub(crate) fn with(count: usize, adjust: impl Fn(usize, &mut KvConfig)) -> Self {
        let network = Network::default();
        let (mut nodes, mut dirs) = (Vec::new(), Vec::new());
        for number in 0..count {
            let dir = tempfile::tempdir().unwrap();
            let stores = Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), head_terms()));
            let mut config = KvConfig::new(format!("node{number}"), dir.path(), stores);
            config.ring_size = RING_SIZE;
            config.io_threads = 1;
            config.peers = Arc::new(network.clone());
            config.timeout = LIMIT;
            config.delete_mode = DeleteMode::Keep;
            adjust(number, &mut config);
            let node = Kv::open(config).unwrap();
            for (name, n_val) in [("n1", 1), ("n2", 2)] {
                node.buckets().set_bucket(&Bucket::untyped(name), &map(json!({ "n_val": n_val }))).unwrap();
            }
            nodes.push(node);
            dirs.push(dir);
        }
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.identity().node_id).collect();
        let owners: Vec<NodeId> = ids.iter().copied().cycle().take(RING_SIZE as usize).collect();
        let ring = Ring::from_owners(&owners, RingVersion::first(7)).unwrap();
        for node in &nodes {
            node.set_ring(ring.clone()).unwrap();
            network.links.lock().wires.connect(node);
        }
        Self { network, nodes, ring, _dirs: dirs }
    }

    fn id(&self, node: usize) -> NodeId {
        self.nodes[node].identity().node_id
    }

    pub(crate) fn set_down(&self, node: usize) {
        self.network.links.lock().wires.set_down(self.id(node), true);
    }

    pub(crate) fn fault(&self, node: usize, fault: Fault) {
        self.network.links.lock().faults.insert(self.id(node), fault);
    }

    /// Writes a key to the stores of all its replicas, or of some. Listings read nothing but the
    /// index.
    fn store(&self, bucket: &Bucket, key: &str, n: u32, at: impl Fn(NodeId) -> bool) {
        self.store_at(bucket, key, n, b"h", at);
    }

    /// Writes an object with this head to the stores of all its replicas.
    pub(crate) fn store_head(&self, bucket: &Bucket, key: &str, n: u32, head: &[u8]) {
        self.store_at(bucket, key, n, head, |_| true);
    }

    fn store_at(&self, bucket: &Bucket, key: &str, n: u32, head: &[u8], at: impl Fn(NodeId) -> bool) {
        let mut storage_key = Vec::new();
        encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
        let home = self.ring.home_of(&KeyHash::of_key(bucket, key.as_bytes()));
        for id in self.ring.replica_set(home, n).into_iter().filter(|id| at(*id)) {
            let node = self.nodes.iter().find(|node| node.identity().node_id == id).unwrap();
            let (_, store) = node.stores().find(|(partition, _)| *partition == home).unwrap();
            let key = &storage_key[..];
            let write = Write { key, head, body: &[], digest: 2, tstamp_secs: 1, expires_secs: 0, has_terms: false };
            store.put(&write).unwrap();
        }
    }

    fn fill(&self, bucket: &Bucket, keys: usize, n: u32) -> Vec<String> {
        let keys: Vec<String> = (0..keys).map(|key| format!("k{key:06}")).collect();
        keys.iter().for_each(|key| self.store(bucket, key, n, |_| true));
        keys
    }

    async fn list(&self, through: usize, bucket: &Bucket) -> Result<Vec<String>, Error> {
        let mut listing = self.nodes[through].list_keys(bucket, Some(LIMIT))?;
        let mut keys = Vec::new();
        while let Some(batch) = listing.next().await {
            keys.extend(batch?.iter().map(|key| String::from_utf8(key.to_vec()).unwrap()));
        }
        assert!(listing.next().await.is_none(), "the end is the end");
        keys.sort();
        Ok(keys)
    }

    async fn buckets(&self, through: usize) -> Result<Vec<String>, Error> {
        let mut listing = self.nodes[through].list_buckets(&Bytes::from_static(b"default"), Some(LIMIT))?;
        let mut names = Vec::new();
        while let Some(batch) = listing.next().await {
            names.extend(batch?.iter().map(|name| String::from_utf8(name.to_vec()).unwrap()));
        }
        names.sort();
        Ok(names)
    }

    async fn query(&self, through: usize, query: IndexQuery) -> Result<(Vec<IndexMatch>, bool), Error> {
        let mut results = self.nodes[through].query(query, Some(LIMIT))?;
        let mut found = Vec::new();
        while let Some(batch) = results.next().await {
            found.extend(batch?);
        }
        Ok((found, results.is_full()))
    }

    /// All pages of a query, each through another node.
    async fn pages(&self, query: &IndexQuery, page: usize) -> Result<Vec<IndexMatch>, Error> {
        let mut query = IndexQuery { results_max: Some(page), ..query.clone() };
        let mut all: Vec<IndexMatch> = Vec::new();
        for through in (0..self.nodes.len()).cycle() {
            let (found, is_full) = self.query(through, query.clone()).await?;
            assert!(found.len() <= page && is_full == (found.len() == page));
            all.extend(found);
            if !is_full {
                return Ok(all);
            }
            query.after = all.last().map(|last| (last.term.clone(), last.key.clone()));
        }
        unreachable!()
    }
}

fn map(value: Value) -> ombak_types::PropMap {
    value.as_object().unwrap().clone()
}

fn bucket() -> Bucket {
    Bucket::untyped("b")
}

fn all_keys(bucket: &Bucket) -> IndexQuery {
    let range = QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded };
    IndexQuery { bucket: bucket.clone(), range, after: None, results_max: None, pattern: None, shows_tombstones: false }
}

fn names(found: &[IndexMatch]) -> Vec<String> {
    found.iter().map(|found| String::from_utf8(found.key.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn every_node_lists_every_key_of_every_class_once() {
    let cluster = Cluster::of(5);
    for (name, n) in [("n1", 1), ("n2", 2), ("b", 3)] {
        let bucket = Bucket::untyped(name);
        let keys = cluster.fill(&bucket, 3_000, n);
        for through in 0..5 {
            assert_eq!(cluster.list(through, &bucket).await.unwrap(), keys);
            assert_eq!(names(&cluster.query(through, all_keys(&bucket)).await.unwrap().0), keys);
        }
    }
    for through in 0..5 {
        assert_eq!(cluster.buckets(through).await.unwrap(), ["b", "n1", "n2"]);
    }
}

#[tokio::test]
async fn a_node_that_is_down_is_not_missed_unless_it_is_the_only_replica() {
    let cluster = Cluster::of(4);
    let keys = cluster.fill(&bucket(), 500, 3);
    cluster.fill(&Bucket::untyped("n1"), 500, 1);
    cluster.set_down(2);
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys);
    assert_eq!(names(&cluster.query(1, all_keys(&bucket())).await.unwrap().0), keys);
    let refused = Err(Error::InsufficientVnodesAvailable);
    assert_eq!(cluster.list(0, &Bucket::untyped("n1")).await, refused);
    assert_eq!(cluster.query(0, all_keys(&Bucket::untyped("n1"))).await.map(drop), refused.map(drop));
    assert_eq!(cluster.buckets(0).await.unwrap(), ["b", "n1"], "other partitions show the bucket");
    for down in [0, 1] {
        cluster.set_down(down);
    }
    assert_eq!(cluster.list(3, &bucket()).await, Err(Error::InsufficientVnodesAvailable));
    assert_eq!(cluster.buckets(3).await.unwrap(), ["b", "n1"], "a listing of buckets is partial then");
}

#[tokio::test]
async fn another_replica_goes_on_where_a_node_broke_off() {
    for fault in [Fault::Breaks(0), Fault::Breaks(1), Fault::Breaks(2), Fault::Ends(1)] {
        let cluster = Cluster::of(5);
        // More than one piece for each home partition.
        let keys = cluster.fill(&bucket(), 20_000, 3);
        cluster.fault(1, fault);
        if let Fault::Breaks(_) = fault {
            cluster.fault(3, fault);
            assert_eq!(names(&cluster.query(0, all_keys(&bucket())).await.unwrap().0), keys);
        }
        assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys, "{fault:?}");
    }
}

#[tokio::test]
async fn when_all_replicas_break_off_the_listing_fails() {
    let cluster = Cluster::of(5);
    cluster.fill(&bucket(), 100, 3);
    for node in 1..5 {
        cluster.fault(node, Fault::Breaks(0));
    }
    assert_eq!(cluster.list(0, &bucket()).await, Err(Error::InsufficientVnodesAvailable));
    assert_eq!(cluster.query(0, all_keys(&bucket())).await.map(drop), Err(Error::InsufficientVnodesAvailable));
}

#[tokio::test]
async fn a_node_that_hangs_is_given_up_when_it_is_taken_for_down() {
    let cluster = Arc::new(Cluster::of(5));
    let keys = cluster.fill(&bucket(), 20_000, 3);
    cluster.fault(1, Fault::Hangs(1));
    let listing = {
        let cluster = cluster.clone();
        tokio::spawn(async move { cluster.list(0, &bucket()).await })
    };
    let query = {
        let cluster = cluster.clone();
        tokio::spawn(async move { cluster.query(0, all_keys(&bucket())).await })
    };
    let deadline = Instant::now() + LIMIT;
    while !cluster.network.asked.lock().contains(&cluster.id(1)) {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cluster.set_down(1);
    assert_eq!(listing.await.unwrap().unwrap(), keys);
    assert_eq!(names(&query.await.unwrap().unwrap().0), keys);
}

#[tokio::test]
async fn a_listing_that_waits_too_long_times_out() {
    let cluster = Cluster::of(5);
    cluster.fill(&bucket(), 100, 3);
    for node in 1..5 {
        cluster.fault(node, Fault::Hangs(0));
    }
    let limit = Some(Duration::from_millis(50));
    let mut listing = cluster.nodes[0].list_keys(&bucket(), limit).unwrap();
    let end = loop {
        match listing.next().await {
            Some(Ok(_)) => {}
            end => break end,
        }
    };
    assert_eq!(end, Some(Err(Error::Timeout)));
    let mut results = cluster.nodes[0].query(all_keys(&bucket()), limit).unwrap();
    assert_eq!(results.next().await, Some(Err(Error::Timeout)));
}

#[tokio::test]
async fn a_replica_that_is_not_full_or_does_not_take_part_is_not_asked() {
    let cluster = Cluster::with(4, |number, config| config.participates_in_coverage = number != 0);
    let keys = cluster.fill(&bucket(), 500, 3);
    // Two nodes lack what the others have, and only one of them knows it.
    let lacks = [cluster.id(0), cluster.id(2)];
    for key in 0..500 {
        cluster.store(&bucket(), &format!("late{key}"), 3, |node| !lacks.contains(&node));
    }
    assert!(cluster.nodes[2].set_all_filling(FillReason::Restored));
    let late = (0..500).map(|key| format!("late{key}"));
    let mut all: Vec<String> = keys.into_iter().chain(late).collect();
    all.sort();
    // The node that coordinates does not answer itself, because it does not take part.
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), all);
    assert!(cluster.network.asked.lock().contains(&cluster.id(2)), "it refused when it was asked");
    assert_eq!(names(&cluster.query(0, all_keys(&bucket())).await.unwrap().0), all);
}

#[tokio::test]
async fn participation_changes_while_the_node_runs() {
    let cluster = Cluster::of(2);
    let keys = cluster.fill(&bucket(), 50, 3);
    cluster.set_down(1);
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys);
    cluster.nodes[0].set_participates_in_coverage(false);
    assert!(!cluster.nodes[0].participates_in_coverage());
    assert_eq!(cluster.list(0, &bucket()).await, Err(Error::InsufficientVnodesAvailable));
    cluster.nodes[0].set_participates_in_coverage(true);
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys);
}

#[tokio::test]
async fn replicas_that_missed_writes_are_asked_only_if_there_is_no_other() {
    let cluster = Cluster::of(3);
    let keys = cluster.fill(&bucket(), 300, 3);
    cluster.network.links.lock().missed_writes.insert(cluster.id(1));
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys);
    assert!(!cluster.network.asked.lock().contains(&cluster.id(1)));
    let others = [cluster.id(0), cluster.id(2)];
    cluster.network.links.lock().missed_writes.extend(others);
    cluster.set_down(2);
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys);
    assert!(cluster.network.asked.lock().contains(&cluster.id(1)));
}

#[tokio::test]
async fn a_node_with_another_ring_is_not_believed() {
    let cluster = Cluster::of(4);
    let keys = cluster.fill(&bucket(), 300, 3);
    let owners: Vec<NodeId> = cluster.ring.owners().collect();
    let later = Ring::from_owners(&owners, cluster.ring.version().next()).unwrap();
    cluster.nodes[1].set_ring(later.clone()).unwrap();
    assert_eq!(cluster.list(0, &bucket()).await.unwrap(), keys);
    for node in [2, 3] {
        cluster.nodes[node].set_ring(later.clone()).unwrap();
    }
    assert_eq!(cluster.list(0, &bucket()).await, Err(Error::InsufficientVnodesAvailable));
    assert_eq!(cluster.list(1, &bucket()).await.unwrap(), keys, "three of four nodes agree");
}

/// A listing asks the nodes for more only when its reader does: a reader that has taken one batch
/// has caused a small part of the pieces of the whole.
#[tokio::test]
async fn a_slow_reader_holds_the_nodes_back() {
    let cluster = Cluster::of(5);
    cluster.fill(&bucket(), 30_000, 3);
    let pieces = || cluster.network.pieces.load(Ordering::Relaxed);
    let mut listing = cluster.nodes[0].list_keys(&bucket(), Some(LIMIT)).unwrap();
    assert!(!listing.next().await.unwrap().unwrap().is_empty());
    let mut results = cluster.nodes[0].query(all_keys(&bucket()), Some(LIMIT)).unwrap();
    assert!(!results.next().await.unwrap().unwrap().is_empty());
    let at_first = pieces();
    while let Some(batch) = listing.next().await {
        batch.unwrap();
    }
    while let Some(batch) = results.next().await {
        batch.unwrap();
    }
    let all = pieces();
    assert!(at_first * 2 < all, "{at_first} of {all} pieces were made for one batch of each");
}

fn put(key: &str, terms: &[i64]) -> PutRequest {
    let mut sibling = Sibling::new("v");
    let entry = |term: &i64| IndexEntry { field: "f_int".into(), term: IndexTerm::Int((*term).into()) };
    sibling.meta.indexes = terms.iter().map(entry).collect();
    let object = Object { clock: VectorClock::new(), siblings: vec![sibling] };
    let options = PutOptions { w: Some(Quorum::Count(3)), ..PutOptions::default() };
    PutRequest { bucket: bucket(), key: Some(Bytes::copy_from_slice(key.as_bytes())), object, options }
}

fn fault() -> impl Strategy<Value = Option<Fault>> {
    let pieces = 0..4usize;
    prop_oneof![
        2 => Just(None),
        1 => pieces.clone().prop_map(|pieces| Some(Fault::Breaks(pieces))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Terms in order, page by page, each page through another node, while nodes fail: a run gives
    /// the right entries or an error, and an error only if three neighbours fail.
    #[test]
    fn pages_of_terms_are_right_through_every_node_while_nodes_fail(
        objects in prop::collection::btree_map(0..400u32, prop::collection::btree_set(-30..30i64, 0..4), 1..80),
        (from, to) in (-35..35i64, -35..35i64),
        page in 1..40usize,
        faults in prop::collection::vec(fault(), 5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let cluster = Cluster::of(5);
        let result = runtime.block_on(async {
            for (key, terms) in &objects {
                let terms: Vec<i64> = terms.iter().copied().collect();
                cluster.nodes[*key as usize % 5].put(put(&format!("k{key:03}"), &terms)).await.unwrap();
            }
            for (node, fault) in faults.iter().enumerate() {
                fault.iter().for_each(|fault| cluster.fault(node, *fault));
            }
            let range = QueryRange::Terms {
                field: "f_int".into(),
                from: IndexTerm::Int(from.into()),
                to: IndexTerm::Int(to.into()),
            };
            let query = IndexQuery { range, ..all_keys(&bucket()) };
            (cluster.pages(&query, page).await, cluster.query(0, query.clone()).await, cluster.list(1, &bucket()).await)
        });
        let mut expected: Vec<(i64, String)> = Vec::new();
        for (key, terms) in &objects {
            expected.extend(terms.iter().filter(|t| (from..=to).contains(t)).map(|term| (*term, format!("k{key:03}"))));
        }
        expected.sort();
        let shown = |found: &[IndexMatch]| -> Vec<(i64, String)> {
            let term = |found: &IndexMatch| match &found.term {
                Some(IndexTerm::Int(term)) => i64::try_from(term).unwrap(),
                other => panic!("{other:?}"),
            };
            found.iter().zip(names(found)).map(|(found, name)| (term(found), name)).collect()
        };
        let enough = faults.iter().filter(|fault| fault.is_some()).count() <= 1;
        let (pages, whole, listed) = result;
        prop_assert!(!enough || pages.is_ok() && whole.is_ok() && listed.is_ok());
        if let Ok(pages) = pages {
            prop_assert_eq!(shown(&pages), expected.clone());
        }
        if let Ok((whole, _)) = whole {
            prop_assert_eq!(shown(&whole), expected);
        }
        if let Ok(listed) = listed {
            prop_assert_eq!(listed, objects.keys().map(|key| format!("k{key:03}")).collect::<Vec<_>>());
        }
    }
}
