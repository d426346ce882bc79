//! Runs the rest of a write, after this node has stored its copy, over the replicas of other nodes.

use super::after_reply::{AfterReply, Look};
use super::engine::Engine;
use super::outdated_put::Learning;
use super::pending::Pending;
use super::placements::RequestPlacement;
use super::stored_form::StoredForm;
use crate::conditional::Ballot;
use crate::coordination::get::Ask;
use crate::coordination::put::{Before, PutAction, PutActions, PutCore, PutEvent};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::replica::{
    NodeCounter, ReplicaRead, ReplicaStore, RequestReplicas, StoreKind, StoreMode, StoreOutcome, StoreReply,
};
use crate::slow::{Spent, micros_between};
use crate::transfer::AwaitedReplicas;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId, StoreFailure, StoreFailureKind, VectorClock};
use smallvec::SmallVec;
use std::future::{Future, poll_fn, ready as ready_now};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

/// How long a run serves the replicas of other nodes, at most.
const RUN_MAX: Duration = Duration::from_secs(30);

/// Maximum of the bytes of versions that runs hold for replicas which have not answered. Beyond it,
/// puts are refused before anything is executed.
const HELD_BYTES_MAX: u64 = 256 << 20;
/// What a run takes besides its version, in bytes.
const RUN_BYTES: u64 = 2 << 10;

/// The share of one run in the bytes that all runs hold.
struct HeldBytes {
    engine: Arc<Engine>,
    bytes: u64,
}

impl HeldBytes {
    fn of_run(engine: &Arc<Engine>, version: &Version) -> Self {
        Self::count(engine, RUN_BYTES + (version.form.head.len() + version.form.body.len()) as u64)
    }

    fn count(engine: &Arc<Engine>, bytes: u64) -> Self {
        engine.answered.put_bytes.fetch_add(bytes, Ordering::SeqCst);
        Self { engine: engine.clone(), bytes }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.engine.answered.put_bytes.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Refuses a put while the runs of earlier ones hold too much.
pub(crate) fn check_room(engine: &Engine) -> Result<(), Error> {
    let held = engine.answered.put_bytes.load(Ordering::SeqCst);
    if held > HELD_BYTES_MAX { Err(Error::Overload) } else { Ok(()) }
}

/// The version that the other replicas get.
pub(super) struct Version {
    pub(super) partition: u32,
    /// The bucket's n_val.
    pub(super) n_val: u32,
    pub(super) ring: RingVersion,
    pub(super) key: Bytes,
    pub(super) form: StoredForm,
    /// Whether the value in it is only what is added to a large one.
    pub(super) is_addition: bool,
    pub(super) kind: StoreKind,
    /// For a conditional put: what the primaries may have.
    pub(super) expected: Option<(VectorClock, Ballot)>,
    /// Whether each replica syncs the version before it answers.
    pub(super) synced: bool,
}

/// The replicas of a write, and what they get.
pub(crate) struct Others {
    /// By which the replicas were chosen.
    pub(super) placement: RequestPlacement,
    /// Number of positions.
    pub(super) n: u32,
    /// Whether fallbacks stand in for owners that are down.
    pub(super) sloppy: bool,
    pub(super) replicas: RequestReplicas,
    /// The counter of fences of each replica, as of before the key was locked.
    pub(super) noted: SmallVec<[Option<NodeCounter>; 3]>,
    pub(super) version: Version,
    /// Notes which primaries missed the version.
    pub(super) awaited: Option<AwaitedReplicas>,
    /// The replicas that do not get the version, because this node could not sync it. This node and
    /// they are stand-ins: what such a node sends to another one must survive its loss of power
    /// (docs/design/replication.md §6).
    pub(super) withheld_from: SmallVec<[usize; 3]>,
    /// Whether this node has synced its copy, or has failed to.
    pub(super) is_synced: bool,
    /// The error for a put whose condition does not hold at the other replicas.
    pub(super) conflict: Error,
}

/// One active write over several replicas.
pub(super) struct PutRun {
    pub(super) engine: Arc<Engine>,
    pub(super) core: PutCore,
    pub(super) others: Box<Others>,
    /// What became of this node's copy.
    pub(super) here: Before,
    /// The other nodes that have acknowledged the version.
    pub(super) stored_at: SmallVec<[NodeId; 3]>,
    /// The wait for a newer placement of which a replica has told.
    pub(super) learning: Option<Learning>,
    /// When the run ends, whether all replicas have answered or not. The limit of the client is no
    /// reason to leave a replica without the version, because its event exists.
    ends_at: Instant,
    pub(super) pending: Pending<Sent, Result<StoreReply, Error>>,
    is_done: bool,
    /// When the run began, if somebody wants to know where its time goes.
    timed_from: Option<Instant>,
    spent: Spent,
    _held: HeldBytes,
}

/// A version that was sent.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    replica: usize,
    /// Whether the replica may be sent what this node then has, if it refuses the version.
    may_read_again: bool,
    /// Whether it is an addition to a large value, which the replica may lack.
    is_addition: bool,
}

/// What a run waits for next.
pub(super) enum Next {
    /// An event for the coordinator.
    Event(PutEvent),
    /// A newer placement is in force.
    Learned,
}

/// A write on which its client waits. It runs on the task of the client, and goes on beside it when
/// the client has its answer or goes away.
pub(super) struct AwaitedPut {
    run: Option<Box<PutRun>>,
    /// When the client stops waiting.
    deadline: Option<Instant>,
    /// The timer. It is set when the client has to wait for the first time.
    timer: Option<BoxFuture<'static, ()>>,
    reply: Option<Result<(), Error>>,
}

impl AwaitedPut {
    /// Executes what the coordinator has asked for so far, and tells it what became of this node's
    /// copy. The result serves the other replicas and completes with the reply.
    pub(super) fn start(
        engine: &Arc<Engine>,
        core: PutCore,
        others: Box<Others>,
        (first, local): (PutActions, PutEvent),
        deadline: Option<Instant>,
    ) -> Self {
        let now = engine.config.runtime.now();
        let ends_at = now + RUN_MAX;
        let timed_from = engine.slow.is_on().then_some(now);
        let (held, pending) = (HeldBytes::of_run(engine, &others.version), Pending::new());
        let engine = engine.clone();
        let here = if matches!(local, PutEvent::Stored { .. }) { Before::Stored } else { Before::Failed };
        let (stored_at, learning) = (SmallVec::new(), None);
        let mut run = Box::new(PutRun {
            engine,
            core,
            others,
            here,
            stored_at,
            learning,
            ends_at,
            pending,
            is_done: false,
            timed_from,
            spent: Spent::default(),
            _held: held,
        });
        let reply = run.execute(first);
        let reply = reply.or(run.take(Next::Event(local)));
        Self { run: Some(run), deadline, timer: None, reply }
    }
}

impl Future for AwaitedPut {
    /// The reply, and the times of the run if requests can be slow.
    type Output = (Result<(), Error>, Spent);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { run: place, deadline, timer, reply } = &mut *self;
        let Some(run) = place else { return Poll::Ready((Err(Error::Timeout), Spent::default())) };
        while reply.is_none()
            && let Poll::Ready(event) = run.poll_event(cx)
        {
            *reply = run.take(event);
        }
        if reply.is_none() {
            let runtime = &run.engine.config.runtime;
            let until = deadline.map_or(run.ends_at, |deadline| deadline.min(run.ends_at));
            ready!(timer.get_or_insert_with(|| runtime.sleep_until(until)).as_mut().poll(cx));
            run.note_time();
            if until < run.ends_at {
                return Poll::Ready((Err(Error::Timeout), run.spent));
            }
            *reply = run.take(Next::Event(PutEvent::Timeout));
        }
        let spent = run.spent;
        let (reply, run) = (reply.take(), place.take());
        if let Some(run) = run.filter(|run| !run.is_done) {
            let engine = run.engine.clone();
            engine.answered.waiting.add(&engine.config.runtime, run);
        }
        Poll::Ready((reply.unwrap_or(Err(Error::Timeout)), spent))
    }
}

impl Drop for AwaitedPut {
    fn drop(&mut self) {
        // The client has gone away, or waits no longer.
        if let Some(run) = self.run.take().filter(|run| !run.is_done) {
            let runtime = run.engine.config.runtime.clone();
            runtime.spawn(run.finish());
        }
    }
}

impl PutRun {
    /// Waits for what the coordinator is told next.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            if let Some(learning) = &mut self.learning
                && learning.poll(cx).is_ready()
            {
                self.learning = None;
                return Poll::Ready(Next::Learned);
            }
            if self.pending.is_empty() {
                // Without a pending store no further answer can come.
                let ends = Poll::Ready(Next::Event(PutEvent::Timeout));
                return if self.learning.is_some() { Poll::Pending } else { ends };
            }
            let (sent, answer) = ready!(self.pending.poll_next(cx));
            if let Some(event) = self.answered(sent, answer) {
                return Poll::Ready(Next::Event(event));
            }
        }
    }

    /// Tells the coordinator. Returns the reply, if it is decided by that.
    fn take(&mut self, next: Next) -> Option<Result<(), Error>> {
        let actions = match next {
            Next::Event(event) => self.core.on(event),
            Next::Learned => self.recount(),
        };
        let reply = self.execute(actions);
        if self.core.has_replied() {
            // Nobody waits for another count.
            self.learning = None;
        }
        reply
    }

    fn execute(&mut self, actions: PutActions) -> Option<Result<(), Error>> {
        let mut reply = None;
        for action in actions {
            match action {
                PutAction::Store { replica } => self.store(replica),
                PutAction::Reply(said) => reply = Some(said),
                PutAction::Done => self.is_done = true,
                // This node has coordinated before the run began.
                PutAction::Coordinate { .. } => {}
            }
        }
        reply
    }

    fn store(&mut self, replica: usize) {
        if self.others.withheld_from.contains(&replica) {
            let sent = Sent { replica, may_read_again: false, is_addition: false };
            self.pending.push(sent, Box::pin(ready_now(Err(unsynced()))));
            return;
        }
        let target = self.others.replicas.list[replica];
        let may_read_again = self.others.may_read_again(target.is_owner());
        let sent = Sent { replica, may_read_again, is_addition: self.others.version.is_addition };
        let noted = self.others.noted.get(replica).copied().flatten();
        let version = self.version_for(replica, noted);
        self.spent.asked += 1;
        self.pending.push(sent, self.engine.replica_client(target.node).store(version));
    }

    /// Notes that another node has answered, or that the time is over, while the client waits.
    fn note_time(&mut self) {
        if let Some(from) = self.timed_from.filter(|_| !self.core.has_replied()) {
            self.spent.replicas_us = micros_between(from, self.engine.config.runtime.now());
        }
    }

    /// What a replica gets, if its counter of fences was noted before the version was read.
    fn version_for(&self, replica: usize, noted: Option<NodeCounter>) -> ReplicaStore {
        let version = &self.others.version;
        let is_primary = self.others.replicas.list[replica].is_owner();
        let expected = version.expected.as_ref().filter(|_| is_primary);
        ReplicaStore {
            partition: version.partition,
            n: version.n_val,
            ring: version.ring,
            key: version.key.clone(),
            head: version.form.head.clone(),
            body: version.form.body.clone(),
            // It is new.
            stored_secs: None,
            kind: version.kind,
            mode: match expected {
                Some((clock, ballot)) => StoreMode::IfExpected { expected: clock.clone(), ballot: *ballot },
                None if version.is_addition => StoreMode::Add,
                None => StoreMode::Merge,
            },
            noted,
            synced: version.synced,
            deadline: Some(self.ends_at),
        }
    }

    /// The event that follows from an answer; none if the replica is sent another version.
    fn answered(&mut self, sent: Sent, answer: Result<StoreReply, Error>) -> Option<PutEvent> {
        let Sent { replica, may_read_again, is_addition } = sent;
        if !self.core.has_replied() {
            self.spent.answered += 1;
            self.note_time();
        }
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => return Some(PutEvent::Failed { replica, error }),
        };
        let node = self.others.replicas.list[replica].node;
        self.engine.reaping.counters.note(node, reply.counter);
        Some(match reply.outcome {
            StoreOutcome::Stored { .. } => {
                self.note_stored(node);
                self.stored_at.push(node);
                PutEvent::Stored { replica }
            }
            StoreOutcome::Outdated { known, digest } => return self.outdated(replica, known, digest.is_some()),
            StoreOutcome::Conflict => PutEvent::Conflict { replica },
            StoreOutcome::Fenced if may_read_again => {
                let sent = Sent { replica, may_read_again: false, is_addition: false };
                self.send_again(sent, Some(reply.counter));
                return None;
            }
            StoreOutcome::Fenced => PutEvent::Failed { replica, error: fenced() },
            // What this node has by now is the version, or follows from it. So a stand-in may get
            // it from another one, as it would have got the whole version at first. It is synced
            // before, as that was.
            StoreOutcome::Lacks if is_addition => {
                let noted = self.others.noted.get(replica).copied().flatten();
                self.send_again(Sent { replica, may_read_again, is_addition: false }, noted);
                return None;
            }
            StoreOutcome::Lacks => PutEvent::Failed { replica, error: Error::Timeout },
        })
    }

    /// Notes that a node holds the version, so that it is not owed.
    pub(super) fn note_stored(&mut self, node: NodeId) {
        if let Some(awaited) = &mut self.others.awaited {
            awaited.stored_at(node);
        }
    }

    /// Sends once more what this node then has: to a replica that has raised a fence since its
    /// counter was noted, or that lacks what an addition builds on.
    fn send_again(&mut self, sent: Sent, noted: Option<NodeCounter>) {
        let client = self.engine.replica_client(self.others.replicas.list[sent.replica].node);
        let store = self.version_for(sent.replica, noted);
        let mode = if store.mode == StoreMode::Add { StoreMode::Merge } else { store.mode.clone() };
        if is_broken(BrokenRule::RefusedCopiesAreReadAgain) {
            self.pending.push(sent, client.store(store));
            return;
        }
        let ReplicaStore { partition, n, ring, deadline, .. } = store;
        let read = ReplicaRead { partition, n, ring, key: store.key.clone(), ask: Ask::Object, deadline };
        let (here, engine) = (self.engine.local_replica(), self.engine.clone());
        let are_stand_ins = !self.others.may_read_again(self.others.replicas.list[sent.replica].is_owner());
        let again = async move {
            let Some(again) = here.begin_read(read).finish().await?.version else {
                // It was reaped, or was proved at all primaries and dropped: nobody lacks it.
                let counter = noted.unwrap_or_default();
                return Ok(StoreReply { outcome: StoreOutcome::Stored { digest: 0 }, counter });
            };
            if are_stand_ins {
                let partition = engine.partitions().find(partition)?;
                engine.synced(&partition, again.seq).await?;
            }
            let body = again.body.unwrap_or_default();
            let _held = HeldBytes::count(&engine, (again.head.len() + body.len()) as u64);
            let stored_secs = again.stored_secs;
            client.store(ReplicaStore { head: again.head, body, stored_secs, mode, ..store }).await
        };
        self.pending.push(sent, Box::pin(again));
    }
}

impl AfterReply for PutRun {
    fn look(&mut self, cx: &mut Context<'_>) -> Look {
        while !self.is_done {
            let Poll::Ready(event) = self.poll_event(cx) else { return Look::Waits };
            // The client has its reply.
            let _ = self.take(event);
        }
        Look::Ended
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let runtime = self.engine.config.runtime.clone();
            let ends_at = Some(self.ends_at);
            let served = poll_fn(|cx| {
                while !self.is_done {
                    let event = ready!(self.poll_event(cx));
                    let _ = self.take(event);
                }
                Poll::Ready(())
            });
            // The coordinator has nothing to decide any more when the time is over.
            let _ = within(&*runtime, ends_at, served).await;
        })
    }
}

impl Others {
    /// Whether a replica that refuses the version gets what this node then has. Old copies must not
    /// pass between stand-ins (docs/design/replication.md §6).
    fn may_read_again(&self, is_primary: bool) -> bool {
        let here_is_primary = self.replicas.local.is_some_and(|local| self.replicas.list[local].is_owner());
        is_primary || here_is_primary
    }
}

/// The failure of a stand-in that is not sent a version.
fn unsynced() -> Error {
    let text = "this node stands in, too, and could not sync the version";
    StoreFailure::new(StoreFailureKind::Io, text).into()
}

/// The failure of a replica that has refused a version, and then what this node had meanwhile.
fn fenced() -> Error {
    let text = "the replica has removed a tombstone of the key since the version was read";
    StoreFailure::new(StoreFailureKind::Busy, text).into()
}
