//! Members over real sockets of the loopback interface, with stores in memory or on the disk.

mod admin_locations;
mod admin_second_losses;
mod bucket_changes;
mod directory_age;
mod following_host_names;
mod functions;
mod joining_catching_up;
mod joining_forms_a_cluster;
mod joining_members_up;
mod joining_newcomers;
mod joining_races;
mod joining_with_objects;
mod life;
mod mixed_versions;
mod records;
mod ring_change;
mod ring_change_closings;
mod ring_change_full_disks;
mod ring_change_objects;
mod told_seqs;
mod version_1;
mod version_2;

use super::*;
use crate::{Detection, Liveness, NodeParts, RequestOutcome, Speaks, StartError};
use bytes::Bytes;
use ombak_kv::buckets::Namespaces;
use ombak_kv::{GetOptions, GetReply, GetRequest, KvConfig, OpenError, PutOptions, PutRequest};
use ombak_metadata::Timing;
use ombak_node_files::NodeFileError;
use ombak_peer::handshake::Secret;
use ombak_repair::ExchangeConfig;
use ombak_runtime::TcpNetwork;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{BackendFactory, BitcaskFactory, JournalConfig, MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, Error, NodeId, Object, PropMap, Quorum, Sibling, VectorClock};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const RING_SIZE: u32 = 16;
const SECRET: &[u8] = b"the secret of the test cluster";

/// All nodes count as up.
struct AllUp;

impl Liveness for AllUp {
    fn is_up(&self, _node: NodeId) -> bool {
        true
    }

    fn ended(&self, _node: NodeId, _outcome: RequestOutcome, _took: Duration) {}
}

fn timing() -> MemberTiming {
    let metadata = Timing {
        heartbeat: Duration::from_millis(50),
        election: (Duration::from_millis(300), Duration::from_millis(600)),
        maintenance: Duration::from_millis(100),
        ..Timing::default()
    };
    let ring_round = Duration::from_millis(50);
    MemberTiming { metadata, ring_round, command: Duration::from_secs(20), ..MemberTiming::default() }
}

/// The names of features in handshakes.
fn capabilities_of(features: &[Feature]) -> BTreeSet<String> {
    features.iter().map(|feature| feature.capability().to_owned()).collect()
}

/// A directory in which a node can be started.
struct Place {
    dir: TempDir,
    number: usize,
    is_durable: bool,
    secret: &'static [u8],
    /// Where the node listens.
    listen: SocketAddr,
    timing: MemberTiming,
    /// What the node speaks.
    speaks: Speaks,
    /// The features that the node has beside.
    features: Vec<Feature>,
    /// The namespaces of records that the node knows.
    namespaces: Namespaces,
    /// The peers of its configuration.
    peers: Vec<SocketAddr>,
    /// The peers that its configuration names by the names of their hosts.
    names: Option<Arc<dyn SeedNames>>,
    /// A simulated disk for the stores, and the same for the files of the node. Without it the
    /// place is on a real one.
    disk: Option<(Arc<dyn FileSystem>, Arc<dyn FileSystem>)>,
    /// Whether the node detects failures. If not, all nodes count as up.
    detects: bool,
}

impl Place {
    fn memory(number: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let (is_durable, secret, speaks, detects) = (false, SECRET, Speaks::default(), false);
        Self {
            dir,
            number,
            is_durable,
            secret,
            listen,
            timing: timing(),
            speaks,
            features: Vec::new(),
            namespaces: Namespaces::default(),
            peers: Vec::new(),
            names: None,
            disk: None,
            detects,
        }
    }

    fn durable(number: usize) -> Self {
        Self { is_durable: true, ..Self::memory(number) }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The stores. A node that ran here before has let go of them, or is about to.
    async fn factory(&self) -> Arc<dyn BackendFactory> {
        if !self.is_durable {
            return Arc::new(MemoryFactory::new(MemoryConfig::default()));
        }
        let fs =
            || self.disk.as_ref().map_or_else(|| Arc::new(RealFs) as Arc<dyn FileSystem>, |(stores, _)| stores.clone());
        let open = || BitcaskFactory::new(fs(), self.path().join("bitcask"), JournalConfig::default()).ok();
        let mut factory = open();
        until("the node before has ended", || {
            factory = factory.take().or_else(open);
            factory.is_some()
        })
        .await;
        Arc::new(factory.unwrap())
    }

    async fn parts(&self) -> MemberParts {
        let factory = self.factory().await;
        let mut kv = KvConfig::new(name(self.number), self.path(), factory);
        kv.ring_size = RING_SIZE;
        if let Some((_, of_node)) = &self.disk {
            kv.fs = of_node.clone();
        }
        kv.io_threads = 1;
        kv.hooks.namespaces = self.namespaces.clone();
        kv.timeout = Duration::from_secs(20);
        let network = Arc::new(TcpNetwork::default());
        let secret = Secret::new(self.secret).unwrap();
        let node = NodeParts::new(kv, network, self.listen, (0, secret), Arc::new(AllUp));
        MemberParts {
            node: NodeParts {
                exchange: Some(ExchangeConfig::default()),
                speaks: self.speaks,
                capabilities: capabilities_of(&self.features),
                detection: self.detects.then(Detection::default),
                ..node
            },
            metadata_dir: self.path().join("metadata"),
            advertised: None,
            target_n_val: 4,
            target_location_n_val: 3,
            peers: match &self.names {
                None => self.peers.clone().into(),
                Some(names) => Seeds::from(self.peers.clone()).with_names(names.clone()),
            },
            timing: self.timing.clone(),
        }
    }

    /// Starts the node. A task of the node before it may keep the directory for a moment.
    async fn start(&self) -> MemberNode {
        let give_up_at = Instant::now() + PATIENCE;
        loop {
            match self.try_start().await {
                Err(error) if is_in_use(&error) && Instant::now() < give_up_at => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                started => return started.unwrap(),
            }
        }
    }

    async fn try_start(&self) -> Result<MemberNode, MemberStartError> {
        MemberNode::start(self.parts().await).await
    }
}

fn name(number: usize) -> String {
    format!("node{number}@test")
}

/// Nodes that are alone, numbered from 1.
async fn alone(count: usize) -> (Vec<Place>, Vec<MemberNode>) {
    let places: Vec<Place> = (1..=count).map(Place::memory).collect();
    let mut nodes = Vec::new();
    for place in &places {
        nodes.push(place.start().await);
    }
    (places, nodes)
}

/// Nodes that are alone, numbered from 1, each with stores on the disk and an address that it keeps
/// over restarts.
async fn alone_on_disks(count: usize) -> (Vec<Place>, Vec<MemberNode>) {
    let mut places: Vec<Place> = (1..=count).map(Place::durable).collect();
    let mut nodes = Vec::new();
    for place in &mut places {
        let node = place.start().await;
        place.listen = node.node().listens_on();
        nodes.push(node);
    }
    (places, nodes)
}

/// Joins all nodes to the first one, and commits.
async fn form(nodes: &[MemberNode]) {
    for node in &nodes[1..] {
        assert_eq!(node.join(nodes[0].node().listens_on()).await.unwrap(), name_of(&nodes[0]));
    }
    assert!(nodes[0].plan().await.unwrap().is_some());
    nodes[0].commit().await.unwrap();
}

/// A cluster of some nodes.
async fn cluster(count: usize) -> (Vec<Place>, Vec<MemberNode>) {
    let (places, nodes) = alone(count).await;
    form(&nodes).await;
    (places, nodes)
}

/// Whether another node has the directory.
fn is_in_use(error: &MemberStartError) -> bool {
    let MemberStartError::Node(StartError::Engine(OpenError::Files(error))) = error else { return false };
    matches!(error, NodeFileError::InUse(_))
}

/// Stops a node, so that its directory is soon free for another start.
async fn end(node: MemberNode) {
    node.stop().await;
}

async fn stop(nodes: &[MemberNode]) {
    for node in nodes {
        node.stop().await;
    }
}

fn name_of(node: &MemberNode) -> String {
    node.kv().node_name().to_owned()
}

fn bucket() -> Bucket {
    Bucket::untyped("b")
}

async fn put(node: &MemberNode, bucket: Bucket, key: &str, w: u32) -> Result<(), Error> {
    let key = Some(Bytes::copy_from_slice(key.as_bytes()));
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
    let w = Some(Quorum::Count(w));
    let options = PutOptions { w, dw: w, ..PutOptions::default() };
    node.kv().put(PutRequest { bucket, key, object, options }).await.map(drop)
}

async fn is_found(node: &MemberNode, bucket: Bucket, key: &str) -> bool {
    let request = GetRequest { bucket, key: Bytes::copy_from_slice(key.as_bytes()), options: GetOptions::default() };
    matches!(node.kv().get(request).await.unwrap(), GetReply::Found(_))
}

fn props(value: serde_json::Value) -> PropMap {
    value.as_object().cloned().unwrap()
}

/// Changes bucket types or properties, as the interfaces for clients do: on a thread that may
/// block.
async fn change<T: Send + 'static>(
    node: &MemberNode,
    change: impl FnOnce(&ombak_kv::BucketRegistry) -> T + Send + 'static,
) -> T {
    let kv = node.kv().clone();
    tokio::task::spawn_blocking(move || change(kv.buckets())).await.unwrap()
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up_at, "it never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
