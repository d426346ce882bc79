//! The replicas of this node: what reads, writes and conditional puts ask of them.
//!
//! What it is not: other nodes ask more than that (`interface/local_replica.rs`).

use super::engine::Engine;
use super::replica::{Taken, writes_are_fenced};
use super::replica_memory::UNCOUNTED_BYTES_MAX;
use crate::coordination::get::Ask;
use crate::partition::{Access, Failure, Partition};
use crate::replica::{
    Begun, ConditionalClient, PromiseReply, PromiseRequest, ReadReply, ReplicaRead, ReplicaStore, StoreOutcome,
    StoreReply,
};
use ombak_runtime::{BoxFuture, RuntimeExt};
use ombak_types::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest body, in bytes, that is merged and written on the thread that asks: copying and
/// checking a larger one takes too long there.
const INLINE_BODY_BYTES_MAX: usize = 256 << 10;
/// The largest head of such a version: decoding each of its parts takes some hundred nanoseconds.
const INLINE_HEAD_BYTES_MAX: usize = 64 << 10;

/// How long an addition waits for an earlier one that it builds on, before its coordinator is asked
/// for the whole value. Additions of several coordinators, and those that wait for a thread here,
/// can pass each other.
const EARLY_PAUSES_MS: [u64; 6] = [1, 2, 4, 8, 16, 32];

/// This node's partitions. A question is answered at once when nothing has to be waited for, and
/// otherwise by a thread that may wait.
#[derive(Clone)]
pub struct LocalReplica {
    pub(crate) engine: Arc<Engine>,
}

impl LocalReplica {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// Reads a key like [`ReplicaClient::read`](crate::ReplicaClient::read), and at once if nothing
    /// has to be waited for.
    pub fn begin_read(&self, read: ReplicaRead) -> Begun<ReadReply> {
        let (engine, began) = (&self.engine, self.engine.config.runtime.now());
        if engine.waking.is_on(began) {
            let engine = engine.clone();
            return Begun::Waits(Box::pin(async move {
                engine.awake(read.deadline).await;
                Self::new(engine).read_at_once(read, began).finish().await
            }));
        }
        self.read_at_once(read, began)
    }

    /// Reads a key, although others may hold something for this node.
    fn read_at_once(&self, read: ReplicaRead, began: Instant) -> Begun<ReadReply> {
        let (engine, ask) = (&self.engine, read.ask);
        match engine.read_replica(&read, Access::Inline) {
            Err(Failure::WouldBlock | Failure::TooLarge(_)) => {
                let engine = engine.clone();
                Begun::Waits(Box::pin(async move {
                    let reply = read_and_wait(&engine, read).await?;
                    count_read(&engine, ask, began);
                    Ok(reply)
                }))
            }
            Err(Failure::Refused(error)) => Begun::Done(Err(error)),
            Ok(reply) => {
                count_read(engine, ask, began);
                Begun::Done(Ok(reply))
            }
        }
    }

    /// Stores a version like [`ReplicaClient::store`](crate::ReplicaClient::store), and at once if
    /// nothing has to be waited for.
    pub fn begin_store(&self, store: ReplicaStore) -> Begun<StoreReply> {
        let (engine, began) = (&self.engine, self.engine.config.runtime.now());
        let is_large = store.head.len() > INLINE_HEAD_BYTES_MAX || store.body.len() > INLINE_BODY_BYTES_MAX;
        let at_once = if is_large { Err(Failure::WouldBlock) } else { engine.store_replica(&store, Access::Inline) };
        let taken = match at_once {
            Ok(Taken::TooEarly) | Err(Failure::WouldBlock | Failure::TooLarge(_)) => {
                let engine = engine.clone();
                return Begun::Waits(Box::pin(async move {
                    let taken = store_and_wait(&engine, &store, is_large).await?;
                    let (outcome, sync) = note_taken(&engine, &store, taken)?;
                    end_store(&engine, outcome, sync, began).await
                }));
            }
            Err(Failure::Refused(error)) => return Begun::Done(Err(error)),
            Ok(taken) => taken,
        };
        match note_taken(engine, &store, taken) {
            Err(error) => Begun::Done(Err(error)),
            Ok((outcome, None)) => Begun::Done(Ok(stored(engine, outcome, began))),
            Ok((outcome, sync)) => {
                let engine = engine.clone();
                Begun::Waits(Box::pin(async move { end_store(&engine, outcome, sync, began).await }))
            }
        }
    }
}

/// Reads on a thread that may wait.
async fn read_and_wait(engine: &Arc<Engine>, read: ReplicaRead) -> Result<ReadReply, Error> {
    let mut access = match read.ask {
        Ask::Head | Ask::Exchange => Access::Blocking,
        Ask::Object => Access::BlockingUpTo(UNCOUNTED_BYTES_MAX),
    };
    let mut lease = None;
    loop {
        let (there, question) = (engine.clone(), read.clone());
        let answer = engine.disk_pool.run_until(read.deadline, move || there.read_replica(&question, access));
        match answer.await? {
            Err(Failure::TooLarge(bytes)) => {
                drop(lease.take());
                lease = Some(engine.replica_memory.take(bytes)?);
                access = Access::BlockingUpTo(bytes);
            }
            answer => {
                let mut reply = answer.map_err(Failure::of_blocking_call)?;
                let body = reply.version.as_mut().and_then(|version| version.body.as_mut());
                if let (Some(body), Some(lease)) = (body, lease) {
                    // The share lives as long as the value, on its way to a client too.
                    *body = lease.hold(std::mem::take(body));
                }
                return Ok(reply);
            }
        }
    }
}

/// Stores a version on a thread that may wait.
async fn store_and_wait(engine: &Arc<Engine>, store: &ReplicaStore, is_large: bool) -> Result<Taken, Error> {
    let mut pauses_ms = EARLY_PAUSES_MS.iter();
    loop {
        let (there, version) = (engine.clone(), store.clone());
        let pool = if is_large { &engine.large_request_pool } else { &engine.disk_pool };
        // The deadline is checked under the key's lock, so a store that has begun is waited for.
        let taken = pool
            .run(move || there.store_replica(&version, Access::Blocking))
            .await?
            .map_err(Failure::of_blocking_call)?;
        match (&taken, pauses_ms.next()) {
            (Taken::TooEarly, Some(pause)) => engine.config.runtime.sleep(Duration::from_millis(*pause)).await,
            _ => return Ok(taken),
        }
    }
}

/// An append that must be durable before the answer.
type Sync = (Arc<Partition>, u64);

/// What follows from what became of a version.
fn note_taken(engine: &Engine, store: &ReplicaStore, taken: Taken) -> Result<(StoreOutcome, Option<Sync>), Error> {
    Ok(match taken {
        Taken::Fenced => (StoreOutcome::Fenced, None),
        Taken::TooEarly | Taken::Lacks => (StoreOutcome::Lacks, None),
        Taken::Conflict => (StoreOutcome::Conflict, None),
        Taken::Outdated(known) => (StoreOutcome::Outdated { known, digest: None }, None),
        Taken::Stored(written) => {
            let partition = engine.partitions().find(store.partition)?;
            engine.note_stored(&partition, &store.key, &written);
            let is_synced = store.synced || partition.store().sync_each_write();
            // Looked at after the version was stored: if the home changes after this look, the
            // version is among those that are proved for the change.
            let outdated = engine.outdated(store.partition, store.ring).filter(|_| writes_are_fenced());
            let digest = written.digest;
            let outcome = match outdated {
                None => StoreOutcome::Stored { digest },
                Some(known) => StoreOutcome::Outdated { known, digest: Some(digest) },
            };
            (outcome, is_synced.then_some((partition, written.seq)))
        }
    })
}

async fn end_store(
    engine: &Arc<Engine>,
    outcome: StoreOutcome,
    sync: Option<Sync>,
    began: Instant,
) -> Result<StoreReply, Error> {
    if let Some((partition, seq)) = sync {
        engine.synced(&partition, seq).await?;
    }
    Ok(stored(engine, outcome, began))
}

fn stored(engine: &Engine, outcome: StoreOutcome, began: Instant) -> StoreReply {
    engine.stats.vnode_put(micros_since(engine, began));
    StoreReply { outcome, counter: engine.reaping.fences.counter() }
}

fn count_read(engine: &Engine, ask: Ask, began: Instant) {
    match ask {
        Ask::Head => engine.stats.vnode_head(micros_since(engine, began)),
        Ask::Object => engine.stats.vnode_get(micros_since(engine, began)),
        Ask::Exchange => {}
    }
}

fn micros_since(engine: &Engine, began: Instant) -> u64 {
    let took = engine.config.runtime.now().saturating_duration_since(began);
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

impl ConditionalClient for LocalReplica {
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        let engine = self.engine.clone();
        Box::pin(async move {
            if engine.waking.is_on(engine.config.runtime.now()) {
                engine.awake(request.deadline).await;
            }
            engine.wait_for_placement(request.ring, request.deadline).await;
            match engine.promise_here(&request, Access::Inline) {
                Err(Failure::WouldBlock | Failure::TooLarge(_)) => {}
                answer => return answer.map_err(Failure::of_blocking_call),
            }
            let (pool, deadline) = (engine.disk_pool.clone(), request.deadline);
            pool.run_until(deadline, move || engine.promise_here(&request, Access::Blocking))
                .await?
                .map_err(Failure::of_blocking_call)
        })
    }
}
