//! Runs a read over the replicas of several nodes.
//!
//! The coordinator decides; this file sends its questions, brings it the answers, and keeps time.
//! After the client is answered, the run goes on by itself for a short while: the answers that
//! still come feed read repair.

use super::after_reply::{AfterReply, Look};
use super::engine::Engine;
use super::left_copies::LeftCopies;
use super::pending::Pending;
use super::placements::RequestPlacement;
use super::stored_form::StoredForm;
use crate::coordination::get::{Answer, Ask, GetAction, GetActions, GetCore, GetEvent, Lack};
use crate::deliberate_faults::{BrokenRule, is_broken};
use crate::partition::{digest as digest_of, is_tombstone};
use crate::replica::{
    Begun, NodeCounter, ReadReply, ReplicaRead, ReplicaStore, RequestReplicas, StoreKind, StoreMode, StoreOutcome,
    StoreReply, Target,
};
use crate::requests::GetReply;
use crate::slow::{Spent, micros_between};
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::{BoxFuture, RuntimeExt, within};
use ombak_stats::{KindCounts, ReadRepair};
use ombak_storage::Stored;
use ombak_types::{Error, NodeId, ShownKey, stored_object};
use smallvec::SmallVec;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tracing::{debug, info};

/// Maximum number of reads that go on after their client was answered. Further ones end with their
/// answer and repair nothing.
const REPAIRING_READS_MAX: usize = 2_000;
/// How long such a read waits for the replicas that have not answered. Then it repairs those that
/// have.
const STRAGGLERS_WAIT: Duration = Duration::from_millis(500);
/// How long a repair may take.
const REPAIR_MAX: Duration = Duration::from_secs(10);

/// A read that goes on after its client was answered.
struct RepairingRead(Arc<Engine>);

impl RepairingRead {
    fn begin(engine: &Arc<Engine>) -> Option<Self> {
        // The guard counts from here on, also if it is dropped at once.
        let guard = Self(engine.clone());
        (engine.answered.repairing_reads.fetch_add(1, Ordering::SeqCst) < REPAIRING_READS_MAX).then_some(guard)
    }
}

impl Drop for RepairingRead {
    fn drop(&mut self) {
        self.0.answered.repairing_reads.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the next answer to a run is.
enum Ended {
    /// The answer of the replica with this index.
    Answered(usize, Answer),
    /// A repair has ended, for which no coordinator waits.
    Repaired,
    /// Nothing is on its way any more, or the time is over.
    NoMore,
}

/// What comes of a run for its client.
pub(super) enum Said {
    /// The reply.
    Reply(Result<GetReply, Error>),
    /// A replica knows a newer placement, so the read must begin anew.
    Outdated { by: NodeId, known: RingVersion },
}

/// The key of a read, and how replicas treat its versions.
pub(super) struct ReadKey {
    pub(super) partition: u32,
    /// The bucket's n_val.
    pub(super) n_val: u32,
    pub(super) placement: RequestPlacement,
    /// The storage key.
    pub(super) key: Bytes,
    pub(super) kind: StoreKind,
    /// Counts repairs of values of a kind.
    pub(super) counts: Option<Arc<KindCounts>>,
}

/// One active read over several replicas.
pub(super) struct GetRun {
    engine: Arc<Engine>,
    core: GetCore,
    /// With the counters of fences as of before the first question.
    targets: SmallVec<[Target; 3]>,
    key: ReadKey,
    deadline: Option<Instant>,
    /// The timer of the deadline. It is set when the run has to wait for the first time.
    timer: Option<BoxFuture<'static, ()>>,
    /// Questions to this node. They are answered after the others were sent.
    here: SmallVec<[(usize, Ask); 1]>,
    questions: Pending<(usize, Ask), Result<ReadReply, Error>>,
    repairs: Pending<usize, Result<StoreReply, Error>>,
    /// The reply, from the time when it is decided until the client takes it.
    reply: Option<Said>,
    is_done: bool,
    /// Whether the reply was decided.
    has_replied: bool,
    /// The replica that is asked for the whole object at once, and what it has answered.
    whole_from: Option<usize>,
    whole: Option<(Bytes, u64)>,
    /// The digests of the whole versions that replicas have answered, and when they were stored.
    stored: SmallVec<[(u64, Option<u32>); 3]>,
    /// The copies that are left to exchanges.
    left: LeftCopies,
    /// Counts the run after its client was answered.
    repairing: Option<RepairingRead>,
    /// When the run began, if somebody wants to know where its time goes.
    timed_from: Option<Instant>,
    spent: Spent,
    /// Whether this node waits for its own store.
    waits_here: bool,
}

impl GetRun {
    /// A run that has executed the first actions.
    pub(super) fn start(
        engine: Arc<Engine>,
        (core, first): (GetCore, GetActions),
        replicas: &RequestReplicas,
        key: ReadKey,
        deadline: Option<Instant>,
    ) -> Box<Self> {
        let targets = replicas.list.iter().map(|replica| engine.target(replica.node)).collect();
        let timed_from = engine.slow.is_on().then(|| engine.config.runtime.now());
        let mut run = Box::new(Self {
            engine,
            core,
            targets,
            key,
            deadline,
            timer: None,
            here: SmallVec::new(),
            questions: Pending::new(),
            repairs: Pending::new(),
            reply: None,
            is_done: false,
            has_replied: false,
            whole_from: None,
            whole: None,
            stored: SmallVec::new(),
            left: LeftCopies::default(),
            repairing: None,
            timed_from,
            spent: Spent::default(),
            waits_here: false,
        });
        run.execute(first);
        run.whole_from = run.here.iter().find(|(_, ask)| *ask == Ask::Object).map(|(replica, _)| *replica);
        run
    }

    /// Runs until the client can be answered. What is left to do then goes on by itself. `spent`
    /// gets the times of the run, if requests can be slow.
    pub(super) async fn answer(mut self: Box<Self>, spent: &mut Spent) -> Said {
        let reply = poll_fn(|cx| {
            while self.reply.is_none() && !self.is_done {
                ready!(self.poll_step(cx));
            }
            Poll::Ready(self.reply.take())
        });
        let reply = reply.await.unwrap_or(Said::Reply(Err(Error::Timeout)));
        spent.add(&self.spent);
        // What a run that begins anew has asked for is of no use.
        if matches!(reply, Said::Reply(_)) && !self.is_idle() {
            self.go_on();
        }
        reply
    }

    /// Runs until all replicas have answered, and all repairs have ended.
    pub(super) async fn repair_all(mut self: Box<Self>) {
        self.run_to_end().await;
    }

    /// Collects the answers that are still on their way, for a while, and sends the repairs to
    /// their end.
    fn go_on(mut self: Box<Self>) {
        self.repairing = RepairingRead::begin(&self.engine);
        if self.repairing.is_none() {
            return;
        }
        let engine = self.engine.clone();
        let runtime = &engine.config.runtime;
        let wait_until = runtime.now() + STRAGGLERS_WAIT;
        self.deadline = Some(self.deadline.map_or(wait_until, |deadline| deadline.min(wait_until)));
        self.timer = None;
        engine.answered.waiting.add(runtime, self);
    }

    async fn run_to_end(&mut self) {
        while !self.is_done {
            poll_fn(|cx| self.poll_step(cx)).await;
        }
        let runtime = self.engine.config.runtime.clone();
        let repairs = poll_fn(|cx| {
            while !self.is_idle() {
                ready!(self.poll_ended(cx));
            }
            Poll::Ready(())
        });
        // Repairs that are not done in time are dropped: another read repeats them.
        let _ = within(&*runtime, Some(runtime.now() + REPAIR_MAX), repairs).await;
    }

    /// Whether nothing is on its way.
    fn is_idle(&self) -> bool {
        self.here.is_empty() && self.questions.is_empty() && self.repairs.is_empty()
    }

    /// Waits for the next answer, or for the end of the time.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Poll::Ready(ended) = self.poll_ended(cx) {
            self.take(ended);
            return Poll::Ready(());
        }
        let Some(at) = self.deadline else { return Poll::Pending };
        let runtime = &self.engine.config.runtime;
        ready!(self.timer.get_or_insert_with(|| runtime.sleep_until(at)).as_mut().poll(cx));
        self.timer = None;
        self.note_end_of_time();
        self.take(Ended::NoMore);
        Poll::Ready(())
    }

    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        loop {
            if let Poll::Ready(((replica, ask), answer)) = self.questions.poll_next(cx) {
                return Poll::Ready(self.answered(replica, ask, answer));
            }
            if let Poll::Ready((replica, answer)) = self.repairs.poll_next(cx) {
                self.repaired(replica, answer);
                return Poll::Ready(Ended::Repaired);
            }
            // The others have their questions by now.
            let Some((replica, ask)) = self.here.pop() else { break };
            match self.engine.local_replica().begin_read(self.question(ask)) {
                Begun::Done(answer) => return Poll::Ready(self.answered(replica, ask, answer)),
                Begun::Waits(answer) => {
                    self.waits_here = true;
                    self.questions.push((replica, ask), answer);
                }
            }
        }
        // Without a question no further answer can come.
        if self.is_idle() { Poll::Ready(Ended::NoMore) } else { Poll::Pending }
    }

    /// Tells the coordinator, and executes what it decides.
    fn take(&mut self, ended: Ended) {
        let actions = match ended {
            Ended::Answered(replica, answer) => self.core.on(GetEvent::Answer { replica, answer }),
            Ended::Repaired => return,
            Ended::NoMore => self.core.on(GetEvent::Timeout),
        };
        self.execute(actions);
    }

    fn execute(&mut self, actions: GetActions) {
        for action in actions {
            match action {
                GetAction::Ask { replica, ask } => self.ask(replica, ask),
                GetAction::Reply(said) => {
                    self.has_replied = true;
                    self.note_hidden(&said);
                    self.reply.get_or_insert(Said::Reply(said));
                }
                GetAction::Repair { replica, object, lack } => {
                    if self.leaves_to_exchanges(lack) {
                        self.ask_for_exchanges();
                    } else if self.may_repair() {
                        let stored_secs = self.stored_secs(digest_of(&object));
                        self.repair(replica, &StoredForm::of(&object), stored_secs, lack);
                    } else {
                        self.engine.stats.read_repair_skipped();
                    }
                }
                GetAction::Done => self.is_done = true,
            }
        }
    }

    /// Schedules the replacement of values that a tombstone hides, if the copy of this node has
    /// some. It may have been stored by an earlier process.
    fn note_hidden(&self, said: &Result<GetReply, Error>) {
        if let (Ok(GetReply::NotFound { tombstone: Some(_) }), Some((_, digest))) = (said, &self.whole)
            && !is_tombstone(*digest)
        {
            self.engine.note_hidden_at_rest(self.key.partition, &self.key.key, *digest);
        }
    }

    fn ask(&mut self, replica: usize, ask: Ask) {
        match &self.targets[replica].client {
            Some(client) => {
                self.spent.asked += 1;
                self.questions.push((replica, ask), client.read(self.question(ask)));
            }
            None => self.here.push((replica, ask)),
        }
    }

    fn question(&self, ask: Ask) -> ReplicaRead {
        let ReadKey { partition, n_val: n, ref placement, ref key, .. } = self.key;
        let ring = placement.version();
        ReplicaRead { partition, n, ring, key: key.clone(), ask, deadline: self.deadline }
    }

    /// Notes the time of an answer that came before the reply. The read of this node's own store
    /// is not the answer of a replica.
    fn note_answer(&mut self, replica: usize) {
        if self.has_replied {
            return;
        }
        let took_us = self.timed_from.map_or(0, |from| micros_between(from, self.engine.config.runtime.now()));
        if self.targets[replica].client.is_none() {
            self.waits_here = false;
            self.spent.store_us = took_us;
        } else {
            self.spent.answered += 1;
            self.spent.replicas_us = took_us;
        }
    }

    /// Notes for whom the run has waited to the end of its time.
    fn note_end_of_time(&mut self) {
        let Some(from) = self.timed_from.filter(|_| !self.has_replied) else { return };
        let took_us = micros_between(from, self.engine.config.runtime.now());
        if self.spent.answered < self.spent.asked {
            self.spent.replicas_us = took_us;
        }
        if self.waits_here {
            self.spent.store_us = took_us;
        }
    }

    fn answered(&mut self, replica: usize, ask: Ask, answer: Result<ReadReply, Error>) -> Ended {
        self.note_answer(replica);
        let answer = answer.and_then(|reply| {
            self.note(replica, reply.counter);
            match reply.outdated {
                Some(known) => Err(self.outdated(replica, known)),
                None => self.decode(replica, reply, ask),
            }
        });
        Ended::Answered(replica, answer.unwrap_or_else(Answer::Failed))
    }

    /// Lets the read begin anew, if its client waits. The answer does not count: it is neither for
    /// nor against the read.
    fn outdated(&mut self, replica: usize, known: RingVersion) -> Error {
        if !self.has_replied && self.key.placement.version() < known {
            self.reply = Some(Said::Outdated { by: self.targets[replica].node, known });
        }
        Error::Timeout
    }

    fn decode(&mut self, replica: usize, reply: ReadReply, ask: Ask) -> Result<Answer, Error> {
        let Some(Stored { head, body, digest, seq: _, stored_secs }) = reply.version else {
            self.left.note_lack(reply.full);
            return Ok(Answer::NotFound { full: reply.full });
        };
        self.left.note(replica, digest, reply.left_to_exchanges);
        // Mostly the replicas agree. An equal head need not be decoded again.
        if let (Ask::Head, Some(of), Some((its_head, its_digest))) = (ask, self.whole_from, &self.whole)
            && (*its_digest, its_head) == (digest, &head)
        {
            return Ok(Answer::Same { of });
        }
        let object = stored_object::decode(&head, body.as_ref())?;
        Ok(match ask {
            Ask::Head | Ask::Exchange => Answer::Head(object, digest),
            Ask::Object => {
                if self.whole_from == Some(replica) {
                    self.whole = Some((head, digest));
                }
                self.stored.push((digest, stored_secs));
                Answer::Object(object, digest)
            }
        })
    }

    /// Notes the counter of fences that a replica has told.
    fn note(&self, replica: usize, told: NodeCounter) {
        self.engine.reaping.counters.note(self.targets[replica].node, told);
    }

    /// Riak's limits of read repair: none beyond one number of active requests, a share of them
    /// between two numbers.
    fn may_repair(&self) -> bool {
        let limits = &self.engine.config.read_repair;
        let active = self.engine.active_requests();
        match (limits.soft, limits.max) {
            (_, Some(max)) if active >= max => false,
            (Some(soft), Some(max)) if active > soft => {
                let random = self.engine.config.runtime.random_u64().unwrap_or(0);
                random % (max - soft).max(1) as u64 >= (active - soft) as u64
            }
            _ => true,
        }
    }

    /// When a version that is made of the answers was stored. Of equal copies the oldest time
    /// counts, and of different versions the newest.
    fn stored_secs(&self, digest: u64) -> Option<u32> {
        let of_equal = self.stored.iter().filter(|(of, _)| *of == digest);
        match of_equal.clone().next() {
            Some(_) => of_equal.filter_map(|(_, secs)| *secs).min(),
            // Where one of them is not known, neither is the newest.
            None => self.stored.iter().map(|(_, secs)| *secs).collect::<Option<Vec<u32>>>()?.into_iter().max(),
        }
    }

    fn repair(&mut self, replica: usize, version: &StoredForm, stored_secs: Option<u32>, lack: Lack) {
        let (key, target) = (&self.key, &self.targets[replica]);
        self.engine.stats.read_repair(match lack {
            Lack::Missing => ReadRepair::PrimaryNotFound,
            Lack::Older | Lack::Unreadable => ReadRepair::PrimaryOutOfDate,
        });
        key.counts.iter().for_each(|counts| counts.read_repair());
        if self.engine.config.read_repair.log {
            let (at, node, partition) = (ShownKey::of(&key.key), target.node, key.partition);
            info!(%node, partition, bucket_type = %at.bucket_type, bucket = %at.bucket, key = %at.key, ?lack, "read repair");
        }
        let repair = self.engine.replica_client(target.node).store(ReplicaStore {
            partition: key.partition,
            n: key.n_val,
            ring: key.placement.version(),
            key: key.key.clone(),
            head: version.head.clone(),
            body: version.body.clone(),
            stored_secs,
            kind: key.kind,
            mode: if lack == Lack::Unreadable { StoreMode::ReplaceUnreadable } else { StoreMode::Merge },
            noted: target.noted,
            synced: false,
            deadline: Some(self.engine.config.runtime.now() + REPAIR_MAX),
        });
        self.repairs.push(replica, repair);
    }

    /// Whether a repair would spread a copy that is left to exchanges. What a replica cannot read
    /// is there, and is no removal, unless another one shows that there may have been one.
    fn leaves_to_exchanges(&self, lack: Lack) -> bool {
        (lack != Lack::Unreadable || self.left.has_lack())
            && !self.left.holders(|replica| self.core.clock_of(replica)).is_empty()
            && !is_broken(BrokenRule::ReadsLeaveItToExchanges)
    }

    /// Asks those that hold such a copy to exchange the key at once.
    fn ask_for_exchanges(&mut self) {
        if std::mem::replace(&mut self.left.has_asked, true) {
            return;
        }
        let deadline = Some(self.engine.config.runtime.now() + REPAIR_MAX);
        for replica in self.left.holders(|replica| self.core.clock_of(replica)) {
            let question = ReplicaRead { deadline, ..self.question(Ask::Exchange) };
            let asked = self.engine.replica_client(self.targets[replica].node).read(question);
            // Nothing follows from the answer but its counter, as from that to a repair.
            let told = |reply: ReadReply| {
                let outcome = StoreOutcome::Stored { digest: 0 };
                StoreReply { outcome, counter: reply.counter }
            };
            self.repairs.push(replica, Box::pin(async move { asked.await.map(told) }));
        }
    }

    fn repaired(&self, replica: usize, answer: Result<StoreReply, Error>) {
        let node = self.targets[replica].node;
        match answer {
            // A refused repair just ends: the next read does it with the counter of now.
            Ok(reply) => {
                self.note(replica, reply.counter);
                if reply.outcome == StoreOutcome::Fenced {
                    debug!(%node, "a read repair was refused, because its version was read before a fence");
                }
            }
            Err(why) => debug!(%node, %why, "a read repair failed"),
        }
    }
}

impl AfterReply for GetRun {
    fn look(&mut self, cx: &mut Context<'_>) -> Look {
        let questions = self.questions.len();
        loop {
            if self.is_done {
                return if self.is_idle() { Look::Ended } else { Look::NeedsTask };
            }
            let Poll::Ready(ended) = self.poll_ended(cx) else { break };
            self.take(ended);
        }
        // The values of another replica are asked for, or this node waits for its disk.
        if self.questions.len() > questions { Look::NeedsTask } else { Look::Waits }
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.run_to_end().await })
    }
}
