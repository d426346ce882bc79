//! The face of the metadata on one node.

use super::error::{ProposeError, StartError};
use super::maintenance;
use super::timing::Timing;
use super::transport::RaftTransport;
use super::voters::missing_voters;
use crate::raft::group::{GroupSetup, NotDecided, RaftGroup};
use crate::raft::saved::LogProgress;
use crate::raft::wire::{self, Request, Response};
use crate::state::{Command, Lineage, Member, Metadata, NewMember, RaftId, Refusal, TypeName};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_node_files::Milestone;
use ombak_ring::{Ring, RingSize, RingVersion};
use ombak_runtime::{Runtime, RuntimeExt, within};
use ombak_storage::fs::FileSystem;
use ombak_types::NodeId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Who a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Myself {
    /// Its identity.
    pub node: NodeId,
    /// Its name, for people.
    pub name: String,
    /// Where other nodes reach it.
    pub peer_address: String,
    /// How often it was started.
    pub boot: u64,
}

/// The milestones of a node's directory (docs/design/replication.md §8).
pub trait OwnMilestones: Send + Sync {
    /// The newest one, which is durable.
    fn newest(&self) -> Option<Milestone>;

    /// Whether the directory has passed a milestone that somebody knows.
    fn has_passed(&self, known: Milestone) -> bool;

    /// The members refuse this node, because its directory is older than they know.
    fn found_older(&self, why: &Refusal);
}

/// What a node needs to start.
pub struct Setup {
    /// Time, randomness, tasks and threads.
    pub runtime: Arc<dyn Runtime>,
    /// The disk.
    pub fs: Arc<dyn FileSystem>,
    /// The directory of log, vote and snapshot. It exists.
    pub dir: PathBuf,
    /// The way to other nodes.
    pub transport: Arc<dyn RaftTransport>,
    /// Who this node is.
    pub me: Myself,
    /// What tells the node's directory from older copies of it.
    pub milestones: Arc<dyn OwnMilestones>,
    /// The size of the ring with which a node without metadata founds a cluster of its own. Without
    /// it, such a node waits until it has joined one.
    pub found: Option<RingSize>,
    /// How long things take.
    pub timing: Timing,
}

/// The metadata of a node.
pub struct MetadataNode {
    pub(super) group: RaftGroup,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) transport: Arc<dyn RaftTransport>,
    pub(super) timing: Timing,
    pub(super) me: Myself,
    milestones: Arc<dyn OwnMilestones>,
    is_stopping: AtomicBool,
}

impl MetadataNode {
    /// Opens what is on the disk and takes part. A node that founds a cluster is useful when this
    /// returns; any other one goes on with the last state that it knew.
    pub async fn start(setup: Setup) -> Result<Arc<Self>, StartError> {
        let Setup { runtime, fs, dir, transport, me, milestones, found, timing } = setup;
        let group =
            GroupSetup { runtime: runtime.clone(), fs, dir, transport: transport.clone(), timing: timing.clone() };
        let group = RaftGroup::open(group).await?;
        let node = Self { group, runtime, transport, timing, me, milestones, is_stopping: AtomicBool::new(false) };
        let node = Arc::new(node);
        node.group.elect_if_alone().await;
        match found {
            Some(size) if node.metadata().lineage().is_none() => node.found(size).await?,
            _ => {}
        }
        node.runtime.spawn(Box::pin(maintenance::run(node.clone())));
        node.runtime.spawn(Box::pin(announce(node.clone())));
        Ok(node)
    }

    async fn found(&self, size: RingSize) -> Result<(), StartError> {
        let id = self.runtime.random_u64().map_err(|e| StartError::NoRandomBytes(e.to_string()))?;
        self.group.begin_alone(self.me.node).await?;
        let ring = Ring::of_one_node(self.me.node, size, RingVersion::first(id));
        let lineage = Lineage { id, forced_from: None };
        let command = Command::Found { lineage, member: self.describe(), ring };
        let deadline = self.runtime.now() + self.timing.election.1 * 10;
        match self.propose(command, deadline).await {
            Ok(_) | Err(ProposeError::Refused(Refusal::AlreadyFounded)) => Ok(()),
            Err(e) => Err(StartError::NotFounded(e)),
        }
    }

    /// How this node describes itself to the others. While another member has its name, of which it
    /// is to take the place, it has a second name.
    pub fn describe(&self) -> NewMember {
        let metadata = self.metadata();
        let has_twin = metadata.members().iter().any(|(node, of)| *node != self.me.node && of.name == self.me.name);
        if has_twin { self.describe_beside_twin() } else { self.describe_as(self.me.name.clone()) }
    }

    /// How this node describes itself beside a member that has its name.
    pub(super) fn describe_beside_twin(&self) -> NewMember {
        self.describe_as(format!("{} ({})", self.me.name, self.me.node))
    }

    fn describe_as(&self, name: String) -> NewMember {
        let Myself { node, peer_address, boot, .. } = self.me.clone();
        NewMember { node, name, peer_address, log: self.group.id(), boot, milestone: self.milestones.newest() }
    }

    /// Lets the cluster record the newest milestone of this node's directory, with the node's
    /// present name and address. It is refused if the directory has not passed the one that is
    /// recorded.
    pub async fn record_milestone(&self, deadline: Instant) -> Result<(), ProposeError> {
        let mut follows = self.metadata().members().get(&self.me.node).and_then(|known| known.milestone);
        loop {
            if let Some(recorded) = follows.filter(|recorded| !self.milestones.has_passed(*recorded)) {
                return Err(ProposeError::Refused(Refusal::OtherMilestone { recorded: Some(recorded) }));
            }
            let command = Command::Passed { member: self.describe(), follows };
            match self.propose(command, deadline).await {
                // An earlier start was recorded, and did not learn of it.
                Err(ProposeError::Refused(Refusal::OtherMilestone { recorded })) if follows != recorded => {
                    follows = recorded;
                }
                outcome => return outcome.map(drop),
            }
        }
    }

    /// How far the log of this node is.
    pub fn progress(&self) -> LogProgress {
        self.group.progress()
    }

    /// What this node knows the log of another one to hold. Only the leader knows something.
    pub fn seen_progress(&self, log: RaftId) -> Option<LogProgress> {
        self.group.seen_progress(log)
    }

    /// The identity of the log under which this node takes part.
    pub fn raft_id(&self) -> RaftId {
        self.group.id()
    }

    /// The newest state that this node knows. It never waits.
    pub fn metadata(&self) -> Metadata {
        self.group.position().metadata.clone()
    }

    /// The index of the last entry that is part of the state here.
    pub fn applied(&self) -> u64 {
        self.group.position().applied.map_or(0, |applied| applied.index)
    }

    /// Waits until the state here is newer than after the entry `seen`. Returns the state and the
    /// index of its last entry, or `None` when the group stops before.
    pub async fn newer_than(&self, seen: u64) -> Option<(Metadata, u64)> {
        if !self.group.wait_applied(seen + 1).await {
            return None;
        }
        let position = self.group.position();
        Some((position.metadata.clone(), position.applied.map_or(0, |applied| applied.index)))
    }

    /// Waits until the entry with this index is part of the state here. Returns false when the
    /// group stops before.
    pub async fn wait_applied(&self, index: u64) -> bool {
        self.group.wait_applied(index).await
    }

    /// The time that is `limit` from now, by the clock of this node.
    pub fn deadline_after(&self, limit: std::time::Duration) -> Instant {
        self.runtime.now() + limit
    }

    /// The member that leads, as far as this node knows.
    pub fn leader(&self) -> Option<NodeId> {
        let log = self.group.leader()?;
        self.metadata().members().iter().find(|(_, member)| member.log == log).map(|(node, _)| *node)
    }

    /// Whether this node leads.
    pub fn is_leader(&self) -> bool {
        self.group.is_leader()
    }

    /// Whether what has to be written finds no room on the disk. The node learns of no decision
    /// meanwhile.
    pub fn waits_for_room(&self) -> bool {
        self.group.waits_for_room()
    }

    /// The logs of the members that vote.
    pub fn voters(&self) -> Vec<RaftId> {
        self.group.participants().1.into_iter().collect()
    }

    /// How many members do not vote yet that should. Until they do, the loss of fewer members than
    /// usual keeps the others from deciding anything.
    pub fn missing_voters(&self) -> usize {
        missing_voters(self.metadata().members(), &self.group.participants().1)
    }

    /// The index of the last entry that only a snapshot holds.
    pub fn purged(&self) -> Option<u64> {
        self.group.purged()
    }

    /// Decides a command, through the leader wherever it is. When this returns the command's index,
    /// the command is part of the state on this node.
    pub async fn propose(&self, command: Command, deadline: Instant) -> Result<u64, ProposeError> {
        let index = self.propose_anywhere(command, None, deadline).await?;
        match within(&*self.runtime, Some(deadline), self.group.wait_applied(index)).await {
            Ok(true) => Ok(index),
            Ok(false) => Err(ProposeError::Stopped),
            Err(_) => Err(ProposeError::Unknown),
        }
    }

    /// Decides a command that was decided on from a state of this node, if this node leads. It is
    /// refused as [`Refusal::Changed`] if `holds` is not true any more of the state that it would
    /// follow on: another command may have come first. Otherwise as [`propose`](Self::propose).
    pub async fn propose_while(
        &self,
        holds: impl Fn(&Metadata) -> bool,
        command: Command,
        deadline: Instant,
    ) -> Result<u64, ProposeError> {
        let decided = self.group.propose_while(holds, command);
        match within(&*self.runtime, Some(deadline), decided).await {
            Ok(Ok((index, None))) => Ok(index),
            Ok(Ok((_, Some(refusal)))) => Err(ProposeError::Refused(refusal)),
            Ok(Err(NotDecided::NotLeader(_))) => Err(ProposeError::NoLeader),
            Ok(Err(NotDecided::Stopped)) => Err(ProposeError::Stopped),
            Err(_) => Err(ProposeError::Unknown),
        }
    }

    /// Finds the leader, beginning with `ask` or with this node, and lets it decide.
    pub(super) async fn propose_anywhere(
        &self,
        command: Command,
        seed: Option<NodeId>,
        deadline: Instant,
    ) -> Result<u64, ProposeError> {
        let mut ask = seed;
        while self.runtime.now() < deadline {
            let decided = match ask {
                Some(node) => self.propose_at(node, command.clone(), deadline).await?,
                None => self.propose_here(command.clone(), deadline).await?,
            };
            ask = match decided {
                Decision::Index(index) => return Ok(index),
                Decision::Ask(leader) => leader.filter(|leader| *leader != self.me.node),
            };
            if ask.is_none() {
                ask = seed;
                self.runtime.sleep(self.timing.heartbeat).await;
            }
        }
        Err(ProposeError::NoLeader)
    }

    async fn propose_here(&self, command: Command, deadline: Instant) -> Result<Decision, ProposeError> {
        match within(&*self.runtime, Some(deadline), self.group.propose(command)).await {
            Ok(Ok((index, None))) => Ok(Decision::Index(index)),
            Ok(Ok((_, Some(refusal)))) => Err(ProposeError::Refused(refusal)),
            Ok(Err(NotDecided::NotLeader(leader))) => Ok(Decision::Ask(leader)),
            Ok(Err(NotDecided::Stopped)) => Err(ProposeError::Stopped),
            Err(_) => Err(ProposeError::Unknown),
        }
    }

    async fn propose_at(&self, node: NodeId, command: Command, deadline: Instant) -> Result<Decision, ProposeError> {
        // Without an answer the command may have been decided. It is not sent twice.
        match self.ask(node, &Request::Propose { command }, deadline).await {
            Some(Response::Proposed { index, refusal: None }) => Ok(Decision::Index(index)),
            Some(Response::Proposed { refusal: Some(refusal), .. }) => Err(ProposeError::Refused(refusal)),
            Some(Response::NotLeader { leader }) => Ok(Decision::Ask(leader)),
            Some(_) => Ok(Decision::Ask(None)),
            None => Err(ProposeError::Unknown),
        }
    }

    pub(super) async fn ask(&self, node: NodeId, request: &Request, deadline: Instant) -> Option<Response> {
        let request = wire::encode(request, &[]).ok()?;
        let answer = within(&*self.runtime, Some(deadline), self.transport.send(node, request, deadline)).await.ok()?;
        wire::decode(&answer.ok()?).ok().map(|(response, _)| response)
    }

    /// Activates a created bucket type, and waits until every member that can be reached knows it.
    /// Returns the members that did not answer. Activating an active type again only waits.
    pub async fn activate_type(&self, name: &[u8], deadline: Instant) -> Result<Vec<NodeId>, ProposeError> {
        self.catch_up(deadline).await;
        loop {
            let known = self.metadata().types().get(name).cloned();
            let record = known.ok_or(ProposeError::Refused(Refusal::NoType))?;
            if record.active {
                return Ok(self.spread(record.version, deadline).await);
            }
            let command = Command::PutType {
                name: TypeName(Bytes::copy_from_slice(name)),
                expected: Some(record.version),
                active: true,
                overrides: (*record.overrides).clone(),
            };
            match self.propose(command, deadline).await {
                // Somebody else changed the type. It is looked at again, and applied here by then.
                Err(ProposeError::Refused(Refusal::Changed)) if self.runtime.now() < deadline => {
                    self.runtime.sleep(self.timing.heartbeat).await;
                }
                Err(e) => return Err(e),
                Ok(index) => return Ok(self.spread(index, deadline).await),
            }
        }
    }

    /// Waits until this node has applied what any member that can be reached has applied, so that a
    /// caller sees here what it was told by another node. Returns whether it has, and most members
    /// were reached. Then only a decision of a moment ago, which none of them has applied yet, can
    /// be missing here.
    pub async fn catch_up(&self, deadline: Instant) -> bool {
        let limit = deadline.min(self.runtime.now() + self.timing.request_limit);
        let metadata = self.metadata();
        let others = metadata.members().keys().filter(|node| **node != self.me.node);
        let request = Request::Progress { at_least: 0, wait_ms: 0 };
        let answers = join_all(others.map(|node| self.ask(*node, &request, limit))).await;
        let applied = |answer| if let Some(Response::Progress { applied }) = answer { Some(applied) } else { None };
        let applied: Vec<u64> = answers.into_iter().filter_map(applied).collect();
        let has_most = (applied.len() + 1) * 2 > metadata.members().len();
        let newest = applied.into_iter().max().unwrap_or(0);
        // Late: the caller may go on with what is known here.
        let limit = limit.max(self.runtime.now());
        within(&*self.runtime, Some(limit), self.group.wait_applied(newest)).await.is_ok() && has_most
    }

    /// Asks the voters what they have applied, and waits for no more of them than needed. Returns
    /// the index of the last entry here if this node has applied what most voters have. Then only a
    /// decision of a moment ago can be missing.
    pub async fn has_what_most_have(&self) -> Option<u64> {
        let (applied, voters) = (self.applied(), self.group.participants().1);
        if voters.iter().eq([&self.group.id()]) {
            // Nobody decides without this node.
            return Some(applied);
        }
        if self.progress().index > applied {
            // The last entries of its own log may have been decided with its own vote.
            return None;
        }
        let metadata = self.metadata();
        let is_asked = |node: &NodeId, log| *node != self.me.node && voters.contains(log);
        let asked = metadata.members().iter().filter(|(node, member)| is_asked(node, &member.log));
        let (request, limit) =
            (Request::Progress { at_least: 0, wait_ms: 0 }, self.deadline_after(self.timing.request_limit));
        let mut answers: FuturesUnordered<_> = asked.map(|(node, _)| self.ask(*node, &request, limit)).collect();
        let mut agreed = usize::from(voters.contains(&self.group.id()));
        while agreed * 2 <= voters.len() {
            match answers.next().await? {
                Some(Response::Progress { applied: theirs }) if theirs > applied => return None,
                Some(Response::Progress { .. }) => agreed += 1,
                _ => {}
            }
        }
        Some(applied)
    }

    /// Waits until all members that can be reached have applied the command at `index`. Returns the
    /// others.
    pub async fn spread(&self, index: u64, deadline: Instant) -> Vec<NodeId> {
        let members: Vec<NodeId> =
            self.metadata().members().keys().copied().filter(|node| *node != self.me.node).collect();
        let asked = members.iter().map(|node| self.wait_for_member(*node, index, deadline));
        let reached = join_all(asked).await;
        members.into_iter().zip(reached).filter(|(_, reached)| !reached).map(|(node, _)| node).collect()
    }

    async fn wait_for_member(&self, node: NodeId, index: u64, deadline: Instant) -> bool {
        loop {
            let now = self.runtime.now();
            let limit = deadline.min(now + self.timing.request_limit);
            let wait_ms = (limit.saturating_duration_since(now) / 2).as_millis() as u64;
            match self.ask(node, &Request::Progress { at_least: index, wait_ms }, limit).await {
                Some(Response::Progress { applied }) if applied >= index => return true,
                // It answers and is behind: it is reachable.
                Some(Response::Progress { .. }) if self.runtime.now() < deadline => {}
                _ => return false,
            }
        }
    }

    /// Stops taking part. The state stays readable.
    pub async fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.group.stop().await;
    }

    /// Whether some member's log takes no part in the group yet.
    pub(super) fn lacks_participants(&self) -> bool {
        let (participants, _) = self.group.participants();
        self.metadata().members().values().any(|member| !participants.contains(&member.log))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

/// What an attempt to propose came to.
enum Decision {
    /// The command was decided.
    Index(u64),
    /// Another node should be asked, if it is known.
    Ask(Option<NodeId>),
}

/// Tells the others that this node started, with its present name and address.
async fn announce(node: Arc<MetadataNode>) {
    let pause = node.timing.maintenance;
    while !node.is_stopping() {
        let metadata = node.metadata();
        let known = metadata.members().get(&node.me.node);
        let mine = node.describe();
        let is_told = |known: &Member| {
            let (theirs, own) = ((known.boot, known.milestone), (mine.boot, mine.milestone));
            theirs == own && known.peer_address == mine.peer_address && known.name == mine.name
        };
        if known.is_some_and(is_told) {
            return;
        }
        if known.is_some() {
            let deadline = node.runtime.now() + node.timing.request_limit;
            // The next look shows whether it was recorded.
            if let Err(ProposeError::Refused(refusal)) = node.record_milestone(deadline).await {
                tracing::error!(%refusal, "the members refuse this node");
                if matches!(refusal, Refusal::Restored { .. } | Refusal::OtherMilestone { .. }) {
                    return node.milestones.found_older(&refusal);
                }
            }
        }
        node.runtime.sleep(pause).await;
    }
}
