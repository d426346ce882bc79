//! Services: what a node does for its peers.

use super::shared::{NodeClock, Shared};
use crate::error::RefusalCode;
use crate::frame::{AnswerStatus, Priority, StreamId};
use crate::handshake::RemotePeer;
use crate::identity::RingVersion;
use crate::mux::{ArrivedRequest, Body, ItemRefused};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Serves the requests of one number.
pub trait Service: Send + Sync {
    /// Serves a request. It runs on the task of the connection, so it must be quick: what waits or
    /// computes for long moves `answer` elsewhere and returns.
    fn handle(&self, request: Incoming, answer: Responder);
}

impl<F: Fn(Incoming, Responder) + Send + Sync> Service for F {
    fn handle(&self, request: Incoming, answer: Responder) {
        self(request, answer);
    }
}

/// Two services have one number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the services {first} and {second} both have the number {number}")]
pub struct TwoServices {
    number: u16,
    first: &'static str,
    second: &'static str,
}

/// The services of a node.
#[derive(Clone, Default)]
pub struct Services {
    services: BTreeMap<u16, (&'static str, Arc<dyn Service>)>,
}

impl Services {
    /// Registers a service under its number. The name is for messages to people.
    pub fn register(&mut self, number: u16, name: &'static str, service: Arc<dyn Service>) -> Result<(), TwoServices> {
        match self.services.insert(number, (name, service)) {
            None => Ok(()),
            Some((first, _)) => Err(TwoServices { number, first, second: name }),
        }
    }

    pub(super) fn get(&self, number: u16) -> Option<&dyn Service> {
        self.services.get(&number).map(|(_, service)| &**service)
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.services.iter().map(|(number, (name, _))| (number, name))).finish()
    }
}

/// What all requests that arrive over one connection share.
pub(super) struct Origin {
    peer: RemotePeer,
    clock: Arc<NodeClock>,
    lifetime_us: i64,
}

impl Origin {
    pub(super) const fn new(peer: RemotePeer, clock: Arc<NodeClock>, lifetime_us: i64) -> Self {
        Self { peer, clock, lifetime_us }
    }
}

/// A request of a peer.
#[derive(Clone)]
pub struct Incoming {
    request: ArrivedRequest,
    origin: Arc<Origin>,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("peer", &self.origin.peer.identity.node)
            .field("request", &self.request)
            .finish()
    }
}

impl Incoming {
    pub(super) const fn new(request: ArrivedRequest, origin: Arc<Origin>) -> Self {
        Self { request, origin }
    }

    /// The peer.
    pub fn peer(&self) -> &RemotePeer {
        &self.origin.peer
    }

    /// How urgent the request is.
    pub const fn priority(&self) -> Priority {
        self.request.priority
    }

    /// The version of the ring that the sender acted on.
    pub const fn ring(&self) -> RingVersion {
        self.request.ring
    }

    /// The body. A small one shares its memory with what was read together with it: copy it before
    /// keeping it for longer than the request.
    pub const fn body(&self) -> &Bytes {
        &self.request.body
    }

    /// Whether the sender asked for a streamed answer.
    pub const fn wants_items(&self) -> bool {
        self.request.window_bytes > 0
    }

    /// The age of the request now. It is never too low, wherever the request lay meanwhile
    /// (docs/design/replication.md §6).
    pub fn age(&self) -> Duration {
        let age_us = self.origin.clock.now_us().saturating_sub(self.request.born_us);
        Duration::from_micros(u64::try_from(age_us).unwrap_or(0))
    }

    /// When the sender's deadline passes, at the earliest.
    pub fn deadline(&self) -> Instant {
        self.origin.clock.instant_of(self.request.deadline_us)
    }

    /// From when on the request may not have an effect any more: when its deadline or its lifetime
    /// passes, whichever comes first.
    pub fn expires_at(&self) -> Instant {
        let lifetime_ends_us = self.request.born_us.saturating_add(self.origin.lifetime_us).saturating_add(1);
        self.origin.clock.instant_of(self.request.deadline_us.min(lifetime_ends_us))
    }

    /// Whether the request may not have an effect any more: its deadline or its lifetime has
    /// passed. A service that creates data asks immediately before it does
    /// (docs/design/replication.md §12).
    pub fn has_expired(&self) -> bool {
        let now_us = self.origin.clock.now_us();
        now_us >= self.request.deadline_us || now_us.saturating_sub(self.request.born_us) > self.origin.lifetime_us
    }
}

/// Takes the answer to one request. If it is dropped without an answer, the caller learns that the
/// answer is lost.
pub struct Responder {
    shared: Arc<Shared>,
    stream: StreamId,
    has_answered: bool,
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Responder").field(&self.stream).finish()
    }
}

impl Responder {
    pub(super) const fn new(shared: Arc<Shared>, stream: StreamId) -> Self {
        Self { shared, stream, has_answered: false }
    }

    /// Answers. After the items of a streamed answer, this ends it.
    pub fn answer(self, body: impl Into<Body>) {
        self.end(AnswerStatus::Done, body.into());
    }

    /// Refuses with a code of the service.
    pub fn refuse(self, code: RefusalCode, detail: impl Into<Body>) {
        self.end(AnswerStatus::Refused(code), detail.into());
    }

    /// Refuses because a queue is full. The request must not have been executed.
    pub fn overload(self) {
        self.end(AnswerStatus::Overload, Body::new());
    }

    /// Says whether nobody waits for the answer any more, also to work on another thread.
    pub fn watch(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let (shared, stream) = (Arc::clone(&self.shared), self.stream);
        Arc::new(move || shared.is_cancelled(stream))
    }

    /// Whether nobody waits for the answer any more.
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled(self.stream)
    }

    /// Sends an item of a streamed answer. Waits until the caller has room for it.
    pub async fn send_item(&mut self, item: impl Into<Body>) -> Result<(), ItemRefused> {
        let item = item.into();
        poll_fn(|cx| self.shared.poll_send_item(self.stream, &item, cx)).await
    }

    fn end(mut self, status: AnswerStatus, body: Body) {
        self.has_answered = true;
        self.shared.answer(self.stream, status, body);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.has_answered {
            self.shared.answer(self.stream, AnswerStatus::Lost, Body::new());
        }
    }
}
