//! Runs a read over the replicas of several nodes.
//!
//! The coordinator decides; this file sends its questions, brings it the answers, and keeps time.
//! After the client is answered, the run goes on by itself for a short while: the answers that still
//! come feed read repair.

use super::engine::Engine;
use super::stored_form::StoredForm;
use crate::coordination::get::{Answer, Ask, GetAction, GetActions, GetCore, GetEvent};
use crate::interface::GetReply;
use crate::replica::{Found, ReplicaClient, ReplicaRead, ReplicaStore, RequestReplicas, StoreKind};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, stored_object};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tracing::debug;

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
        (engine.repairing_reads.fetch_add(1, Ordering::SeqCst) < REPAIRING_READS_MAX).then_some(guard)
    }
}

impl Drop for RepairingRead {
    fn drop(&mut self) {
        self.0.repairing_reads.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a question to a replica ended with.
enum Ended {
    /// The answer of the replica with this index.
    Answered(usize, Answer),
    /// A repair, which no coordinator waits for.
    Repaired,
}

/// One active read over several replicas.
pub(super) struct GetRun {
    engine: Arc<Engine>,
    core: GetCore,
    clients: Vec<Arc<dyn ReplicaClient>>,
    partition: u32,
    key: Bytes,
    dvv: bool,
    deadline: Option<Instant>,
    pending: FuturesUnordered<BoxFuture<'static, Ended>>,
}

impl GetRun {
    pub(super) fn new(
        engine: Arc<Engine>,
        core: GetCore,
        replicas: &RequestReplicas,
        (partition, key): (u32, Bytes),
        dvv: bool,
        deadline: Option<Instant>,
    ) -> Self {
        let clients = replicas.list.iter().map(|replica| engine.replica_client(replica.node)).collect();
        Self { engine, core, clients, partition, key, dvv, deadline, pending: FuturesUnordered::new() }
    }

    /// Runs until the client can be answered. What is left to do then goes on by itself.
    pub(super) async fn answer(mut self, first: GetActions) -> Result<GetReply, Error> {
        let (mut reply, mut done) = self.execute(first);
        while reply.is_none() && !done {
            (reply, done) = self.step().await;
        }
        if !self.pending.is_empty() {
            self.go_on(done);
        }
        reply.unwrap_or(Err(Error::Timeout))
    }

    /// Collects the answers that are still on their way, for a while, and sends the repairs to their
    /// end.
    fn go_on(mut self, mut done: bool) {
        let Some(guard) = RepairingRead::begin(&self.engine) else { return };
        let runtime = self.engine.config.runtime.clone();
        let wait_until = runtime.now() + STRAGGLERS_WAIT;
        self.deadline = Some(self.deadline.map_or(wait_until, |deadline| deadline.min(wait_until)));
        runtime.clone().spawn(Box::pin(async move {
            while !done {
                done = self.step().await.1;
            }
            let repairs = async { while self.pending.next().await.is_some() {} };
            // Repairs that are not done in time are dropped: another read repeats them.
            let _ = within(&*runtime, Some(runtime.now() + REPAIR_MAX), repairs).await;
            drop(guard);
        }));
    }

    /// Waits for the next answer, or for the end of the time. Returns the reply, if it is decided
    /// by that, and whether nothing follows.
    async fn step(&mut self) -> (Option<Result<GetReply, Error>>, bool) {
        let ended = within(&*self.engine.config.runtime, self.deadline, self.pending.next()).await;
        let actions = match ended {
            Ok(Some(Ended::Answered(replica, answer))) => self.core.on(GetEvent::Answer { replica, answer }),
            Ok(Some(Ended::Repaired)) => GetActions::new(),
            // Without a pending question no further answer can come.
            Ok(None) | Err(_) => self.core.on(GetEvent::Timeout),
        };
        self.execute(actions)
    }

    fn execute(&mut self, actions: GetActions) -> (Option<Result<GetReply, Error>>, bool) {
        let (mut reply, mut done) = (None, false);
        for action in actions {
            match action {
                GetAction::Ask { replica, ask } => self.ask(replica, ask),
                GetAction::Reply(said) => reply = Some(said),
                GetAction::Repair { replica, object } => self.repair(replica, &StoredForm::of(&object)),
                GetAction::Done => done = true,
            }
        }
        (reply, done)
    }

    fn ask(&mut self, replica: usize, ask: Ask) {
        let (partition, key, deadline) = (self.partition, self.key.clone(), self.deadline);
        let question = self.clients[replica].read(ReplicaRead { partition, key, ask, deadline });
        self.pending.push(Box::pin(async move {
            let answer = question.await.and_then(|found| decode(found, ask)).unwrap_or_else(Answer::Failed);
            Ended::Answered(replica, answer)
        }));
    }

    fn repair(&mut self, replica: usize, version: &StoredForm) {
        let repair = self.clients[replica].store(ReplicaStore {
            partition: self.partition,
            key: self.key.clone(),
            head: version.head.clone(),
            body: version.body.clone(),
            kind: StoreKind { dvv: self.dvv },
            synced: false,
            deadline: Some(self.engine.config.runtime.now() + REPAIR_MAX),
        });
        self.pending.push(Box::pin(async move {
            if let Err(why) = repair.await {
                debug!(%why, "a read repair failed");
            }
            Ended::Repaired
        }));
    }
}

fn decode(found: Found, ask: Ask) -> Result<Answer, Error> {
    let stored = match found {
        Found::NotFound { full } => return Ok(Answer::NotFound { full }),
        Found::Version(stored) => stored,
    };
    let object = stored_object::decode(&stored.head, stored.body.as_ref())?;
    Ok(match ask {
        Ask::Head => Answer::Head(object),
        Ask::Object => Answer::Object(object),
    })
}
