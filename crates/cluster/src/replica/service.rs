//! Answers the questions of other nodes from the partitions of this node.
//!
//! Hot path: a question whose data is at hand is answered on the task of its connection, without
//! another task.

use super::counters::{ReplicaCounters, count};
use super::failure::{MALFORMED, OTHER_LINEAGE, PUT_REFUSED, REPLICA_ERROR};
use crate::capabilities::RING_CHANGES;
use crate::service_numbers::{COORDINATE, REPLICA_READ, REPLICA_STORE, TRANSFER};
use crate::wire::{
    ForwardedMessage, Malformed, decode_forwarded_put, decode_replica_read, decode_replica_store, encode_error,
    encode_put_reply, encode_read_reply, encode_read_reply_without_placement, encode_store_reply,
    encode_store_reply_without_placement,
};
use bytes::Bytes;
use ombak_kv::{Begun, ForwardedPut, Kv, LocalReplica, PutFailure, ReplicaClient, ReplicaRead, ReplicaStore};
use ombak_peer::connection::TwoServices;
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, RefusalCode, Responder, Services};
use ombak_ring::RingVersion;
use ombak_runtime::{Asker, BoxFuture, Runtime};
use ombak_types::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tracing::warn;

/// A put from this length on is decoded by a thread for large requests: a head can have so many
/// parts that decoding takes long.
const POOLED_PUT_BYTES_MIN: usize = 64 << 10;

/// The services of a node for the coordinators of other nodes.
pub(crate) struct ReplicaService {
    kv: Kv,
    pub(super) local: LocalReplica,
    runtime: Arc<dyn Runtime>,
    counters: Arc<ReplicaCounters>,
    under_way: AtomicUsize,
    under_way_max: usize,
    is_draining: AtomicBool,
}

/// A question that counts as under way until this is dropped.
pub(super) struct UnderWay(Arc<ReplicaService>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ReplicaService {
    /// Serves at most `under_way_max` questions at a time.
    pub(crate) fn new(
        kv: Kv,
        runtime: Arc<dyn Runtime>,
        counters: Arc<ReplicaCounters>,
        under_way_max: usize,
    ) -> Arc<Self> {
        let (local, under_way, is_draining) = (kv.local_replica(), AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { kv, local, runtime, counters, under_way, under_way_max, is_draining })
    }

    /// Registers the services.
    pub(crate) fn register(self: &Arc<Self>, services: &mut Services) -> Result<(), TwoServices> {
        let (read, store, coordinate) = (self.clone(), self.clone(), self.clone());
        let read = move |request, answer| read.read(&request, answer);
        let store = move |request, answer| store.store(&request, answer);
        let coordinate = move |request, answer| coordinate.coordinate(&request, answer);
        services.register(REPLICA_READ, "replica reads", Arc::new(read))?;
        services.register(REPLICA_STORE, "replica stores", Arc::new(store))?;
        let transfers = self.clone();
        let transfer = move |request, answer| transfers.transfer(&request, answer);
        services.register(TRANSFER, "transfers", Arc::new(transfer))?;
        services.register(COORDINATE, "forwarded puts", Arc::new(coordinate))?;
        self.register_promises(services)?;
        self.register_reaping(services)
    }

    pub(super) const fn local(&self) -> &LocalReplica {
        &self.local
    }

    /// Refuses further questions.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::SeqCst);
    }

    /// The number of questions that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }

    fn read(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, read)) = self.decode(request, answer, decode_replica_read) else { return };
        count(&self.counters.reads_served);
        let read = ReplicaRead { deadline: Some(request.expires_at()), ring: ring_of(request), ..read };
        let encode = if knows_placements(request) { encode_read_reply } else { encode_read_reply_without_placement };
        self.end(self.local.begin_read(read), encode, answer, under_way);
    }

    fn store(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, body)) = self.hold(request, answer) else { return };
        let Some((answer, store)) = self.accept(request, answer, decode_replica_store(&body)) else { return };
        count(&self.counters.stores_served);
        let store = ReplicaStore { deadline: Some(request.expires_at()), ring: ring_of(request), ..store };
        let encode = if knows_placements(request) { encode_store_reply } else { encode_store_reply_without_placement };
        self.end(self.local.begin_store(store), encode, answer, under_way);
    }

    /// The deadline is checked again immediately before the event is stamped: the engine does that
    /// (docs/design/replication.md §12).
    fn coordinate(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, body)) = self.hold(request, answer) else { return };
        if body.len() >= POOLED_PUT_BYTES_MIN {
            let (service, request) = (self.clone(), request.clone());
            self.runtime.spawn(Box::pin(async move {
                let decoded = match service.kv.offload(move || decode_forwarded_put(&body)).await {
                    Ok(decoded) => decoded,
                    Err(error) => return refuse_put(answer, PutFailure::Refused(error)),
                };
                let Some((answer, put)) = service.accept(&request, answer, decoded) else { return };
                count(&service.counters.puts_coordinated);
                let done = service.local.coordinate(forwarded(put, &request)).await;
                reply(answer, done, encode_put_reply, refuse_put);
                drop(under_way);
            }));
            return;
        }
        let Some((answer, put)) = self.decode(request, answer, decode_forwarded_put) else { return };
        count(&self.counters.puts_coordinated);
        let work = self.local.coordinate(forwarded(put, request));
        self.finish(work, encode_put_reply, refuse_put, answer, under_way);
    }

    /// Counts a question, unless it must not be executed: then it is refused.
    pub(super) fn begin(self: &Arc<Self>, request: &Incoming, answer: Responder) -> Option<(Responder, UnderWay)> {
        let before = self.under_way.fetch_add(1, Ordering::SeqCst);
        // From here on the question is counted, also if it is refused.
        let under_way = UnderWay(self.clone());
        if self.is_draining.load(Ordering::SeqCst) {
            answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new());
            return None;
        }
        if before >= self.under_way_max {
            count(&self.counters.refused_overload);
            answer.overload();
            return None;
        }
        if request.ring().lineage != self.kv.placement_version().lineage {
            count(&self.counters.refused_lineage);
            answer.refuse(OTHER_LINEAGE, Bytes::new());
            return None;
        }
        if request.has_expired() {
            count(&self.counters.refused_expired);
            answer.refuse(RefusalCode::EXPIRED, Bytes::new());
            return None;
        }
        Some((answer, under_way))
    }

    /// Counts the body of a question, if it is large, as long as something refers to it.
    fn hold(&self, request: &Incoming, answer: Responder) -> Option<(Responder, Bytes)> {
        match self.kv.hold_memory(request.body().clone()) {
            Ok(body) => Some((answer, body)),
            Err(_) => {
                count(&self.counters.refused_overload);
                answer.overload();
                None
            }
        }
    }

    pub(super) fn decode<Q>(
        &self,
        request: &Incoming,
        answer: Responder,
        decode: fn(&Bytes) -> Result<Q, Malformed>,
    ) -> Option<(Responder, Q)> {
        self.accept(request, answer, decode(request.body()))
    }

    /// Refuses a question that did not decode.
    fn accept<Q>(
        &self,
        request: &Incoming,
        answer: Responder,
        decoded: Result<Q, Malformed>,
    ) -> Option<(Responder, Q)> {
        match decoded {
            Ok(question) => Some((answer, question)),
            Err(why) => {
                count(&self.counters.refused_malformed);
                warn!(peer = %request.peer().identity.node, %why, "a peer sent a request that does not decode");
                answer.refuse(MALFORMED, Bytes::new());
                None
            }
        }
    }

    /// Answers at once if the answer is there, and otherwise when it comes.
    fn end<T: Send + 'static>(&self, begun: Begun<T>, encode: fn(&T) -> Body, answer: Responder, under_way: UnderWay) {
        match begun {
            Begun::Done(done) => reply(answer, done, encode, refuse),
            Begun::Waits(work) => self.finish(work, encode, refuse, answer, under_way),
        }
    }

    /// Answers at once if the work is done at its first step, and otherwise when it is done.
    pub(super) fn finish<T: Send + 'static, E: Send + 'static>(
        &self,
        mut work: BoxFuture<'static, Result<T, E>>,
        encode: fn(&T) -> Body,
        refuse: fn(Responder, E),
        answer: Responder,
        under_way: UnderWay,
    ) {
        // The task that takes the work over polls it again, and so sets a waker of its own.
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => reply(answer, done, encode, refuse),
            Poll::Pending => self.runtime.spawn(Box::pin(async move {
                reply(answer, work.await, encode, refuse);
                drop(under_way);
            })),
        }
    }
}

fn reply<T, E>(answer: Responder, done: Result<T, E>, encode: fn(&T) -> Body, refuse: fn(Responder, E)) {
    match done {
        Ok(done) => answer.answer(encode(&done)),
        Err(error) => refuse(answer, error),
    }
}

pub(super) fn refuse(answer: Responder, error: Error) {
    answer.refuse(REPLICA_ERROR, encode_error(&error));
}

fn refuse_put(answer: Responder, failure: PutFailure) {
    let code = if matches!(failure, PutFailure::Refused(_)) { PUT_REFUSED } else { REPLICA_ERROR };
    answer.refuse(code, encode_error(&failure.into_error()));
}

/// Whether the sender can be told that its placement is outdated.
pub(super) fn knows_placements(request: &Incoming) -> bool {
    request.peer().identity.capabilities.contains(RING_CHANGES)
}

/// Who waits for the answer to a question. Its work need not begin, or can end, when the other node
/// has given up, when the connection has ended, or when the question has expired.
pub(super) fn asker_of(request: &Incoming, answer: &Responder) -> Asker {
    Asker { deadline: Some(request.deadline()), has_gone: Some(answer.watch()) }
}

pub(super) fn ring_of(request: &Incoming) -> RingVersion {
    let ring = request.ring();
    RingVersion { lineage: ring.lineage, number: ring.number }
}

/// A put that has arrived, by the clock of this node.
fn forwarded(message: ForwardedMessage, request: &Incoming) -> ForwardedPut {
    let ForwardedMessage { operation, begins_before, request: put } = message;
    // Without a moment by which it must begin, the deadline alone counts.
    let begin_by = begins_before.and_then(|before| request.deadline().checked_sub(before));
    ForwardedPut { operation, request: put, begin_by, deadline: Some(request.expires_at()) }
}
