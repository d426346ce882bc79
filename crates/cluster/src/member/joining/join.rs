//! How a node that has a cluster of its own joins another one, and how it leaves that again before
//! the commit.
//!
//! The node takes no writes, and begins a new log under which the other cluster adds it. When it
//! has got the metadata of that cluster, it compares its bucket types and properties with those
//! there, puts the new log in force and drops its own. A loss of power before that leaves it alone
//! as it was, and a loss of power afterwards leaves it a member. Until the commit it owns nothing:
//! its clients reach the members through it.
//!
//! What the node holds is foreign data from then on (docs/design/replication.md §15). It stays
//! where it is until the commit, and then it goes to the primaries. If the node does not join after
//! all, it is alone with everything that it had, under the bucket types and the security that the
//! cluster had.

use super::state::Joining;
use crate::capabilities::RING_CHANGES;
use crate::member::error::ClusterError;
use crate::member::member_node::MemberNode;
use crate::member::questions::question::{Answer, Question};
use crate::metadata::{all_records, taken_over};
use ombak_kv::{Holdings, NoPart};
use ombak_metadata::state::{Command, MemberStatus, Metadata, Refusal as MetadataRefusal};
use ombak_metadata::{MetadataNode, ProposeError};
use ombak_node_files::UnfinishedJoin;
use ombak_peer::IdentifyError;
use ombak_peer::handshake::HandshakeError;
use ombak_ring::RingSize;
use ombak_ring::staging::Refusal;
use ombak_types::{Error, NodeId};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::{info, warn};

impl MemberNode {
    /// Joins the cluster of the node that listens for its peers at `address`. Returns the name of
    /// that node. The join is staged: a plan and a commit make it effective.
    pub async fn join(&self, address: SocketAddr) -> Result<String, ClusterError> {
        self.join_as(address, false).await
    }

    /// Joins. A node that is to take the place of a member with its name is there `beside_twin`,
    /// under a second name until that member is removed.
    pub(in crate::member) async fn join_as(
        &self,
        address: SocketAddr,
        beside_twin: bool,
    ) -> Result<String, ClusterError> {
        let inner = &self.inner;
        inner.check_takes_part()?;
        let joining = &inner.joining;
        let _moving = joining.moving.lock().await;
        let own = inner.metadata_node().metadata();
        if own.members().len() > 1 {
            return Err(refused(&Refusal::AlreadyInCluster));
        }
        let seed = joining.identify(address).await?;
        joining.withdraw_before_joining(UnfinishedJoin { seed, address }).await;
        inner.node.transport().set_address(seed, address);
        let outcome = joining.join_through(UnfinishedJoin { seed, address }, &own, beside_twin).await;
        if outcome.is_ok() {
            // Its clients reach the members through it.
            joining.end_waiting();
        } else {
            if inner.metadata_node().metadata().members().len() <= 1 {
                inner.node.transport().forget_address(seed);
            }
            joining.start_withdrawing();
        }
        outcome
    }
}

fn refused(refusal: &Refusal) -> ClusterError {
    ClusterError::refused(refusal.text(|node| node.to_string()))
}

impl Joining {
    async fn identify(&self, address: SocketAddr) -> Result<NodeId, ClusterError> {
        let identified = self.node.transport().identify(address, self.question_deadline()).await;
        let identity = identified.map_err(|error| match error {
            IdentifyError::Unreachable(why) => {
                ClusterError::refused(format!("Node {address} is not reachable! ({why})"))
            }
            IdentifyError::Handshake(HandshakeError::ClosedAfterProof | HandshakeError::SecretDiffers) => {
                ClusterError::refused(format!(
                    "Failed: {address} does not accept the secret of this node. All nodes of a cluster need the same \
                     cluster.secret_file."
                ))
            }
            IdentifyError::Handshake(HandshakeError::RefusedByPeer(refusal)) if refusal.kind == SAME_NODE => {
                refused(&Refusal::JoinsItself)
            }
            IdentifyError::Handshake(HandshakeError::Refuses { refusal, .. }) if refusal.kind == SAME_NODE => {
                refused(&Refusal::JoinsItself)
            }
            IdentifyError::Handshake(why) => ClusterError::refused(format!("Failed: {address}: {why}")),
        })?;
        Ok(identity.node)
    }

    pub(in crate::member) async fn join_through(
        self: &Arc<Self>,
        join: UnfinishedJoin,
        own: &Metadata,
        beside_twin: bool,
    ) -> Result<String, ClusterError> {
        let UnfinishedJoin { seed, address } = join;
        // The other node asks its members before it answers.
        let asked = self.ask(seed, &Question::Cluster, self.command_deadline()).await;
        let Ok(Answer::Cluster { name, node, ring_size, not_empty, types }) = asked else {
            return Err(ClusterError::refused(format!("Failed: Unable to get ring from {address}")));
        };
        if node == self.id() {
            return Err(refused(&Refusal::JoinsItself));
        }
        if ring_size != self.kv().ring().size().get() {
            let text = Refusal::OtherRingSize(seed).text(|_| name.clone());
            return Err(ClusterError::refused(text));
        }
        let may_hold_objects = self.node.transport().shares(seed, RING_CHANGES);
        if let Some(problem) = not_empty.first().filter(|_| !may_hold_objects) {
            return Err(ClusterError::refused(format!("Failed: {problem}")));
        }
        let is_known = |name: &bytes::Bytes| types.iter().any(|known| known.0 == *name);
        if let Some(name) = own.types().keys().find(|name| !is_known(name)) {
            return Err(ClusterError::refused(format!(
                "Failed: this node has the bucket type '{}', and the cluster has not. Create it there first.",
                name.escape_ascii()
            )));
        }
        {
            // A state that is adopted meanwhile must not open this node again.
            let _adopting = self.following.adopting.lock().await;
            self.following.is_joining.store(true, Ordering::SeqCst);
            self.following.close_to_writes().await;
        }
        let joined = match self.leave_own().await {
            Ok(()) => self.move_to(join, &name, beside_twin).await,
            Err(why) => Err(why),
        };
        {
            let _adopting = self.following.adopting.lock().await;
            self.following.is_joining.store(false, Ordering::SeqCst);
            self.following.adopt_placement(&self.followed.get().metadata).await;
        }
        if joined.is_err() && !self.following.is_stuck.load(Ordering::SeqCst) {
            self.stay().await;
        }
        joined.map(|()| name)
    }

    /// Keeps other nodes from joining this one while it moves.
    pub(in crate::member) async fn leave_own(&self) -> Result<(), ClusterError> {
        let metadata = self.metadata_node();
        let (expected, status) = (MemberStatus::Valid, MemberStatus::Exiting);
        let command = Command::SetStatus { node: self.id(), expected, status };
        match metadata.propose(command, self.command_deadline()).await {
            Ok(_) | Err(ProposeError::Refused(MetadataRefusal::WrongStatus(MemberStatus::Exiting))) => {}
            Err(why) => return Err(why.into()),
        }
        // A node that has joined this one before is a member now, and later ones are refused.
        if metadata.metadata().members().len() > 1 { Err(refused(&Refusal::AlreadyInCluster)) } else { Ok(()) }
    }

    /// Lets other nodes join this one again, if it did not move.
    pub async fn stay(&self) {
        let (expected, status) = (MemberStatus::Exiting, MemberStatus::Valid);
        let command = Command::SetStatus { node: self.id(), expected, status };
        match self.metadata_node().propose(command, self.command_deadline()).await {
            Ok(_) | Err(ProposeError::Refused(MetadataRefusal::WrongStatus(_))) => {}
            Err(why) => warn!(%why, "this node did not move, and cannot be joined until its next start"),
        }
    }

    /// Moves the node to the cluster of `seed`. The node takes no writes.
    async fn move_to(
        self: &Arc<Self>,
        join: UnfinishedJoin,
        name: &str,
        beside_twin: bool,
    ) -> Result<(), ClusterError> {
        let seed = join.seed;
        let kv = self.kv().clone();
        if !self.node.transport().shares(seed, RING_CHANGES)
            && let Some(partition) = self.blocking(move || kv.find_object(&Holdings::Everything)).await??
        {
            return Err(ClusterError::refused(format!(
                "Failed: this node holds objects or tombstones (for example in partition {partition}). An earlier \
                 version of ombak runs in the cluster, which takes only empty nodes: upgrade it there first."
            )));
        }
        // It was alone, so nobody can know more than it holds.
        let kv = self.kv().clone();
        if kv.has_replica_state() && !self.blocking(move || kv.own_everything()).await? {
            return Err(ClusterError::refused("Failed: replicas.json of this node could not be written; see the log"));
        }
        let dirs = self.logs.dirs.clone();
        let dir = self.blocking(move || dirs.begin()).await??;
        let next = MetadataNode::start(self.setup(dir.clone(), None)).await?;
        // The other cluster sends its metadata to the new log.
        self.logs.slot.store(Some(next.clone()));
        let added = match self.be_added(&next, join, beside_twin).await {
            Ok(()) => self.check_properties(&next, seed).await,
            Err(why) => Err(why),
        };
        match added {
            Ok(()) => {
                let log = dir.clone();
                self.switch_to(next, log).await?;
                self.forget_join().await;
                info!(through = name, "this node joins a cluster");
                Ok(())
            }
            Err(error) => {
                self.logs.slot.store(Some(self.metadata_node()));
                next.stop().await;
                let dirs = self.logs.dirs.clone();
                self.blocking(move || dirs.remove(&dir)).await?;
                Err(error)
            }
        }
    }

    /// Checks that what this node holds keeps its meaning under the bucket types and properties of
    /// the cluster that has just added it. Otherwise the cluster forgets the node again.
    async fn check_properties(&self, next: &Arc<MetadataNode>, seed: NodeId) -> Result<(), ClusterError> {
        let (kv, theirs) = (self.kv().clone(), all_records(&next.metadata()));
        let find = move || {
            for conflict in kv.buckets().conflicts_with(theirs) {
                let counts = match &conflict.only_if_held {
                    Some(holdings) => kv.find_object(holdings)?.is_some(),
                    None => true,
                };
                if counts {
                    return Ok(Some(conflict.text));
                }
            }
            Ok::<_, Error>(None)
        };
        let found = self.blocking(find).await.and_then(|found| Ok(found?));
        let why = match found {
            Ok(None) => return Ok(()),
            Ok(Some(text)) => ClusterError::refused(format!("Failed: {text}")),
            Err(why) => why,
        };
        let withdrawal = Command::WithdrawMember { node: self.id() };
        match next.propose_through(seed, withdrawal, self.command_deadline()).await {
            Ok(_) => self.forget_join().await,
            Err(error) => warn!(%error, "the cluster still knows this node as one that joins, and it withdraws later"),
        }
        Err(why)
    }

    async fn be_added(
        &self,
        next: &Arc<MetadataNode>,
        join: UnfinishedJoin,
        beside_twin: bool,
    ) -> Result<(), ClusterError> {
        self.note_join(join).await?;
        let (seed, deadline) = (join.seed, self.command_deadline());
        let ask = async || match beside_twin {
            true => next.join_beside_twin(seed, deadline).await,
            false => next.join(seed, deadline).await,
        };
        let added = match ask().await {
            // An earlier attempt was added, and did not learn of it.
            Err(ProposeError::Refused(MetadataRefusal::AlreadyMember(_))) => {
                next.propose_through(seed, Command::WithdrawMember { node: self.id() }, deadline).await?;
                ask().await
            }
            joined => joined,
        };
        if let Err(ProposeError::Refused(_) | ProposeError::NoLeader) = &added {
            // The cluster has not added the node.
            self.forget_join().await;
        }
        added?;
        Ok(())
    }

    /// Puts the log of `next` in force, and follows it from now on.
    async fn switch_to(self: &Arc<Self>, next: Arc<MetadataNode>, log: std::path::PathBuf) -> Result<(), ClusterError> {
        let before = self.metadata_node();
        let _adopting = self.following.adopting.lock().await;
        // From here on the node has two logs, until the new one is in force. After an error it
        // stays closed: the next start finds one log.
        self.following.is_stuck.store(true, Ordering::SeqCst);
        // The files of the log that is left are removed, so its owner stops first.
        before.stop().await;
        let dirs = self.logs.dirs.clone();
        let (state, index) = (next.metadata(), next.applied());
        self.blocking(move || dirs.put_in_force(&log)).await??;
        self.logs.current.store(next.clone());
        self.logs.slot.store(Some(next.clone()));
        // Writes that began before are refused: the ring is another one now.
        self.following.is_joining.store(false, Ordering::SeqCst);
        self.following.is_stuck.store(false, Ordering::SeqCst);
        self.following.adopt(state, index).await;
        drop(_adopting);
        self.following.start_following(next);
        Ok(())
    }

    /// Begins a cluster of this node alone, because it does not join another one after all.
    pub async fn begin_alone(self: &Arc<Self>) -> Result<(), ClusterError> {
        let _moving = self.moving.lock().await;
        let now = self.metadata_node().metadata();
        if now.members().len() == 1 && now.members().contains_key(&self.id()) {
            // Another look has found the same before.
            return Ok(());
        }
        let size: RingSize = self.kv().ring().size();
        let dirs = self.logs.dirs.clone();
        let dir = self.blocking(move || dirs.begin()).await??;
        let next = MetadataNode::start(self.setup(dir.clone(), Some(size))).await?;
        // Whatever it had was in the cluster, too: its types, its functions, and who its clients
        // are. A node that holds no object has use for all of that.
        if let Err(why) = take_over(&next, self.kv().buckets().records()).await {
            next.stop().await;
            let dirs = self.logs.dirs.clone();
            self.blocking(move || dirs.remove(&dir)).await?;
            return Err(why);
        }
        warn!("this node does not join after all, and begins a cluster of its own");
        if self.is_new.load(Ordering::SeqCst) {
            self.kv().refuse_requests(NoPart::AwaitsPeers);
        }
        self.switch_to(next, dir).await?;
        if self.is_new.load(Ordering::SeqCst) {
            self.await_peers().await;
        }
        Ok(())
    }
}

/// Lets the metadata of a cluster of this node alone take over these bucket types and properties.
pub(in crate::member) async fn take_over(
    metadata: &Arc<MetadataNode>,
    records: Vec<ombak_kv::buckets::RecordChange>,
) -> Result<(), ClusterError> {
    const EACH_MAX: std::time::Duration = std::time::Duration::from_secs(60);
    for command in taken_over(records) {
        metadata.propose(command, metadata.deadline_after(EACH_MAX)).await?;
    }
    Ok(())
}

const SAME_NODE: ombak_peer::handshake::RefusalKind = ombak_peer::handshake::RefusalKind::SameNode;
