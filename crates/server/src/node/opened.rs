//! The engine of a node, alone or as a member of a cluster.

use super::names::{self, OwnAddresses};
use super::refusal::Refusal;
use super::secret;
use crate::config::{HostPort, Settings};
use ombak_cluster::{MemberNode, MemberParts, MemberTiming, NobodyIsUp, NodeNames, NodeParts, Secret};
use ombak_jobs::{Jobs, JobsConfig, NoPartNodes};
use ombak_kv::{Kv, KvConfig};
use ombak_runtime::{Network, TcpNetwork};
use ombak_tls::{Certificates, TlsNetwork};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// The id of the cluster until the node knows its own: none.
const CLUSTER: u64 = 0;

/// The open engine of a node.
#[derive(Clone)]
pub enum Opened {
    /// A node that does not listen for others.
    Alone(Kv, Jobs),
    /// A node that listens for others, whether there are some or not.
    Member(MemberNode),
}

impl Opened {
    /// Opens the engine, and joins it with the metadata and the transport if the node listens for
    /// others: then it has addresses, and perhaps certificates. `names` gets the names of the other
    /// nodes. Blocks while the stores open.
    pub fn open(
        settings: &Settings,
        among_peers: Option<(OwnAddresses, Option<Arc<Certificates>>)>,
        config: KvConfig,
        jobs: JobsConfig,
        names: Arc<NodeNames>,
        tasks: &Handle,
    ) -> Result<Self, Refusal> {
        let Some((own, certificates)) = among_peers else {
            check_alone(&settings.data_dir).map_err(Refusal::needs_operator)?;
            let kv = Kv::open(config)?;
            let jobs = Jobs::new(kv.clone(), jobs, Arc::new(NoPartNodes));
            return Ok(Self::Alone(kv, jobs));
        };
        let secret = match (&settings.peer_secret_file, &certificates) {
            (Some(file), _) => secret::read_or_create(file, &settings.data_dir).map_err(Refusal::needs_operator)?,
            (None, Some(_)) => Secret::known_to_everybody(),
            (None, None) => {
                let text = "cluster.secret_file has no value, and no certificate takes its place";
                return Err(Refusal::needs_operator(text));
            }
        };
        // A node that connects from where it listens can be told from others by packet filters.
        let from = Some(own.listen.ip()).filter(|ip| !ip.is_unspecified());
        let tcp = Arc::new(TcpNetwork { from });
        let network: Arc<dyn Network> = match certificates {
            Some(certificates) => Arc::new(TlsNetwork::new(tcp, certificates)),
            None => tcp,
        };
        let mut node = NodeParts::new(config, network, own.listen, (CLUSTER, secret), Arc::new(NobodyIsUp));
        node.detection = Some(settings.detection.clone());
        node.speaks = settings.speaks;
        node.exchange = Some(settings.exchange);
        node.jobs = jobs;
        node.names = names;
        let lifetime_us = settings.peer_request_lifetime.as_micros();
        node.transport.mux.lifetime_us = i64::try_from(lifetime_us).unwrap_or(i64::MAX);
        let parts = MemberParts {
            node,
            metadata_dir: metadata_dir(&settings.data_dir),
            advertised: own.advertised,
            target_n_val: settings.target_n_val,
            target_location_n_val: settings.target_location_n_val,
            peers: names::seeds(&settings.peers, own.listen),
            timing: MemberTiming::default(),
        };
        let member = tasks.block_on(MemberNode::start(parts))?;
        tasks.block_on(member.wait_for_members_up());
        let reached_at = own.advertised.unwrap_or(member.node().listens_on());
        let members = member.node().members().into_iter().map(|member| member.address);
        let others = members.chain(settings.peers.iter().filter_map(HostPort::address));
        if let Some(warning) = names::only_reached_from_here(reached_at, others) {
            tracing::warn!("{warning}");
        }
        Ok(Self::Member(member))
    }

    /// The engine.
    pub fn kv(&self) -> &Kv {
        match self {
            Self::Alone(kv, _) => kv,
            Self::Member(member) => member.kv(),
        }
    }

    /// The MapReduce jobs of the node.
    pub fn jobs(&self) -> Jobs {
        match self {
            Self::Alone(_, jobs) => jobs.clone(),
            Self::Member(member) => member.node().jobs().clone(),
        }
    }

    /// The member, if the node listens for others.
    pub const fn member(&self) -> Option<&MemberNode> {
        match self {
            Self::Alone(..) => None,
            Self::Member(member) => Some(member),
        }
    }
}

fn metadata_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("metadata")
}

/// Whether the node in this directory has been a member of a cluster, if only of its own: then its
/// bucket types are in the metadata.
pub fn has_metadata(data_dir: &Path) -> bool {
    metadata_dir(data_dir).join("current.json").exists()
}

fn check_alone(data_dir: &Path) -> Result<(), String> {
    if !has_metadata(data_dir) {
        return Ok(());
    }
    Err(format!(
        "the node in {} has been part of a cluster, so its bucket types are in {}: set listener.peer.internal again",
        data_dir.display(),
        metadata_dir(data_dir).display()
    ))
}
