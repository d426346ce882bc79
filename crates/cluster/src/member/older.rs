//! What a node does when its directory turns out to be an older copy, or when it was removed, and
//! how it keeps its directory apart from copies (docs/design/replication.md §8).

use super::error::ClusterError;
use super::member_node::{Inner, others};
use super::standing::Standing;
use crate::metadata::PeerTransport;
use bytes::Bytes;
use ombak_kv::FillReason;
use ombak_metadata::state::Metadata;
use ombak_metadata::{NoAnswer, RaftTransport};
use ombak_node_files::OwnMetadata;
use ombak_peer::Peers;
use ombak_runtime::{BoxFuture, RuntimeExt};
use ombak_types::NodeId;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::{error, warn};

/// How long a stop waits until the cluster has recorded the last milestone. Without a majority, the
/// one of the start stays.
const STOP_MAX: Duration = Duration::from_millis(500);
/// How often a node that takes no part says so.
const TELL_INTERVAL: Duration = Duration::from_secs(2);

/// The way of the metadata's messages to other nodes, each of which is asked first what it knows of
/// this node's directory.
pub(super) struct AskingTransport {
    transport: PeerTransport,
    standing: Arc<Standing>,
}

impl AskingTransport {
    pub fn new(peers: Peers, standing: Arc<Standing>) -> Self {
        Self { transport: PeerTransport(peers), standing }
    }
}

impl RaftTransport for AskingTransport {
    fn send(&self, to: NodeId, request: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let (transport, standing) = (self.transport.clone(), self.standing.clone());
        Box::pin(async move {
            if !standing.may_talk(to).await {
                let why = "it has not said yet what it knows of this node's directory".into();
                return Err(NoAnswer { to, why });
            }
            transport.send(to, request, deadline).await
        })
    }
}

impl Inner {
    /// Looks after this node's directory until the node stops: asks members that were not reachable
    /// before, draws milestones, and takes the node out when its directory is an older copy.
    pub fn watch_directory(self: &Arc<Self>) {
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            if let Some(why) = this.standing.found().await {
                this.take_no_part(&why).await;
            }
        }));
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            let mut next_milestone = this.runtime.now() + this.timing.milestone;
            for turn in 0usize.. {
                this.runtime.sleep(this.timing.metadata.maintenance).await;
                if this.is_stopping() || this.standing.older().is_some() {
                    return;
                }
                for member in others(&this.followed.get().metadata, this.id()) {
                    this.standing.may_talk(member.id).await;
                }
                this.look_for_removal(turn).await;
                this.save_capabilities().await;
                if this.runtime.now() >= next_milestone {
                    let deadline = this.command_deadline();
                    this.pass_milestone(deadline).await;
                    next_milestone = this.runtime.now() + this.timing.milestone;
                }
            }
        }));
    }

    /// Draws a milestone and lets the cluster record it, if it has recorded the one before. So a
    /// copy that was made earlier during this run is older, too.
    async fn pass_milestone(&self, deadline: Instant) {
        let identity = self.kv().directory().identity();
        if !identity.is_some_and(|identity| identity.milestones.is_newest_recorded()) {
            return;
        }
        let kv = self.kv().clone();
        match self.blocking(move || kv.directory().draw_milestone()).await {
            // A refusal is found again by the next look at the metadata.
            Ok(Ok(())) => drop(self.metadata_node().record_milestone(deadline).await),
            Ok(Err(error)) => warn!(%error, "no milestone could be drawn"),
            Err(error) => warn!(%error, "no milestone could be drawn"),
        }
    }

    /// A copy that was made before this stop shall be older than the directory. There may be no
    /// majority, or no time.
    pub async fn pass_milestone_at_stop(&self) {
        let metadata = self.followed.get().metadata;
        if metadata.members().len() > 1 && self.standing.older().is_none() && !self.is_stopping() {
            self.pass_milestone(self.runtime.now() + STOP_MAX).await;
        }
    }

    /// Notes on disk what a state says of this node's directory. The caller holds `adopting`.
    pub async fn note_in_directory(&self, state: &Metadata) {
        let Some(me) = state.members().get(&self.id()) else { return };
        if let Some(milestone) = me.milestone {
            let identity = self.kv().directory().identity();
            if !identity.as_ref().is_some_and(|identity| identity.milestones.has_passed(milestone)) {
                // The node follows the metadata, and somebody else went on under its identity.
                return self.standing.set_older(format!(
                    "its cluster has recorded its milestone {}, which is not in it",
                    milestone.number
                ));
            }
        }
        let metadata = if state.members().len() > 1 { OwnMetadata::Member } else { OwnMetadata::Alone };
        let (kv, milestone) = (self.kv().clone(), me.milestone);
        if *self.noted.lock() == Some((milestone, metadata)) {
            return;
        }
        let note = move || {
            let directory = kv.directory();
            if let Some(milestone) = milestone {
                directory.note_recorded(milestone)?;
            }
            directory.note_metadata(metadata)
        };
        match self.blocking(note).await {
            Ok(Ok(())) => *self.noted.lock() = Some((milestone, metadata)),
            Ok(Err(error)) => error!(%error, "node.json could not be written"),
            Err(error) => error!(%error, "node.json could not be written"),
        }
    }

    /// Ends all work of this node for clients and members. The process goes on, so that operators
    /// see why.
    pub async fn take_no_part(self: &Arc<Self>, why: &str) {
        let _adopting = self.adopting.lock().await;
        self.kv().refuse_requests(self.standing.no_part());
        let is_removed = self.standing.is_removed();
        if !self.has_left_in_order() {
            error!("{}", self.standing.text(why));
        }
        self.slot.store(None);
        self.metadata_node().stop().await;
        self.close_to_writes().await;
        self.node.withdraw();
        self.kv().set_handoff(false, false);
        let kv = self.kv().clone();
        let noted = self.blocking(move || match is_removed {
            true => (kv.directory().note_removed(), true),
            false => (kv.directory().note_restored(), kv.set_all_filling(FillReason::Restored)),
        });
        match noted.await {
            Ok((Ok(()), true)) => {}
            Ok((Err(error), _)) => error!(%error, "that could not be noted in node.json: stop the node"),
            Ok((Ok(()), false)) | Err(_) => error!("that could not be noted in replicas.json: stop the node"),
        }
        if is_removed {
            return self.end_leave();
        }
        let this = self.clone();
        self.runtime.spawn(Box::pin(async move {
            while !this.is_stopping() {
                this.standing.tell_all().await;
                this.runtime.sleep(TELL_INTERVAL).await;
            }
        }));
    }

    /// Fails if this node takes no part.
    pub fn check_takes_part(&self) -> Result<(), ClusterError> {
        match self.standing.older() {
            Some(why) => Err(ClusterError::refused(format!("Failed: {}", self.standing.text(&why)))),
            None => Ok(()),
        }
    }
}
