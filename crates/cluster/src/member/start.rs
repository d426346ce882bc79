//! The start of a member.

use super::bucket_changes::ClusterProperties;
use super::data_types_gate::DataTypesGate;
use super::directory_age::admission::MemberAdmission;
use super::directory_age::asking_transport::AskingTransport;
use super::directory_age::own_directory::OwnDirectory;
use super::error::ClusterError;
use super::following::known_members::{cluster_id, learn_names, others};
use super::following::state::{Following, JoinSteps};
use super::ground::{AnswersItself, Followed, Ground, OwnLogs};
use super::joining::join::take_over;
use super::joining::state::Joining;
use super::member_node::{Inner, MemberNode};
use super::parts::MemberParts;
use super::questions::detection_times::DetectionTimes;
use super::ring_change::state::RingChange;
use super::service::MemberContext;
use super::tombstones_gate::TombstonesGate;
use crate::metadata::{Acquaintance, AcquaintanceCell, MetadataSlot, all_records};
use crate::node::{ClusterNode, NodeNames, StartError};
use crate::services::registry;
use arc_swap::ArcSwap;
use ombak_kv::{FillReason, Holdings, Kv};
use ombak_metadata::state::Metadata;
use ombak_metadata::{LogDirs, LogError, MetadataNode, Myself, SavedMetadata};
use ombak_node_files::OwnMetadata;
use ombak_ring::{Ring, RingSize};
use ombak_runtime::Published;
use ombak_storage::fs::FileSystem;
use ombak_types::Error;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use tracing::{error, info, warn};

/// Why a member does not start.
#[derive(Debug, thiserror::Error)]
pub enum MemberStartError {
    /// The engine or the transport does not start.
    #[error(transparent)]
    Node(#[from] StartError),
    /// The metadata does not start.
    #[error(transparent)]
    Metadata(#[from] ClusterError),
    /// The size of the ring is no size.
    #[error("ring_size: {0}")]
    RingSize(#[from] ombak_ring::BadRingSize),
    /// The directory belongs to a member, and its metadata is missing.
    #[error(
        "this directory belongs to a member of a cluster, and its metadata is missing ({0} is not there), as after a \
         restore: without it the node would begin a cluster of its own under the identity of a member. Put back the \
         newest directory of this node, or start it with an empty data directory under its name, and let it rejoin \
         ('ombak admin cluster rejoin')"
    )]
    LostMetadata(PathBuf),
    /// Another process runs with a copy of the directory.
    #[error(
        "another process with the identity of this node is connected to its cluster ({0}): two copies of one data \
         directory must not run at the same time"
    )]
    RunsTwice(String),
    /// node.json or replicas.json cannot be written.
    #[error("{0}")]
    Files(String),
    /// A file of bucket properties cannot be put aside.
    #[error("the file of bucket properties cannot be put aside: {0}")]
    PropertyFile(std::io::Error),
}

/// What the services find once the node has started.
pub(super) type Cell = Arc<OnceLock<Weak<Inner>>>;

impl MemberNode {
    /// Starts a node. It blocks while the stores open, so it is not for network threads. When it
    /// returns, the node follows the last state that it knew, and takes requests. A node without
    /// metadata founds a cluster of its own, and takes over the bucket types that it had.
    pub async fn start(parts: MemberParts) -> Result<Self, MemberStartError> {
        let MemberParts { mut node, metadata_dir, advertised, target_n_val, target_location_n_val, peers, timing } =
            parts;
        let (runtime, fs) = (node.kv.runtime.clone(), node.kv.fs.clone());
        let detection_times = node.detection.as_ref().map(DetectionTimes::from);
        let ring_size = RingSize::new(node.kv.ring_size)?;
        let names = node.names.clone();
        let (slot, admission, cell) = (MetadataSlot::default(), Arc::new(MemberAdmission::default()), Cell::default());
        let acquaintance = AcquaintanceCell::default();
        let context = MemberContext {
            runtime: runtime.clone(),
            metadata: slot.clone(),
            acquaintance: acquaintance.clone(),
            admission: admission.clone(),
            member: cell.clone(),
        };
        registry::open_of_member(&context, node.speaks, &mut node.services).map_err(StartError::from)?;
        node.admission = admission.clone();
        node.kv.awaits_ring = true;
        node.kv.hooks.kind_gate = Some(Arc::new(DataTypesGate::new(cell.clone())));
        node.kv.hooks.reaping_gate = Some(Arc::new(TombstonesGate::new(cell.clone())));
        let node = ClusterNode::start(node)?;
        let address = advertised.unwrap_or(node.listens_on());
        let me = Myself {
            node: node.id(),
            name: node.kv().node_name().to_owned(),
            peer_address: address.to_string(),
            boot: node.kv().identity().boot,
        };
        let own_directory = Arc::new(OwnDirectory::new(
            node.kv().clone(),
            runtime.clone(),
            node.transport().clone(),
            admission.clone(),
            slot.clone(),
            timing.question,
        ));
        // Nobody has set it before: the cell is of this start.
        let shared: Arc<dyn Acquaintance> = own_directory.clone();
        let _ = acquaintance.set(Arc::downgrade(&shared));
        let has_peers = !peers.is_empty();
        let dirs = LogDirs::new(fs.clone(), &metadata_dir);
        let begin = Begin { dirs, ring_size, own_directory: own_directory.clone(), has_peers, names: names.clone() };
        let transport = Arc::new(AskingTransport::new(node.transport().clone(), own_directory.clone()));
        let setup = |dir, found| ombak_metadata::Setup {
            runtime: runtime.clone(),
            fs: fs.clone(),
            dir,
            transport: transport.clone(),
            me: me.clone(),
            milestones: own_directory.clone(),
            found,
            timing: timing.metadata.clone(),
        };
        let opened = match begin.look(&node, &fs, &admission).await {
            Ok(()) => begin.open(node.kv(), setup).await,
            Err(why) => Err(why),
        };
        let metadata = match opened {
            Ok(metadata) => metadata,
            Err(error) => {
                node.stop().await;
                return Err(error);
            }
        };
        let ground = Arc::new(Ground {
            node,
            runtime,
            me,
            timing,
            logs: OwnLogs { fs, dirs: begin.dirs, slot, current: ArcSwap::new(metadata.clone()) },
            admission,
            own_directory,
            followed: Published::new(Followed::default()),
            is_stopping: AtomicBool::new(false),
            myself: OnceLock::new(),
        });
        let following = Arc::new(Following::new(ground.clone(), names, peers.clone()));
        let joining = Arc::new(Joining::new(following.clone(), peers));
        let targets = (target_n_val, target_location_n_val);
        let ring_change = Arc::new(RingChange::new(following.clone(), targets));
        let inner = Arc::new(Inner { ground, following, joining, ring_change, detection_times });
        // Nobody has set these before: they are of this start.
        let myself: Arc<dyn AnswersItself> = inner.clone();
        let _ = inner.myself.set(Arc::downgrade(&myself));
        let join_steps: Arc<dyn JoinSteps> = inner.joining.clone();
        let _ = inner.following.join_steps.set(Arc::downgrade(&join_steps));
        let _ = cell.set(Arc::downgrade(&inner));
        let (state, index) = (metadata.metadata(), metadata.applied());
        let authority = Arc::new(ClusterProperties::new(&inner));
        inner.kv().buckets().follow(authority, all_records(&state));
        {
            let _adopting = inner.following.adopting.lock().await;
            inner.following.hold_what_was_brought(&state);
            inner.following.resume_placement(&state).await;
            inner.following.adopt(state, index).await;
        }
        if inner.own_directory.older().is_none() {
            inner.logs.slot.store(Some(metadata.clone()));
        }
        inner.joining.await_peers_if_new(&metadata.metadata()).await;
        inner.remember_capabilities().await;
        // What other nodes have told during the start.
        inner.save_seen().await;
        inner.following.start_following(metadata);
        inner.joining.start_withdrawing();
        inner.watch_directory();
        inner.following.start_looking_for_members();
        inner.ring_change.start_driving();
        Ok(Self { inner })
    }
}

/// How the metadata begins at a start.
struct Begin {
    dirs: LogDirs,
    ring_size: RingSize,
    own_directory: Arc<OwnDirectory>,
    /// Whether the configuration names peers.
    has_peers: bool,
    names: Arc<NodeNames>,
}

impl Begin {
    /// Asks the members that the node knew what they know of its directory, before it takes part
    /// (docs/design/replication.md §8). A member that has lost its metadata does not start.
    async fn look(
        &self,
        node: &ClusterNode,
        fs: &Arc<dyn FileSystem>,
        admission: &MemberAdmission,
    ) -> Result<(), MemberStartError> {
        let (dirs, fs, kv) = (self.dirs.clone(), fs.clone(), node.kv().clone());
        let read = move || {
            let Some(dir) = dirs.current()? else { return Ok(None) };
            let seen = kv.directory().read_seen_milestones().unwrap_or_else(|why| {
                // It is written anew when another node starts.
                error!(%why, "what this node has seen of the others' directories is lost");
                BTreeMap::new()
            });
            Ok(Some((SavedMetadata::read(fs, &dir)?, seen)))
        };
        let kv = node.kv();
        let read: Result<Option<(SavedMetadata, _)>, LogError> = kv.offload(read).await.map_err(ClusterError::from)?;
        let Some((saved, seen)) = read.map_err(ClusterError::from)? else {
            let owned = node.kv().directory().identity().map_or(OwnMetadata::None, |identity| identity.metadata);
            return match owned {
                OwnMetadata::None => Ok(()),
                OwnMetadata::Alone | OwnMetadata::Member => Err(MemberStartError::LostMetadata(self.dirs.pointer())),
            };
        };
        learn_names(&self.names, &saved.metadata);
        let members = others(&saved.metadata, node.id());
        self.own_directory.set_saved(saved.log, saved.progress);
        node.transport().set_cluster(cluster_id(&saved.metadata, node.id()));
        admission.starts.remember(seen);
        admission.known.store(Some(Arc::new(saved.metadata.clone())));
        if saved.metadata.was_removed(node.id()) {
            self.own_directory.set_removed("it was removed before this start".into());
        }
        let addresses = members.iter().map(|member| (member.id, member.address)).collect();
        node.set_members(members);
        self.own_directory.ask_all(addresses).await.map_err(MemberStartError::RunsTwice)?;
        let is_primary = |ring: &Ring| ring.node_count() > 1 && ring.node(node.id()).is_some();
        if saved.metadata.ring().is_some_and(|ring| is_primary(ring)) && !node.kv().has_replica_state() {
            warn!("replicas.json is missing: the replicas of this node are compared with others before they are full");
            let is_noted = kv.offload({
                let kv = kv.clone();
                move || kv.set_all_filling(FillReason::NewStore)
            });
            if !is_noted.await.map_err(ClusterError::from)? {
                return Err(MemberStartError::Files("replicas.json cannot be written; see the log".into()));
            }
        }
        Ok(())
    }

    /// Opens the metadata, or founds a cluster. What the node had in its file of bucket types is
    /// part of the metadata before the new log is in force, and the file is put aside after that.
    /// So a loss of power in between loses nothing: the next start does it again.
    async fn open(
        &self,
        kv: &Kv,
        setup: impl Fn(PathBuf, Option<RingSize>) -> ombak_metadata::Setup,
    ) -> Result<Arc<MetadataNode>, MemberStartError> {
        let blocking = async |work: Box<dyn FnOnce(LogDirs) -> Result<Option<PathBuf>, LogError> + Send>| {
            let dirs = self.dirs.clone();
            let done = kv.offload(move || work(dirs)).await.map_err(ClusterError::from)?;
            done.map_err(|e| MemberStartError::from(ClusterError::from(e)))
        };
        let records = kv.buckets().records();
        let metadata = match blocking(Box::new(|dirs| dirs.current())).await? {
            Some(dir) => {
                let metadata = MetadataNode::start(setup(dir, None)).await.map_err(ClusterError::from)?;
                if self.own_directory.older().is_some() {
                    // What it has is shown. It sends nothing and answers nobody, from the first
                    // request on.
                    kv.refuse_requests(self.own_directory.no_part());
                    metadata.stop().await;
                    return Ok(metadata);
                }
                if !records.is_empty() && is_as_founded(&metadata.metadata()) {
                    take_over(&metadata, records.clone()).await.map_err(MemberStartError::from)?;
                }
                metadata
            }
            None => {
                self.note_if_new(kv).await?;
                let dir = blocking(Box::new(|dirs| dirs.begin().map(Some))).await?.unwrap_or_default();
                let found = Some(self.ring_size);
                let metadata = MetadataNode::start(setup(dir.clone(), found)).await.map_err(ClusterError::from)?;
                take_over(&metadata, records.clone()).await.map_err(MemberStartError::from)?;
                blocking(Box::new(move |dirs| dirs.put_in_force(&dir).map(|()| None))).await?;
                info!(types_and_buckets = records.len(), "founded a cluster of this node");
                metadata
            }
        };
        let buckets = kv.clone();
        let aside = kv.offload(move || buckets.buckets().put_file_aside()).await.map_err(ClusterError::from)?;
        aside.map_err(MemberStartError::PropertyFile)?;
        Ok(metadata)
    }
}

impl Begin {
    /// A node that holds nothing, and whose configuration names peers, notes that it asks them
    /// before it serves. It does so before it founds a cluster: a directory with a cluster is not
    /// new.
    async fn note_if_new(&self, kv: &Kv) -> Result<(), MemberStartError> {
        if !self.has_peers {
            return Ok(());
        }
        let there = kv.clone();
        let note = move || match there.find_object(&Holdings::Everything)? {
            None => Ok::<_, Error>(there.directory().note_awaits_peers(false)),
            Some(_) => Ok(Ok(())),
        };
        let noted = kv.offload(note).await.and_then(|noted| noted).map_err(ClusterError::from)?;
        noted.map_err(|why| MemberStartError::Files(why.to_string()))
    }
}

/// Whether nothing has happened in this cluster since its founding but changes of bucket types.
fn is_as_founded(state: &Metadata) -> bool {
    state.members().len() == 1 && state.ring().is_some_and(|ring| ring.version().number == 1)
}
