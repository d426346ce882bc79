//! The life of a node.

use super::parts::NodeParts;
use super::start_error::StartError;
use crate::capabilities::{Speaks, capabilities};
use crate::exchange;
use crate::failure_detection::{self, FailureDetectorSlot};
use crate::peer_table::{ClusterPeers, Member};
use crate::replica::{Caller, ReplicaCounters, ReplicaService};
use crate::services::{Gates, NodeContext, registry};
use crate::told::TellingAdmission;
use crate::waking::{self, Watch};
use ombak_failure_detection::{FailureDetector, HealthConfig, LivenessTable};
use ombak_jobs::Jobs;
use ombak_kv::Kv;
use ombak_peer::handshake::LocalPeer;
use ombak_peer::{NodeIdentity, Peers, PeersParts};
use ombak_repair::Repair;
use ombak_runtime::{Pool, Runtime, RuntimeExt, within};
use ombak_stats::ReplicaCounts;
use ombak_types::NodeId;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::{info, warn};

/// How long a stop waits for the questions of other nodes that are under way. The engine waits for
/// its requests afterwards, so this is short.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// The longest pause between attempts to connect to a node, if this node detects failures. A node
/// that returned is up for the others within about a second, so they must not wait for longer.
const BACKOFF_MAX: Duration = Duration::from_millis(300);
/// How long a peer may leave a ping unanswered before the requests that clients wait for end, for
/// each time that it may leave requests unanswered before it gets none.
const ANSWER_PER_STALL: (u32, u32) = (3, 2);
/// How often it looks.
const DRAIN_INTERVAL: Duration = Duration::from_millis(5);

/// One node that runs: an engine, and a transport to the other nodes of its cluster.
///
/// A node that is dropped without [`ClusterNode::stop`] ends its connections, but leaves its stores
/// open.
pub struct ClusterNode {
    kv: Kv,
    /// The work that brings copies back to where they belong.
    repair: Repair,
    runtime: Arc<dyn Runtime>,
    transport: Peers,
    peers: Arc<ClusterPeers>,
    jobs: Jobs,
    /// The gates of the services that are about data.
    gates: Gates,
    counters: Arc<ReplicaCounters>,
    failure_detector: FailureDetectorSlot,
    /// Ends the watch for pauses.
    is_unwatched: Arc<AtomicBool>,
    listens_on: SocketAddr,
}

impl ClusterNode {
    /// Starts a node, where `Runtime::spawn` works. It blocks while the stores open. It knows no
    /// other members yet, and its ring is the one that the engine opened with.
    ///
    /// The engine is opened first, because it counts the start and so knows the boot number that
    /// the transport tells the peers. The number and the milestone of the start are durable before
    /// anybody hears of them (docs/design/replication.md §8): after a failure in between, for
    /// example because the port is in use, the directory is ahead of what the others know, never
    /// behind. The node listens last, when it can answer.
    pub fn start(mut parts: NodeParts) -> Result<Self, StartError> {
        let table = parts.detection.as_ref().map(|detection| Arc::new(LivenessTable::new(&detection.health)));
        if let Some(table) = &table {
            parts.liveness = table.clone();
            parts.transport.backoff_max = parts.transport.backoff_max.min(BACKOFF_MAX);
        }
        if let Some(detection) = &parts.detection {
            parts.transport.mux.answer_max_us = answer_max_us(&detection.health);
        }
        let peers = Arc::new(ClusterPeers::new(parts.liveness.clone()));
        let runtime = parts.kv.runtime.clone();
        let kv = Kv::open(ombak_kv::KvConfig { peers: peers.clone(), ..parts.kv })?;
        if parts.speaks == Speaks::Version1 {
            kv.repair_host().transfers().told.set_unused();
        }
        // From here on the node answers questions about copies.
        let repair = Repair::of(&kv);
        let counters = Arc::new(ReplicaCounters::default());
        let replicas = ReplicaService::new(kv.clone(), runtime.clone(), counters.clone(), parts.replica_calls_max);
        let jobs = Jobs::new(kv.clone(), parts.jobs, peers.clone());
        let failure_detector = FailureDetectorSlot::default();
        let context = NodeContext {
            kv: kv.clone(),
            runtime: runtime.clone(),
            counters: counters.clone(),
            replicas,
            jobs: jobs.clone(),
            failure_detector: failure_detector.clone(),
        };
        let started = (|| {
            let mut services = parts.services;
            let gates = registry::open_of_node(&context, parts.speaks, &mut services)?;
            let session = runtime.random_u64().map_err(|error| StartError::Random(error.into()))?;
            let (node, boot_number) = (kv.identity().node_id, kv.identity().boot);
            let (cluster, capabilities) = (parts.cluster, &parts.capabilities | &capabilities(parts.speaks));
            let identity = NodeIdentity { cluster, node, boot_number, session, capabilities };
            let transport = Peers::new(PeersParts {
                runtime: runtime.clone(),
                network: parts.network,
                local: LocalPeer { identity: identity.clone(), secret: parts.secret },
                services,
                admission: Arc::new(TellingAdmission::new(parts.admission, kv.clone())),
                config: parts.transport,
            })?;
            if let (Some(detection), Some(table)) = (parts.detection, table) {
                let running = failure_detection::start(detection, table, &identity, &kv, &runtime, &transport)?;
                failure_detector.store(Some(running));
            }
            let address = parts.listen;
            let listens_on = transport.listen(address).map_err(|source| StartError::Listen { address, source })?;
            Ok((transport, listens_on, gates))
        })();
        let (transport, listens_on, gates) = started.inspect_err(|_: &StartError| {
            if let Some(failure_detector) = failure_detector.swap(None) {
                failure_detector.stop();
            }
            kv.close();
        })?;
        peers.connect(Caller {
            kv: kv.clone(),
            transport: transport.clone(),
            runtime: runtime.clone(),
            liveness: parts.liveness,
            counters: counters.clone(),
            failure_detector: failure_detector.load_full(),
        });
        if let Some(config) = parts.exchange.filter(|_| parts.speaks != Speaks::Version1) {
            exchange::start(&repair, &kv, &peers, config);
        }
        repair.start();
        let is_unwatched = Arc::new(AtomicBool::new(false));
        if failure_detector.load().is_some() {
            let watch =
                Watch { kv: kv.clone(), transport: transport.clone(), runtime: runtime.clone(), peers: peers.clone() };
            runtime.spawn(Box::pin(waking::watch(watch, is_unwatched.clone())));
        }
        info!(node = kv.node_name(), node_id = %kv.identity().node_id, address = %listens_on, "listening for other nodes");
        Ok(Self {
            kv,
            repair,
            runtime,
            transport,
            peers,
            jobs,
            gates,
            counters,
            failure_detector,
            is_unwatched,
            listens_on,
        })
    }

    /// The engine.
    pub const fn kv(&self) -> &Kv {
        &self.kv
    }

    /// The work that brings copies back to where they belong.
    pub const fn repair(&self) -> &Repair {
        &self.repair
    }

    /// The MapReduce jobs of this node.
    pub const fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The transport to other nodes.
    pub const fn transport(&self) -> &Peers {
        &self.transport
    }

    /// The identity of this node.
    pub fn id(&self) -> NodeId {
        self.kv.identity().node_id
    }

    /// Where the node listens for its peers.
    pub const fn listens_on(&self) -> SocketAddr {
        self.listens_on
    }

    /// The other members, as the engine sees them.
    pub const fn peers(&self) -> &Arc<ClusterPeers> {
        &self.peers
    }

    /// Replaces the list of the other members.
    pub fn set_members(&self, members: Vec<Member>) {
        self.peers.set_members(members);
    }

    /// The list of the other members.
    pub fn members(&self) -> Vec<Member> {
        self.peers.members()
    }

    /// What is known about the other members; `None` if this node detects no failures, or has
    /// stopped.
    pub fn failure_detector(&self) -> Option<Arc<FailureDetector>> {
        self.failure_detector.load_full()
    }

    /// What was asked of other nodes, and by them.
    pub fn replica_counts(&self) -> ReplicaCounts {
        self.counters.counts()
    }

    /// Stops the node. The caller has closed the interfaces for clients before.
    ///
    /// New questions of other nodes are refused first, so that they ask elsewhere. The engine
    /// closes while the transport still runs, because its own requests need the other nodes to end.
    pub async fn stop(&self) {
        // The others know at once, and ask other nodes.
        if let Some(failure_detector) = self.failure_detector.load_full() {
            failure_detector.leave();
        }
        self.gates.drain();
        let drained = async {
            while self.gates.under_way() > 0 {
                self.runtime.sleep(DRAIN_INTERVAL).await;
            }
        };
        if within(&*self.runtime, Some(self.runtime.now() + DRAIN_MAX), drained).await.is_err() {
            warn!("questions of other nodes were still under way after {} s", DRAIN_MAX.as_secs());
        }
        let kv = self.kv.clone();
        match Pool::start(&self.runtime, "ombak-stop", 1, 1) {
            Ok(pool) => {
                if let Err(why) = pool.run(move || kv.close()).await {
                    warn!(%why, "the engine did not close");
                }
                pool.stop();
            }
            // Blocking here is better than leaving the stores open.
            Err(_) => kv.close(),
        }
        self.disconnect();
    }

    /// Serves other nodes no more, and counts as stopped for them, because this node takes no part
    /// in its cluster (docs/design/replication.md §8). Services that are not about data go on.
    pub(crate) fn withdraw(&self) {
        self.is_unwatched.store(true, Ordering::SeqCst);
        self.gates.drain();
        if let Some(failure_detector) = self.failure_detector.swap(None) {
            failure_detector.leave();
        }
    }

    fn disconnect(&self) {
        self.is_unwatched.store(true, Ordering::SeqCst);
        if let Some(failure_detector) = self.failure_detector.swap(None) {
            failure_detector.stop();
        }
        self.peers.disconnect();
        self.transport.stop();
    }
}

impl Drop for ClusterNode {
    fn drop(&mut self) {
        self.disconnect();
    }
}

/// When the requests that clients wait for end at a peer that answers no ping, in microseconds. By
/// then the peer gets no new ones.
fn answer_max_us(health: &HealthConfig) -> i64 {
    let answer_max = health.stall_max * ANSWER_PER_STALL.0 / ANSWER_PER_STALL.1;
    i64::try_from(answer_max.as_micros()).unwrap_or(i64::MAX)
}
