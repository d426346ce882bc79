//! The Raft group on one node: opens it, proposes to it, changes who takes part, and answers the
//! requests of other nodes.

use super::async_runtime::in_runtime;
use super::log_storage::RaftLog;
use super::machine::{Machine, OpenMachine, Position};
use super::network::Networks;
use super::room::PatientPool;
use super::saved::LogProgress;
use super::types::{Group, RaftNode, SnapshotMeta, Vote};
use super::wire::{Request, Response};
use crate::log::{LogError, LogStore, SNAPSHOT_BYTES_MAX, SavedSnapshot, SnapshotFile};
use crate::node::{RaftTransport, StartError, Step, Timing};
use crate::state::{Command, Metadata, RaftId, Refusal};
use bytes::{Bytes, BytesMut};
use ombak_runtime::{Pool, Published, Runtime, RuntimeExt};
use ombak_storage::fs::FileSystem;
use ombak_types::NodeId;
use openraft::error::ClientWriteError;
use openraft::raft::ClientWriteResult;
use openraft::{ChangeMembers, Config, Raft, ServerState, Snapshot, SnapshotPolicy};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Mutex, oneshot};

/// What the group needs from the node.
pub(crate) struct GroupSetup {
    pub runtime: Arc<dyn Runtime>,
    pub fs: Arc<dyn FileSystem>,
    pub dir: PathBuf,
    pub transport: Arc<dyn RaftTransport>,
    pub timing: Timing,
}

/// A snapshot whose parts arrive.
struct Incoming {
    meta: SnapshotMeta,
    state: BytesMut,
}

/// Why a command was not decided here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotDecided {
    /// Another node leads, if it is known, or this one waits for room on its disk.
    NotLeader(Option<NodeId>),
    /// The group has stopped on this node.
    Stopped,
}

/// What becomes of a command that openraft has got.
type Awaited = oneshot::Receiver<ClientWriteResult<Group>>;

/// The group on this node.
pub(crate) struct RaftGroup {
    raft: Raft<Group>,
    runtime: Arc<dyn Runtime>,
    id: RaftId,
    log: RaftLog,
    /// What changes the snapshot.
    pool: PatientPool,
    published: Arc<Published<Arc<Position>>>,
    incoming: Mutex<Option<Incoming>>,
    /// Held while a command is handed to openraft, and by a command that must follow on a certain
    /// state until then.
    handing_over: Mutex<()>,
}

impl RaftGroup {
    /// Opens what is on the disk and starts to take part.
    pub async fn open(setup: GroupSetup) -> Result<Self, StartError> {
        let GroupSetup { runtime, fs, dir, transport, timing } = setup;
        // One thread keeps the writes in the order of their calls.
        let pool = PatientPool::new(Pool::start(&runtime, "metadata", 1, 64).map_err(StartError::Threads)?);
        let drawn = runtime.random_u64().map_err(|e| StartError::NoRandomBytes(e.to_string()))?;
        let open = move || open_files(fs, dir, drawn);
        let (store, file, saved) = pool.pool().run(open).await.map_err(|e| StartError::Stopped(e.to_string()))??;
        let id = RaftId::new(store.identity());
        let purged = store.content().purged.as_ref().map(|(index, _)| *index);
        let unusable = |what: String| LogError::Unusable { path: file.path().to_owned(), what };
        let opened = Machine::open(file.clone(), saved, id, pool.clone()).map_err(unusable)?;
        let OpenMachine { machine, published, durable_snapshot } = opened;
        let included = published.get().applied.map(|applied| applied.index);
        if purged > included {
            return Err(unusable("does not include all entries that the log has purged".into()).into());
        }
        let log = RaftLog::new(store, pool.for_other_changes(), Some(durable_snapshot));
        let networks = Networks { transport, runtime: runtime.clone(), pause: timing.heartbeat };
        let config = Arc::new(config(&timing));
        let raft = in_runtime(&runtime, Raft::new(id, config, networks, log.clone(), machine)).await;
        let raft = raft.map_err(|e| StartError::Stopped(e.to_string()))?;
        let (incoming, handing_over) = (Mutex::new(None), Mutex::new(()));
        Ok(Self { raft, runtime, id, log, pool, published, incoming, handing_over })
    }

    /// The identity under which this node takes part.
    pub fn id(&self) -> RaftId {
        self.id
    }

    /// The newest state. It never waits.
    pub fn position(&self) -> Arc<Position> {
        self.published.get()
    }

    /// Waits until a command is applied here. Returns whether it was before the group stopped.
    pub async fn wait_applied(&self, index: u64) -> bool {
        let reached = |position: &Arc<Position>| position.applied.is_some_and(|applied| applied.index >= index);
        self.published.wait_for(reached).await.is_some()
    }

    async fn within<F: Future>(&self, work: F) -> F::Output {
        in_runtime(&self.runtime, work).await
    }

    /// Begins a group of this node alone, unless it takes part in one already.
    pub async fn begin_alone(&self, node: NodeId) -> Result<(), StartError> {
        let stopped = |e: &dyn std::fmt::Display| StartError::Stopped(e.to_string());
        if self.within(self.raft.is_initialized()).await.map_err(|e| stopped(&e))? {
            return Ok(());
        }
        let me = BTreeMap::from([(self.id, RaftNode { node: Some(node) })]);
        self.within(self.raft.initialize(me)).await.map_err(|e| stopped(&e))
    }

    /// Lets this node lead at once if it alone votes: nobody else could be elected meanwhile.
    pub async fn elect_if_alone(&self) {
        if self.participants().1 == BTreeSet::from([self.id]) {
            // The error says that the group has stopped.
            let _ = self.within(self.raft.trigger().elect()).await;
        }
    }

    /// The log of the node that leads, as far as this node knows.
    pub fn leader(&self) -> Option<RaftId> {
        self.raft.metrics().borrow().current_leader
    }

    /// Whether this node leads.
    pub fn is_leader(&self) -> bool {
        self.raft.metrics().borrow().state == ServerState::Leader
    }

    /// The index of the last entry that only a snapshot holds.
    pub fn purged(&self) -> Option<u64> {
        self.raft.metrics().borrow().purged.map(|purged| purged.index)
    }

    /// How far the log of this node is.
    pub fn progress(&self) -> LogProgress {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        LogProgress { term: metrics.current_term, index: metrics.last_log_index.unwrap_or(0) }
    }

    /// What this node knows a log to hold, because it leads and that log has confirmed it.
    pub fn seen_progress(&self, log: RaftId) -> Option<LogProgress> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let matched = metrics.replication.as_ref()?.get(&log)?.as_ref()?;
        Some(LogProgress { term: metrics.current_term, index: matched.index })
    }

    /// The logs that take part, and those of them that vote.
    pub fn participants(&self) -> (BTreeSet<RaftId>, BTreeSet<RaftId>) {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let membership = metrics.membership_config.membership();
        (membership.nodes().map(|(id, _)| *id).collect(), membership.voter_ids().collect())
    }

    /// Whether openraft can answer nothing now, because what it has to write finds no room on the
    /// disk.
    pub fn waits_for_room(&self) -> bool {
        self.log.waits_for_room() || self.log.awaits_snapshot() && self.pool.waits_for_room()
    }

    /// Whether a request of another node would only wait in openraft's queue, which has no bound,
    /// until the disk has room. A snapshot that is built and finds no room is in nobody's way.
    fn has_no_room_for(&self, request: &Request) -> bool {
        match request {
            Request::Append { .. } | Request::Vote { .. } | Request::Propose { .. } => self.waits_for_room(),
            Request::Snapshot { .. } => self.waits_for_room() || self.pool.waits_for_room(),
            Request::Progress { .. } => false,
        }
    }

    /// Decides a command, if this node leads. Returns its index, and why it was refused if it was.
    pub async fn propose(&self, command: Command) -> Result<(u64, Option<Refusal>), NotDecided> {
        let handing_over = self.handing_over.lock().await;
        let decided = self.hand_over(command).await?;
        drop(handing_over);
        self.answer(decided).await
    }

    /// Decides a command, if this node leads and `holds` is true of the state that the command
    /// follows on. Commands that are under way come first, also those of the last leader. Costs two
    /// entries.
    pub async fn propose_while(
        &self,
        holds: impl Fn(&Metadata) -> bool,
        command: Command,
    ) -> Result<(u64, Option<Refusal>), NotDecided> {
        // Nobody else hands over a command meanwhile.
        let handing_over = self.handing_over.lock().await;
        // When an entry of this term is decided, all entries before it are part of the state here.
        let (last, _) = self.answer(self.hand_over(without_effect()).await?).await?;
        if !self.wait_applied(last).await {
            return Err(NotDecided::Stopped);
        }
        if !holds(&self.position().metadata) {
            return Ok((last, Some(Refusal::Changed)));
        }
        let decided = self.hand_over(command).await?;
        drop(handing_over);
        self.answer(decided).await
    }

    /// Gives a command to openraft, which keeps the order of the calls.
    async fn hand_over(&self, command: Command) -> Result<Awaited, NotDecided> {
        if self.waits_for_room() {
            return Err(NotDecided::NotLeader(None));
        }
        self.within(self.raft.client_write_ff(command)).await.map_err(|_| NotDecided::Stopped)
    }

    async fn answer(&self, decided: Awaited) -> Result<(u64, Option<Refusal>), NotDecided> {
        match self.within(decided).await {
            Ok(Ok(decided)) => Ok((decided.log_id.index, decided.data.0)),
            Ok(Err(ClientWriteError::ForwardToLeader(to))) => {
                Err(NotDecided::NotLeader(to.leader_node.and_then(|leader| leader.node)))
            }
            Ok(Err(ClientWriteError::ChangeMembershipError(_))) | Err(_) => Err(NotDecided::Stopped),
        }
    }

    /// Changes who takes part. The error is for people: the next round tries again.
    pub async fn change(&self, step: Step) -> Result<(), String> {
        let done = match step {
            Step::AddLearner(id, node) => {
                self.within(self.raft.add_learner(id, RaftNode { node: Some(node) }, false)).await
            }
            Step::SetVoters(voters) => {
                self.within(self.raft.change_membership(ChangeMembers::ReplaceAllVoters(voters), true)).await
            }
            Step::Remove(logs) => {
                self.within(self.raft.change_membership(ChangeMembers::RemoveNodes(logs), true)).await
            }
        };
        done.map(|_| ()).map_err(|e| e.to_string())
    }

    /// Makes a snapshot when the log has become longer than the last one and than `log_bytes_min`.
    /// So each change costs a constant share of a snapshot, however large the state is.
    pub async fn snapshot_if_due(&self, log_bytes_min: u64) {
        let snapshot_bytes = self.within(self.raft.get_snapshot()).await.ok().flatten();
        let snapshot_bytes = snapshot_bytes.map_or(0, |snapshot| snapshot.snapshot.len() as u64);
        if self.log.length_bytes().await > log_bytes_min.max(snapshot_bytes) {
            // The error says that the group has stopped.
            let _ = self.within(self.raft.trigger().snapshot()).await;
        }
    }

    /// Stops taking part.
    pub async fn stop(&self) {
        self.pool.stop_waiting();
        // The error says that the task has ended before.
        let _ = self.within(self.raft.shutdown()).await;
    }

    /// Answers another node.
    pub async fn serve(&self, request: Request, raw: Bytes) -> Response {
        let refused = |why: &dyn std::fmt::Display| Response::Refused { why: why.to_string() };
        match request {
            Request::Append { to, .. } | Request::Vote { to, .. } | Request::Snapshot { to, .. } if to != self.id => {
                refused(&format!("the metadata log here is {} and not {to}", self.id))
            }
            request if self.has_no_room_for(&request) => {
                refused(&"the disk of this node has no room for the metadata of the cluster")
            }
            Request::Append { rpc, .. } => {
                self.within(self.raft.append_entries(rpc)).await.map_or_else(|e| refused(&e), Response::Append)
            }
            Request::Vote { rpc, .. } => {
                self.within(self.raft.vote(rpc)).await.map_or_else(|e| refused(&e), Response::Vote)
            }
            Request::Snapshot { vote, meta, offset, total, .. } => {
                self.take_part(vote, meta, offset, total, &raw).await
            }
            Request::Propose { command } => match self.propose(command).await {
                Ok((index, refusal)) => Response::Proposed { index, refusal },
                Err(NotDecided::NotLeader(leader)) => Response::NotLeader { leader },
                Err(NotDecided::Stopped) => refused(&"the node is stopping"),
            },
            Request::Progress { at_least, wait_ms } => {
                let limit = self.runtime.now() + std::time::Duration::from_millis(wait_ms);
                // Late is an answer, too.
                let _ = ombak_runtime::within(&*self.runtime, Some(limit), self.wait_applied(at_least)).await;
                Response::Progress { applied: self.position().applied.map_or(0, |applied| applied.index) }
            }
        }
    }

    /// Takes a part of a snapshot, and installs the snapshot with the last one.
    async fn take_part(&self, vote: Vote, meta: SnapshotMeta, offset: u64, total: u64, part: &[u8]) -> Response {
        let refused = |why: &str| Response::Refused { why: why.to_owned() };
        let mut incoming = self.incoming.lock().await;
        if offset == 0 {
            *incoming = Some(Incoming { meta: meta.clone(), state: BytesMut::new() });
        }
        let Some(known) = incoming.as_mut().filter(|known| known.meta == meta && known.state.len() as u64 == offset)
        else {
            return refused("the part does not follow the last one");
        };
        if total > SNAPSHOT_BYTES_MAX || offset + part.len() as u64 > total {
            *incoming = None;
            return refused("the snapshot is too long");
        }
        known.state.extend_from_slice(part);
        if (known.state.len() as u64) < total {
            return Response::Snapshot { vote };
        }
        let state = std::mem::take(&mut known.state).freeze();
        *incoming = None;
        let snapshot = Snapshot { meta, snapshot: Box::new(state) };
        match self.within(self.raft.install_full_snapshot(vote, snapshot)).await {
            Ok(installed) => Response::Snapshot { vote: installed.vote },
            Err(e) => refused(&e.to_string()),
        }
    }
}

/// A command that every member refuses.
const fn without_effect() -> Command {
    Command::TakeStep { steps: Vec::new() }
}

type Files = (LogStore, SnapshotFile, Option<SavedSnapshot>);

fn open_files(fs: Arc<dyn FileSystem>, dir: PathBuf, new_identity: u64) -> Result<Files, LogError> {
    let store = LogStore::open(fs.clone(), &dir, || Ok::<_, LogError>(new_identity))?;
    let file = SnapshotFile::new(fs, &dir);
    let saved = file.read()?;
    Ok((store, file, saved))
}

fn config(timing: &Timing) -> Config {
    let ms = |duration: std::time::Duration| duration.as_millis() as u64;
    Config {
        cluster_name: "metadata".into(),
        heartbeat_interval: ms(timing.heartbeat),
        election_timeout_min: ms(timing.election.0),
        election_timeout_max: ms(timing.election.1),
        install_snapshot_timeout: ms(timing.request_limit),
        // The node decides by the size of log and state.
        snapshot_policy: SnapshotPolicy::Never,
        ..Config::default()
    }
}
