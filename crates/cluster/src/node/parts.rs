//! What a node is made of.

use super::names::NodeNames;
use crate::capabilities::Speaks;
use crate::failure_detection::Detection;
use crate::liveness::Liveness;
use ombak_jobs::JobsConfig;
use ombak_kv::KvConfig;
use ombak_peer::handshake::Secret;
use ombak_peer::{Admission, KeepOlderSession, PeersConfig, Services};
use ombak_repair::ExchangeConfig;
use ombak_runtime::Network;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// Maximum number of questions of other nodes that are under way at a time, if nothing else is
/// configured.
const REPLICA_CALLS_MAX: usize = 20_000;

/// What a node is made of. The program and the simulator pass different parts to the same code.
pub struct NodeParts {
    /// The engine: its runtime and its file system are those of the whole node. Its peers are
    /// replaced.
    pub kv: KvConfig,
    /// The limits of MapReduce jobs.
    pub jobs: JobsConfig,
    /// How often exchanges with other primaries run, and what they may take; `None`: this node
    /// neither begins exchanges nor answers those of others.
    pub exchange: Option<ExchangeConfig>,
    /// Sockets.
    pub network: Arc<dyn Network>,
    /// Where the node listens for its peers. Port 0 means any free port.
    pub listen: SocketAddr,
    /// The id of the cluster; 0: none. A member sets it by itself.
    pub cluster: u64,
    /// The secret of the cluster.
    pub secret: Secret,
    /// What this node speaks with others.
    pub speaks: Speaks,
    /// What this node can do beside its services, for peers of other versions.
    pub capabilities: BTreeSet<String>,
    /// The services of the node beside those for replicas.
    pub services: Services,
    /// Which peers are let in.
    pub admission: Arc<dyn Admission>,
    /// Which nodes are up, if `detection` is `None`.
    pub liveness: Arc<dyn Liveness>,
    /// The times of failure detection. With `None`, the node detects nothing by itself.
    pub detection: Option<Detection>,
    /// Where the node notes the names of the members that it knows, for log lines.
    pub names: Arc<NodeNames>,
    /// Limits and times of the transport.
    pub transport: PeersConfig,
    /// Maximum number of questions of other nodes that are under way at a time. Further ones are
    /// refused.
    pub replica_calls_max: usize,
}

impl NodeParts {
    /// Parts with the limits that are usual, without further services.
    pub fn new(
        kv: KvConfig,
        network: Arc<dyn Network>,
        listen: SocketAddr,
        (cluster, secret): (u64, Secret),
        liveness: Arc<dyn Liveness>,
    ) -> Self {
        Self {
            kv,
            jobs: JobsConfig::default(),
            exchange: None,
            network,
            listen,
            cluster,
            secret,
            speaks: Speaks::default(),
            capabilities: BTreeSet::new(),
            services: Services::default(),
            admission: Arc::new(KeepOlderSession),
            liveness,
            detection: None,
            names: Arc::default(),
            transport: PeersConfig::default(),
            replica_calls_max: REPLICA_CALLS_MAX,
        }
    }
}
