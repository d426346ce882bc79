//! What every story of a member stands on.
//!
//! What it is: the engine and the transport, the clock, who this node is, its logs of the metadata,
//! the newest state that it has followed, and what is known of directories; and the way to ask a
//! member. Each story has state of its own, beside a share of this.
//!
//! What it is not: it has no state of a story, and nothing here begins by itself.
//!
//! Invariants:
//! * `followed` is set by `following` alone, after all of a state is in force.
//! * A question to this node itself is answered here, and does not travel.

use super::directory_age::admission::MemberAdmission;
use super::directory_age::asking_transport::AskingTransport;
use super::directory_age::own_directory::OwnDirectory;
use super::error::ClusterError;
use super::parts::MemberTiming;
use super::questions::question::{Answer, Question, decode, encode};
use crate::member::MEMBERS;
use crate::metadata::MetadataSlot;
use crate::node::ClusterNode;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use ombak_failure_detection::SoftState;
use ombak_kv::Kv;
use ombak_metadata::state::Metadata;
use ombak_metadata::{LogDirs, MetadataNode, Myself, RaftTransport, Setup};
use ombak_node_files::NodeFileError;
use ombak_repair::Repair;
use ombak_ring::{RingSize, RingVersion};
use ombak_runtime::{BoxFuture, Published, Runtime, within};
use ombak_storage::fs::FileSystem;
use ombak_types::NodeId;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// How far the node has followed the metadata.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    pub metadata: Metadata,
    /// The index of the last entry.
    pub index: u64,
}

/// The logs of the metadata.
pub(super) struct OwnLogs {
    pub fs: Arc<dyn FileSystem>,
    pub dirs: LogDirs,
    /// The metadata that answers other nodes.
    pub slot: MetadataSlot,
    /// The metadata that this node follows. While the node joins a cluster, another one answers.
    pub current: ArcSwap<MetadataNode>,
}

/// Answers the questions that this node asks of itself.
pub(super) trait AnswersItself: Send + Sync {
    /// The answer of this node.
    fn answer_itself<'a>(self: Arc<Self>, question: &'a Question, deadline: Instant) -> BoxFuture<'a, Answer>;
}

/// What all stories share.
pub(super) struct Ground {
    pub node: ClusterNode,
    pub runtime: Arc<dyn Runtime>,
    pub me: Myself,
    pub timing: MemberTiming,
    pub logs: OwnLogs,
    /// Which peers are let in, with what is known of the others.
    pub admission: Arc<MemberAdmission>,
    /// Whether this node's directory is the newest one.
    pub own_directory: Arc<OwnDirectory>,
    pub followed: Published<Followed>,
    pub is_stopping: AtomicBool,
    /// Set at the start, before anything is asked.
    pub myself: OnceLock<Weak<dyn AnswersItself>>,
}

/// A node that is dropped without a stop leaves its log as it is. Its transport, the services of
/// the transport and the metadata hold each other no more.
impl Drop for Ground {
    fn drop(&mut self) {
        self.logs.slot.store(None);
    }
}

impl Ground {
    pub fn kv(&self) -> &Kv {
        self.node.kv()
    }

    pub fn repair(&self) -> &Repair {
        self.node.repair()
    }

    pub fn id(&self) -> NodeId {
        self.me.node
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// The metadata that this node follows.
    pub fn metadata_node(&self) -> Arc<MetadataNode> {
        self.logs.current.load_full()
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
            Arc::new(AskingTransport::new(self.node.transport().clone(), self.own_directory.clone()));
        Setup {
            runtime: self.runtime.clone(),
            fs: self.logs.fs.clone(),
            dir,
            transport,
            me: self.me.clone(),
            milestones: self.own_directory.clone(),
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

    /// Does what blocks with the directory of this node. The error is for people.
    pub async fn on_directory<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Kv) -> Result<T, NodeFileError> + Send + 'static,
    ) -> Result<T, String> {
        let kv = self.kv().clone();
        let done = self.blocking(move || work(&kv)).await.map_err(|why| why.to_string())?;
        done.map_err(|why| why.to_string())
    }

    /// Fails if this node takes no part.
    pub fn check_takes_part(&self) -> Result<(), ClusterError> {
        match self.own_directory.older() {
            Some(why) => Err(ClusterError::refused(format!("Failed: {}", self.own_directory.text(&why)))),
            None => Ok(()),
        }
    }

    /// Asks a node, or this one. The error is for people.
    pub async fn ask(&self, node: NodeId, question: &Question, deadline: Instant) -> Result<Answer, String> {
        let answer = if node == self.id() {
            let myself = self.myself.get().and_then(Weak::upgrade).ok_or_else(|| "this node stops".to_owned())?;
            myself.answer_itself(question, deadline).await
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

    /// The ring that each member follows; `None` for a member that does not answer.
    pub async fn rings(&self, deadline: Instant) -> Vec<(NodeId, Option<RingVersion>)> {
        let members: Vec<NodeId> = self.followed.get().metadata.members().keys().copied().collect();
        let answers = join_all(members.iter().map(|node| self.ask(*node, &Question::Ring, deadline))).await;
        let version = |answer| if let Ok(Answer::Ring { version }) = answer { Some(version) } else { None };
        members.into_iter().zip(answers.into_iter().map(version)).collect()
    }

    /// Whether requests are sent to a node.
    pub fn is_up(&self, node: NodeId) -> bool {
        node == self.id()
            || self.node.failure_detector().is_none_or(|failure_detector| failure_detector.liveness().is_up(node))
    }

    /// What another member told last about its copies; `None` if this node has heard nothing of it.
    pub fn told_by(&self, member: NodeId) -> Option<Arc<SoftState>> {
        self.node.failure_detector()?.view().peers.get(&member)?.soft_state.clone()
    }

    /// The name of a member; its identity if it has none.
    pub fn name_of(&self, node: NodeId) -> String {
        let followed = self.followed.get();
        followed.metadata.members().get(&node).map_or_else(|| node.to_string(), |member| member.name.clone())
    }
}
