//! Asks a replica of another node.
//!
//! Hot path: every get and put over several nodes asks each other replica once.

use super::coordinate::COORDINATE;
use super::counters::{ReplicaCounters, count};
use super::failure::{error_of, outcome_of, put_failure_of, undecodable};
use super::promise::PROMISE;
use super::read::READ;
use super::reaping::REAPING;
use super::store::STORE;
use crate::liveness::{Liveness, RequestOutcome};
use crate::peer_table::Member;
use crate::wire::{
    ForwardedMessage, Malformed, decode_promise_reply, decode_put_reply, decode_read_reply, decode_store_reply,
    encode_forwarded_put, encode_promise_request, encode_replica_read, encode_replica_store,
};
use bytes::Bytes;
use ombak_failure_detection::FailureDetector;
use ombak_kv::replica::{
    ConditionalClient, ForwardedPut, PromiseReply, PromiseRequest, PutFailure, ReadReply, ReplicaClient, ReplicaRead,
    ReplicaStore, StoreReply,
};
use ombak_kv::{Kv, PutReply};
use ombak_peer::frame::Priority;
use ombak_peer::mux::Body;
use ombak_peer::{Lane, Outgoing, PeerError, Peers, RingVersion};
use ombak_runtime::{BoxFuture, Runtime};
use ombak_types::{Error, NodeId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A body from this length on takes the connection for transfers, so that small requests do not
/// wait behind it in the buffers of the sockets.
const BULK_LANE_BYTES_MIN: usize = 256 << 10;
/// The deadline of a request whose caller sets none. The lifetime of requests ends it earlier.
const WITHOUT_DEADLINE: Duration = Duration::from_secs(3600);

/// How long the answer to a question of a round of reaping may take. The driver of the round waits
/// as long. So a question of a round that has ended is not executed any more.
const ROUND_ANSWER_MAX: Duration = Duration::from_secs(5);

/// What all requests to other nodes need.
pub(crate) struct Caller {
    /// The engine, which knows the version of the ring.
    pub(crate) kv: Kv,
    pub(crate) transport: Peers,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) liveness: Arc<dyn Liveness>,
    pub(crate) counters: Arc<ReplicaCounters>,
    /// What is known about the other nodes, if this node detects failures.
    pub(crate) failure_detector: Option<Arc<FailureDetector>>,
}

impl Caller {
    /// Watches these members for failures.
    pub(crate) fn watch(&self, members: &[Member]) {
        if let Some(failure_detector) = &self.failure_detector {
            failure_detector.set_members(members.iter().map(|member| member.id).collect());
        }
    }
}

/// The replicas of another node.
#[derive(Clone)]
pub struct RemoteReplica {
    node: NodeId,
    caller: Arc<Caller>,
}

impl RemoteReplica {
    pub(crate) fn new(node: NodeId, caller: Arc<Caller>) -> Self {
        Self { node, caller }
    }

    /// Sends a request and decodes its answer.
    fn ask<T: Send + 'static, E: Send + 'static>(
        &self,
        service: u16,
        (ring, body): (RingVersion, Body),
        deadline: Option<Instant>,
        decode: fn(&Bytes) -> Result<T, Malformed>,
        failures: Failures<E>,
    ) -> BoxFuture<'static, Result<T, E>> {
        self.ask_on(way_of(&body), service, (ring, body), (None, deadline), decode, failures)
    }

    /// Sends a request that nobody waits for, over the connection for transfers.
    pub(crate) fn ask_in_bulk<T: Send + 'static>(
        &self,
        service: u16,
        body: Body,
        answer_max: Option<Duration>,
        decode: fn(&Bytes) -> Result<T, Malformed>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let stamped = (known_version(&self.caller.kv), body);
        let deadline = answer_max.map(|answer_max| self.caller.runtime.now() + answer_max);
        self.ask_on((Lane::Bulk, Priority::Bulk), service, stamped, (None, deadline), decode, ERRORS)
    }

    /// Sends a request that must have left at a time before its deadline. It is on its way when
    /// this returns, so that the future holds only what the answer needs.
    fn ask_on<T: Send + 'static, E: Send + 'static>(
        &self,
        (lane, priority): (Lane, Priority),
        service: u16,
        (ring, body): (RingVersion, Body),
        (send_by, deadline): (Option<Instant>, Option<Instant>),
        decode: fn(&Bytes) -> Result<T, Malformed>,
        failures: Failures<E>,
    ) -> BoxFuture<'static, Result<T, E>> {
        let mut watched = Watched::begin(self.clone());
        let Self { node, caller } = self;
        let deadline = deadline.unwrap_or_else(|| watched.began + WITHOUT_DEADLINE);
        let outgoing = Outgoing { lane, service, priority, ring, age: Duration::ZERO, deadline, body };
        let call = caller.transport.begin_call(*node, outgoing, send_by.unwrap_or(deadline), watched.began);
        // A put whose answer is too large was executed nevertheless.
        let is_read = service == READ.number;
        Box::pin(async move {
            let response = call.await;
            watched.outcome = outcome_of(&response);
            let RemoteReplica { node, caller } = &watched.replica;
            let answer = response.map_err(|failure| (failures.of_call)(*node, failure))?;
            let answer = if is_read { caller.kv.hold_memory(answer).map_err(failures.of_answer)? } else { answer };
            decode(&answer).map_err(|why| (failures.of_answer)(undecodable(*node, &why.to_string())))
        })
    }
}

impl ConditionalClient for RemoteReplica {
    fn promise(&self, request: PromiseRequest) -> BoxFuture<'static, Result<PromiseReply, Error>> {
        self.ask(
            PROMISE.number,
            (stamp(request.ring), encode_promise_request(&request)),
            request.deadline,
            decode_promise_reply,
            ERRORS,
        )
    }
}

impl RemoteReplica {
    /// Asks a question of a round of reaping.
    pub(super) fn ask_for_round<T: Send + 'static>(
        &self,
        message: Body,
        decode: fn(&Bytes) -> Result<T, Malformed>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        self.ask_primary(REAPING.number, message, decode)
    }

    /// Asks a question of a service about reaping, which a node answers soon or not at all.
    pub(super) fn ask_primary<T: Send + 'static>(
        &self,
        service: u16,
        message: Body,
        decode: fn(&Bytes) -> Result<T, Malformed>,
    ) -> BoxFuture<'static, Result<T, Error>> {
        let deadline = self.caller.runtime.now() + ROUND_ANSWER_MAX;
        let stamped = (known_version(&self.caller.kv), message);
        self.ask(service, stamped, Some(deadline), decode, ERRORS)
    }
}

/// What the failures of a request become.
#[derive(Clone, Copy)]
struct Failures<E> {
    of_call: fn(NodeId, PeerError) -> E,
    of_answer: fn(Error) -> E,
}

const ERRORS: Failures<Error> = Failures { of_call: error_of, of_answer: |error| error };
const PUT_FAILURES: Failures<PutFailure> = Failures { of_call: put_failure_of, of_answer: PutFailure::Ended };

/// The way of a request that somebody waits for.
fn way_of(body: &Body) -> (Lane, Priority) {
    (if body.len() < BULK_LANE_BYTES_MIN { Lane::Requests } else { Lane::Bulk }, Priority::Request)
}

/// The version of the placement that a node knows.
pub(crate) fn known_version(kv: &Kv) -> RingVersion {
    stamp(kv.placement_version())
}

/// A version as it travels in the header of the transport.
const fn stamp(version: ombak_ring::RingVersion) -> RingVersion {
    RingVersion { lineage: version.lineage, number: version.number }
}

impl ReplicaClient for RemoteReplica {
    fn read(&self, read: ReplicaRead) -> BoxFuture<'static, Result<ReadReply, Error>> {
        count(&self.caller.counters.reads_sent);
        self.ask(READ.number, (stamp(read.ring), encode_replica_read(&read)), read.deadline, decode_read_reply, ERRORS)
    }

    fn store(&self, store: ReplicaStore) -> BoxFuture<'static, Result<StoreReply, Error>> {
        count(&self.caller.counters.stores_sent);
        self.ask(
            STORE.number,
            (stamp(store.ring), encode_replica_store(&store)),
            store.deadline,
            decode_store_reply,
            ERRORS,
        )
    }

    fn coordinate(&self, put: ForwardedPut) -> BoxFuture<'static, Result<PutReply, PutFailure>> {
        count(&self.caller.counters.puts_forwarded);
        let ForwardedPut { number, request, begin_by, deadline } = put;
        let deadline = deadline.unwrap_or_else(|| self.caller.runtime.now() + WITHOUT_DEADLINE);
        let begins_before = begin_by.map(|begin_by| deadline.saturating_duration_since(begin_by));
        let message = encode_forwarded_put(&ForwardedMessage { number, begins_before, request });
        let times = (begin_by, Some(deadline));
        let stamped = (known_version(&self.caller.kv), message);
        self.ask_on(way_of(&stamped.1), COORDINATE.number, stamped, times, decode_put_reply, PUT_FAILURES)
    }
}

/// A request that the failure detection hears of, however it ends.
struct Watched {
    replica: RemoteReplica,
    began: Instant,
    outcome: RequestOutcome,
}

impl Watched {
    fn begin(replica: RemoteReplica) -> Self {
        let RemoteReplica { node, caller } = &replica;
        caller.liveness.began(*node);
        let began = caller.runtime.now();
        Self { replica, began, outcome: RequestOutcome::Abandoned }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let RemoteReplica { node, caller } = &self.replica;
        let took = caller.runtime.now().saturating_duration_since(self.began);
        caller.liveness.ended(*node, self.outcome, took);
    }
}
