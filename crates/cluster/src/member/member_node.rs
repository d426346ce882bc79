//! A node that is a member of a cluster.

use super::admission::MemberAdmission;
use super::detection_times::DetectionTimes;
use super::error::ClusterError;
use super::older::AskingTransport;
use super::parts::MemberTiming;
use super::questions::{Answer, Question, decode, encode};
use super::ring_change_facts::RingChangeFacts;
use super::seeds::{MovedMembers, Seeds};
use super::standing::Standing;
use crate::member::MEMBERS;
use crate::members::Member;
use crate::metadata::MetadataSlot;
use crate::node::{ClusterNode, NodeNames};
use ombak_kv::Kv;
use ombak_metadata::state::{MemberStatus, Metadata};
use ombak_metadata::{LogDirs, MetadataNode, Myself, RaftTransport, Setup};
use ombak_node_files::{Milestone, OwnMetadata};
use ombak_ring::RingSize;
use ombak_runtime::{Published, Runtime, within};
use ombak_storage::fs::FileSystem;
use ombak_types::NodeId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Mutex;

/// A node that is a member of a cluster, which may have no other members. Clones share everything.
#[derive(Clone)]
pub struct MemberNode {
    pub(super) inner: Arc<Inner>,
}

/// How far the node has followed the metadata.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    pub metadata: Metadata,
    /// The index of the last entry.
    pub index: u64,
}

pub(super) struct Inner {
    pub node: ClusterNode,
    pub runtime: Arc<dyn Runtime>,
    pub fs: Arc<dyn FileSystem>,
    pub dirs: LogDirs,
    pub me: Myself,
    pub target_n_val: u32,
    pub target_location_n_val: u32,
    /// The nodes that are asked before this one serves, if it is new.
    pub seeds: Seeds,
    /// Members that were found at other addresses than the metadata has.
    pub moved: MovedMembers,
    /// The times of failure detection, if this node detects failures.
    pub detection_times: Option<DetectionTimes>,
    /// The names of the members that this node has known, for log lines.
    pub names: Arc<NodeNames>,
    /// Whether this node is new: no decision about it counts yet.
    pub is_new: AtomicBool,
    /// Why this node serves nobody until its peers or an operator have decided.
    pub awaits: Published<Option<String>>,
    /// Locked while that is changed.
    pub deciding: parking_lot::Mutex<()>,
    /// Whether a peer has said since the start that a member has this node's name or address.
    pub was_known: AtomicBool,
    pub timing: MemberTiming,
    /// The metadata that answers other nodes.
    pub slot: MetadataSlot,
    /// The metadata that this node follows. While the node joins a cluster, another one answers.
    pub current: arc_swap::ArcSwap<MetadataNode>,
    pub admission: Arc<MemberAdmission>,
    /// Whether this node's directory is the newest one.
    pub standing: Arc<Standing>,
    pub followed: Published<Followed>,
    /// What node.json says since the last note.
    pub noted: parking_lot::Mutex<Option<(Option<Milestone>, OwnMetadata)>>,
    /// The closing of the one bucket or type that takes no writes; 0: there is none.
    pub part_closing: AtomicU64,
    /// Locked while a state is adopted.
    pub adopting: Mutex<()>,
    /// Whether this node takes no writes because it is about to join a cluster.
    pub is_joining: AtomicBool,
    /// Whether a log was put in force only in part, because the disk failed. The node stays closed.
    pub is_stuck: AtomicBool,
    /// Locked while the node joins a cluster, or leaves it again.
    pub moving: Mutex<()>,
    /// Whether the node withdraws from a cluster that it may have begun to join.
    pub is_withdrawing: AtomicBool,
    pub is_stopping: AtomicBool,
    /// Whether this node was about to leave its cluster when it last heard of it.
    pub is_leaving: AtomicBool,
    /// Whether it has left.
    pub has_left: Published<bool>,
    /// The change of the ring that this node drives, if it does.
    pub driven: parking_lot::Mutex<Option<RingChangeFacts>>,
}

impl MemberNode {
    /// The engine.
    pub fn kv(&self) -> &Kv {
        self.inner.node.kv()
    }

    /// The engine and the transport.
    pub fn node(&self) -> &ClusterNode {
        &self.inner.node
    }

    /// The newest decided state that this node follows.
    pub fn metadata(&self) -> Metadata {
        self.inner.followed.get().metadata
    }

    /// Whether this node leads the metadata, as far as it knows.
    pub fn leads(&self) -> bool {
        self.inner.metadata_node().is_leader()
    }

    /// Waits until the state that this node follows has some property. Returns false if that did
    /// not come true until the deadline.
    pub async fn wait_for(&self, deadline: Instant, mut holds: impl FnMut(&Metadata) -> bool) -> bool {
        let found = self.inner.followed.wait_for(|now| holds(&now.metadata));
        matches!(within(&*self.inner.runtime, Some(deadline), found).await, Ok(Some(_)))
    }

    /// Waits until the node has left its cluster, as an operator has asked it to. Nothing is left
    /// to do for it then but to stop.
    pub async fn left(&self) {
        if !matches!(self.inner.has_left.wait_for(|left| *left).await, Some(true)) {
            // The node stops for another reason.
            std::future::pending::<()>().await;
        }
    }

    /// Stops the node. The caller has closed the interfaces for clients before.
    pub async fn stop(&self) {
        self.inner.pass_milestone_at_stop().await;
        self.inner.is_stopping.store(true, Ordering::SeqCst);
        self.inner.standing.end();
        self.inner.awaits.end();
        self.inner.slot.store(None);
        self.inner.current.load_full().stop().await;
        self.inner.node.stop().await;
    }
}

/// A node that is dropped without a stop leaves its log as it is. Its transport, the services of
/// the transport and the metadata hold each other no more.
impl Drop for Inner {
    fn drop(&mut self) {
        self.slot.store(None);
    }
}

impl Inner {
    pub fn kv(&self) -> &Kv {
        self.node.kv()
    }

    pub fn id(&self) -> NodeId {
        self.me.node
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// The metadata that this node follows.
    pub fn metadata_node(&self) -> Arc<MetadataNode> {
        self.current.load_full()
    }

    /// When a command of an operator that begins now ends.
    pub fn command_deadline(&self) -> Instant {
        self.runtime.now() + self.timing.command
    }

    /// When a question that is asked now is answered, at the latest.
    pub fn question_deadline(&self) -> Instant {
        self.runtime.now() + self.timing.question
    }

    /// What a metadata node in this directory needs. With `found`, it founds a cluster.
    pub fn setup(&self, dir: PathBuf, found: Option<RingSize>) -> Setup {
        let transport: Arc<dyn RaftTransport> =
            Arc::new(AskingTransport::new(self.node.transport().clone(), self.standing.clone()));
        Setup {
            runtime: self.runtime.clone(),
            fs: self.fs.clone(),
            dir,
            transport,
            me: self.me.clone(),
            milestones: self.standing.clone(),
            found,
            timing: self.timing.metadata.clone(),
        }
    }

    /// Runs work that blocks.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ClusterError> {
        Ok(self.kv().offload(work).await?)
    }

    /// Asks a node, or this one. The error is for people.
    pub async fn ask(self: &Arc<Self>, node: NodeId, question: &Question, deadline: Instant) -> Result<Answer, String> {
        let answer = if node == self.id() {
            self.answer(question, deadline).await
        } else {
            let outgoing = crate::metadata::question(MEMBERS, encode(question), deadline);
            let asked = within(&*self.runtime, Some(deadline), self.node.transport().call(node, outgoing)).await;
            let bytes = asked.map_err(|_| "it did not answer in time".to_owned())?.map_err(|e| e.to_string())?;
            decode(&bytes)?
        };
        match answer {
            Answer::Refused { why } => Err(why),
            answer => Ok(answer),
        }
    }

    /// Whether requests are sent to a node.
    pub fn is_up(&self, node: NodeId) -> bool {
        node == self.id() || self.node.membership().is_none_or(|membership| membership.liveness().is_up(node))
    }

    /// The name of a member; its identity if it has none.
    pub fn name_of(&self, node: NodeId) -> String {
        let followed = self.followed.get();
        followed.metadata.members().get(&node).map_or_else(|| node.to_string(), |member| member.name.clone())
    }
}

/// What an operator reads about a node that takes no part.
pub(super) fn older_text(why: &str) -> String {
    format!(
        "the data directory of this node is an older copy ({why}); it takes no part. Stop it, and put back its newest \
         directory, or start it with an empty data directory under its name, and let it rejoin ('ombak admin cluster \
         rejoin')"
    )
}

/// What an operator reads about a node that is no member any more.
pub(super) fn removed_text(why: &str) -> String {
    format!(
        "this node is no member of its cluster any more ({why}); it takes no part, and serves nobody. Stop it. It can \
         join again only with an empty data directory"
    )
}

/// The id of the cluster that a node tells its peers: the lineage of the metadata. 0 while the node
/// is alone, and while it joins: until the commit it may leave again, and ask members that have
/// left.
pub(super) fn cluster_id(metadata: &Metadata, me: NodeId) -> u64 {
    let status = metadata.members().get(&me).map(|member| member.status);
    let is_member = status.is_some_and(|status| status != MemberStatus::Joining) && metadata.members().len() > 1;
    metadata.lineage().filter(|_| is_member).map_or(0, |lineage| lineage.id)
}

/// Remembers the names of the members for log lines about the nodes and their metadata logs.
pub(super) fn learn_names(names: &NodeNames, metadata: &Metadata) {
    for (node, member) in metadata.members() {
        names.learn(node.get(), &member.name);
        names.learn(member.log.get(), &member.name);
    }
}

/// The other members that can be reached at all. An address that is none is left out.
pub(super) fn others(metadata: &Metadata, me: NodeId) -> Vec<Member> {
    let others = metadata.members().iter().filter(|(node, _)| **node != me);
    let member = |(node, member): (&NodeId, &ombak_metadata::state::Member)| match member.peer_address.parse() {
        Ok(address) => Some(Member { id: *node, name: member.name.clone(), address }),
        Err(_) => {
            tracing::error!(member = member.name, address = member.peer_address, "a member has no usable address");
            None
        }
    };
    others.filter_map(member).collect()
}
