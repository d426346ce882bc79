//! What the services for coordinators share: they answer the questions of other nodes from the
//! partitions of this node. Each service is a file beside this one.
//!
//! Hot path: a question whose data is at hand is answered on the task of its connection, without
//! another task.

use super::counters::{ReplicaCounters, count};
use super::failure::{MALFORMED, OTHER_LINEAGE, REPLICA_ERROR};
use crate::capabilities::RING_CHANGES;
use crate::services::{Gate, UnderWay};
use crate::wire::{Malformed, encode_error};
use bytes::Bytes;
use ombak_kv::replica::Begun;
use ombak_kv::{Kv, LocalReplica};
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, RefusalCode, Responder};
use ombak_ring::RingVersion;
use ombak_runtime::{Asker, BoxFuture, Runtime};
use ombak_types::Error;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tracing::warn;

/// What the services for the coordinators of other nodes share. One bound counts for the questions
/// of all of them.
pub(crate) struct ReplicaService {
    pub(super) kv: Kv,
    pub(super) local: LocalReplica,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) counters: Arc<ReplicaCounters>,
    gate: Arc<Gate>,
}

impl ReplicaService {
    /// Serves at most `under_way_max` questions at a time.
    pub(crate) fn new(
        kv: Kv,
        runtime: Arc<dyn Runtime>,
        counters: Arc<ReplicaCounters>,
        under_way_max: usize,
    ) -> Arc<Self> {
        let (local, gate) = (kv.local_replica(), Gate::new(under_way_max));
        Arc::new(Self { kv, local, runtime, counters, gate })
    }

    /// The gate of all services for coordinators.
    pub(super) const fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    pub(super) const fn local(&self) -> &LocalReplica {
        &self.local
    }

    /// Counts a question, unless it must not be executed: then it is refused.
    pub(super) fn begin(&self, request: &Incoming, answer: Responder) -> Option<(Responder, UnderWay)> {
        let (answer, under_way) = self.gate.enter(answer, &self.counters)?;
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
    pub(super) fn hold(&self, request: &Incoming, answer: Responder) -> Option<(Responder, Bytes)> {
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
    pub(super) fn accept<Q>(
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
    pub(super) fn end<T: Send + 'static>(
        &self,
        begun: Begun<T>,
        encode: fn(&T) -> Body,
        answer: Responder,
        under_way: UnderWay,
    ) {
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

pub(super) fn reply<T, E>(answer: Responder, done: Result<T, E>, encode: fn(&T) -> Body, refuse: fn(Responder, E)) {
    match done {
        Ok(done) => answer.answer(encode(&done)),
        Err(error) => refuse(answer, error),
    }
}

pub(super) fn refuse(answer: Responder, error: Error) {
    answer.refuse(REPLICA_ERROR, encode_error(&error));
}

/// Whether the sender can be told that its placement is outdated.
#[inline]
pub(super) fn knows_placements(request: &Incoming) -> bool {
    request.peer().identity.capabilities.contains(RING_CHANGES)
}

/// Who waits for the answer to a question. Its work need not begin, or can end, when the other node
/// has given up, when the connection has ended, or when the question has expired.
pub(super) fn asker_of(request: &Incoming, answer: &Responder) -> Asker {
    Asker { deadline: Some(request.deadline()), has_gone: Some(answer.watch()) }
}

#[inline]
pub(super) fn ring_of(request: &Incoming) -> RingVersion {
    let ring = request.ring();
    RingVersion { lineage: ring.lineage, number: ring.number }
}
