//! The connections of one node.

use super::accept::{Accepted, accept_loop};
use super::config::PeersConfig;
use super::establish::{Proved, establish};
use super::links::{Found, Links};
use super::pending_call::PendingCall;
use crate::connection::{Driver, DriverParts, ItemStream, NodeClock, Services, Shared};
use crate::counters::{PeerCounters, PeerCounts};
use crate::error::PeerError;
use crate::frame::{GoodbyeReason, Priority};
use crate::handshake::{Handshake, HandshakeError, LocalPeer};
use crate::identity::{Channel, Lane, NodeIdentity, RingVersion};
use crate::mux::{Body, InvalidConfig, Mux, Request, Response, Side};
use crate::sessions::{Admission, LiveSession, Sessions};
use ombak_runtime::{Listener, Network, Runtime, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// What the connections of a node are made of.
pub struct PeersParts {
    /// Time, randomness and tasks.
    pub runtime: Arc<dyn Runtime>,
    /// Sockets.
    pub network: Arc<dyn Network>,
    /// Who this node is, and the cluster's secret.
    pub local: LocalPeer,
    /// What this node does for its peers.
    pub services: Services,
    /// Which peers are let in.
    pub admission: Arc<dyn Admission>,
    /// Limits and times.
    pub config: PeersConfig,
}

/// A request to a peer.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Which lane it takes, over the connection of the calling thread.
    pub lane: Lane,
    /// The number of the service.
    pub service: u16,
    /// How urgent it is.
    pub priority: Priority,
    /// The version of the ring that the caller acts on.
    pub ring: RingVersion,
    /// How old the request is already. It is not zero for a request that this node forwards.
    pub age: Duration,
    /// When nobody needs the answer any more.
    pub deadline: Instant,
    /// The body.
    pub body: Body,
}

/// The connections of one node. It is cheap to clone.
#[derive(Clone)]
pub struct Peers {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) clock: Arc<NodeClock>,
    network: Arc<dyn Network>,
    local: LocalPeer,
    /// The id of the node's cluster. It changes when the node joins one.
    cluster: AtomicU64,
    services: Arc<Services>,
    pub(super) sessions: Sessions,
    pub(super) config: PeersConfig,
    links: Mutex<Links>,
    pub(super) accepted: Mutex<Accepted>,
    /// Becomes true when the node stops.
    stop: watch::Sender<bool>,
}

impl Peers {
    /// Begins without connections.
    pub fn new(parts: PeersParts) -> Result<Self, InvalidConfig> {
        parts.config.check()?;
        let inner = Inner {
            clock: Arc::new(NodeClock::new(parts.runtime)),
            network: parts.network,
            cluster: AtomicU64::new(parts.local.identity.cluster),
            local: parts.local,
            services: Arc::new(parts.services),
            sessions: Sessions::new(parts.admission),
            config: parts.config,
            links: Mutex::default(),
            accepted: Mutex::default(),
            stop: watch::Sender::new(false),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Listens for peers until [`Peers::stop`]. Returns the address, of which port 0 has become a
    /// real port.
    pub fn listen(&self, on: SocketAddr) -> io::Result<SocketAddr> {
        let listener: Box<dyn Listener> = self.inner.network.listen(on)?;
        let address = listener.local_address()?;
        let accepting = accept_loop(Arc::clone(&self.inner), listener, self.inner.stop.subscribe());
        self.inner.runtime().spawn(Box::pin(accepting));
        Ok(address)
    }

    /// Sets the id of the cluster that later handshakes tell. 0: the node belongs to none.
    pub fn set_cluster(&self, cluster: u64) {
        self.inner.cluster.store(cluster, Ordering::SeqCst);
    }

    /// Sets the address at which a peer listens. Connections to another address are closed.
    pub fn set_address(&self, node: NodeId, address: SocketAddr) {
        self.change_address(node, Some(address));
    }

    /// Forgets the address of a peer and closes the connections to it. Requests to it fail from now
    /// on. Its own connections stay.
    pub fn forget_address(&self, node: NodeId) {
        self.change_address(node, None);
    }

    fn change_address(&self, node: NodeId, address: Option<SocketAddr>) {
        let old = self.inner.links.lock().set_address(node, address);
        for shared in old {
            shared.say_goodbye(GoodbyeReason::Replaced, "the address of the peer has changed");
        }
    }

    /// Asks the node that listens on an address who it is. Nothing else is asked of it: for a node
    /// that is known by its address only.
    pub async fn identify(&self, address: SocketAddr, deadline: Instant) -> Result<NodeIdentity, IdentifyError> {
        let connecting = self.inner.connect(None, Lane::Bulk.into(), address);
        match within(&**self.inner.runtime(), Some(deadline), connecting).await {
            // The connection ends here, before any request.
            Ok(Ok(proved)) => Ok(proved.established.peer.identity),
            Ok(Err(ConnectFailure::Io(error))) => Err(IdentifyError::Unreachable(error)),
            Ok(Err(ConnectFailure::Handshake(error))) => Err(IdentifyError::Handshake(error)),
            Err(_) => Err(IdentifyError::Unreachable(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request on both
    /// sides.
    pub async fn call(&self, to: NodeId, outgoing: Outgoing) -> Response {
        let send_by = outgoing.deadline;
        self.call_sent_by(to, outgoing, send_by).await
    }

    /// Like [`Peers::call`], but a request that has not left as a whole at `send_by` ends with
    /// [`PeerError::Unreachable`], so that the caller can ask another node before the deadline.
    pub async fn call_sent_by(&self, to: NodeId, outgoing: Outgoing, send_by: Instant) -> Response {
        let now = self.inner.runtime().now();
        self.begin_call(to, outgoing, send_by, now).await
    }

    /// Like [`Peers::call_sent_by`], but the request is on its way when this returns, if there is a
    /// connection. `now` is the present moment.
    pub fn begin_call(&self, to: NodeId, outgoing: Outgoing, send_by: Instant, now: Instant) -> PendingCall {
        let inner = &self.inner;
        let born_us = inner.born_us(&outgoing, now);
        let channel = Channel::of(outgoing.lane, inner.runtime().thread_number());
        let open = inner.links.lock().open_channel(to, channel);
        match open {
            Some(shared) => match shared.call(inner.request(outgoing, born_us, send_by, 0)) {
                Ok(call) => PendingCall::sent(call),
                Err(error) => {
                    shared.counters().called::<()>(&Err(error.clone()));
                    PendingCall::ended(Err(error))
                }
            },
            None => {
                let inner = Arc::clone(inner);
                PendingCall::other(Box::pin(
                    async move { inner.connect_and_call(to, outgoing, send_by, born_us).await },
                ))
            }
        }
    }

    /// Sends a request whose answer is a stream of items. The peer sends at most `window_bytes`
    /// ahead of what was consumed, and an item has at most half of that.
    pub async fn call_streamed(
        &self,
        to: NodeId,
        outgoing: Outgoing,
        window_bytes: usize,
    ) -> Result<ItemStream, PeerError> {
        let born_us = self.inner.born_us(&outgoing, self.inner.runtime().now());
        let counters = self.inner.links.lock().counters(to);
        let send_by = outgoing.deadline;
        let opened = match self.inner.connection(to, &outgoing, send_by).await {
            Ok(shared) => shared.call_streamed(self.inner.request(outgoing, born_us, send_by, window_bytes.max(1))),
            Err(error) => Err(error),
        };
        counters.called(&opened);
        opened
    }

    /// The process that this node has connections with under a node id, in either direction.
    pub fn live_session(&self, of: NodeId) -> Option<LiveSession> {
        self.inner.sessions.of(of).map(|(_, live)| live)
    }

    /// Whether this node has a capability itself.
    pub fn offers(&self, capability: &str) -> bool {
        self.inner.local.identity.capabilities.contains(capability)
    }

    /// Whether this node and a connected peer both have a capability.
    pub fn shares(&self, with: NodeId, capability: &str) -> bool {
        let peer = self.inner.sessions.of(with);
        peer.is_some_and(|(identity, _)| self.inner.local.identity.shares(&identity, capability))
    }

    /// Whether a node has said that it has a capability: the connected process, or the last one of
    /// which this node knows. `None` if nothing is known of it.
    pub fn has_said(&self, node: NodeId, capability: &str) -> Option<bool> {
        self.inner.sessions.has_said(node, capability)
    }

    /// How many requests of peers are arriving or being executed. A node that stops waits until
    /// there are none, or until its patience ends.
    pub fn serving(&self) -> usize {
        let accepted = self.inner.accepted.lock().open();
        accepted.iter().map(|shared| shared.serving()).sum()
    }

    /// The counters of all peers.
    pub fn counts(&self) -> BTreeMap<NodeId, PeerCounts> {
        self.inner.links.lock().all_counters().map(|(node, counters)| (node, counters.counts())).collect()
    }

    /// Stops listening and says goodbye on every connection. Requests that are under way end as
    /// their connections do, so the caller lets services finish first.
    pub fn stop(&self) {
        self.inner.stop.send_replace(true);
        let mut open = self.inner.links.lock().open();
        open.extend(self.inner.accepted.lock().open());
        for shared in open {
            shared.say_goodbye(GoodbyeReason::ShuttingDown, "the node is shutting down");
        }
    }
}

impl Inner {
    /// What this node brings to a handshake that begins now.
    pub(super) fn local(&self) -> LocalPeer {
        let mut local = self.local.clone();
        local.identity.cluster = self.cluster.load(Ordering::SeqCst);
        local
    }

    pub(super) fn runtime(&self) -> &Arc<dyn Runtime> {
        self.clock.runtime()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    fn born_us(&self, outgoing: &Outgoing, now: Instant) -> i64 {
        let age_us = i64::try_from(outgoing.age.as_micros()).unwrap_or(i64::MAX);
        self.clock.us_of(now).saturating_sub(age_us)
    }

    /// Sends a request over a connection that is not open yet.
    async fn connect_and_call(
        self: &Arc<Self>,
        to: NodeId,
        outgoing: Outgoing,
        send_by: Instant,
        born_us: i64,
    ) -> Response {
        let counters = self.counters(to);
        let response = match self.connection(to, &outgoing, send_by).await {
            Ok(shared) => match shared.call(self.request(outgoing, born_us, send_by, 0)) {
                Ok(call) => call.await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        counters.called(&response);
        response
    }

    fn request(&self, outgoing: Outgoing, born_us: i64, send_by: Instant, window_bytes: usize) -> Request {
        let deadline_us = self.clock.us_of(outgoing.deadline);
        Request {
            service: outgoing.service,
            priority: outgoing.priority,
            ring: outgoing.ring,
            born_us,
            send_by_us: if send_by == outgoing.deadline { deadline_us } else { self.clock.us_of(send_by) },
            deadline_us,
            window_bytes,
            body: outgoing.body,
        }
    }

    /// The connection for a request. If there is none, one is opened, and the request waits for
    /// that; it has not been queued anywhere by then.
    async fn connection(
        self: &Arc<Self>,
        to: NodeId,
        outgoing: &Outgoing,
        send_by: Instant,
    ) -> Result<Arc<Shared>, PeerError> {
        if self.is_stopping() {
            return Err(PeerError::Unreachable);
        }
        let (now, channel) = (self.runtime().now(), Channel::of(outgoing.lane, self.runtime().thread_number()));
        let found = self.links.lock().find(to, channel, now, self.config.waiting_max)?;
        let opening = match found {
            Found::Up(shared) => return Ok(shared),
            Found::Opening(opening) => opening,
            Found::Open(address, done, opening) => {
                let opens = Arc::clone(self).open(to, channel, address, done);
                self.runtime().spawn(Box::pin(opens));
                opening
            }
        };
        // The sender sends nothing: it is dropped when the attempt has ended.
        let give_up_at = outgoing.deadline.min(send_by);
        let waited = within(&**self.runtime(), Some(give_up_at), opening).await;
        if waited.is_err() {
            return Err(PeerError::Unreachable);
        }
        self.links.lock().connected(to, channel)
    }

    /// Opens a connection and runs it.
    async fn open(self: Arc<Self>, to: NodeId, channel: Channel, address: SocketAddr, done: oneshot::Sender<()>) {
        let give_up_at = self.runtime().now() + self.config.connect_max;
        let connecting = within(&**self.runtime(), Some(give_up_at), self.connect(Some(to), channel, address)).await;
        let proved = match connecting.unwrap_or(Err(ConnectFailure::Handshake(HandshakeError::TooSlow))) {
            Ok(proved) => proved,
            Err(failure) => {
                tracing::info!(peer = %to, %address, %failure, "no connection to a peer");
                let now = self.runtime().now();
                self.links.lock().failed((to, address), channel, failure.as_peer_error(), now, &self.config);
                drop(done);
                return;
            }
        };
        let counters = self.links.lock().counters(to);
        let (driver, shared) = self.driver(proved, Side::Initiator, counters);
        let is_wanted = self.links.lock().up(to, channel, address, Arc::clone(&shared));
        if !is_wanted || self.is_stopping() {
            shared.say_goodbye(GoodbyeReason::Replaced, "the connection is not needed any more");
        }
        drop(done);
        let end = driver.run().await;
        tracing::info!(peer = %to, %address, %end, "a connection to a peer has ended");
        let now = self.runtime().now();
        self.links.lock().ended(to, channel, &shared, now, &self.config);
    }

    async fn connect(
        &self,
        to: Option<NodeId>,
        channel: Channel,
        address: SocketAddr,
    ) -> Result<Proved, ConnectFailure> {
        let stream = self.network.connect(address).await?;
        let handshake = Handshake::initiator(self.local(), to, channel, self.nonce()?);
        let handshake = handshake.with_first_words(self.sessions.first_words());
        Ok(establish(stream, handshake, &self.sessions, &self.clock).await?)
    }

    pub(super) fn nonce(&self) -> Result<[u8; 32], ConnectFailure> {
        let mut nonce = [0; 32];
        self.runtime().fill_random(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(nonce)
    }

    /// The driver of a connection whose peer is known, and its shared part.
    pub(super) fn driver(&self, proved: Proved, side: Side, counters: Arc<PeerCounters>) -> (Driver, Arc<Shared>) {
        counters.connected();
        let mux = Mux::new(side, &self.config.mux, proved.established.clock, self.clock.now_us());
        let shared = Arc::new(Shared::new(mux, counters));
        let driver = Driver::new(DriverParts {
            stream: proved.stream,
            arrived: proved.arrived,
            shared: Arc::clone(&shared),
            services: Arc::clone(&self.services),
            peer: proved.established.peer,
            clock: Arc::clone(&self.clock),
            lifetime_us: self.config.mux.lifetime_us,
            ticket: proved.ticket,
        });
        (driver, shared)
    }

    pub(super) fn counters(&self, node: NodeId) -> Arc<PeerCounters> {
        self.links.lock().counters(node)
    }
}

/// Why a node could not be asked who it is.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    /// Nothing answers at the address.
    #[error(transparent)]
    Unreachable(io::Error),
    /// What answers is no node, does not know the secret, or refuses this node.
    #[error(transparent)]
    Handshake(HandshakeError),
}

/// Why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectFailure {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

impl ConnectFailure {
    const fn as_peer_error(&self) -> PeerError {
        match self {
            Self::Handshake(HandshakeError::NoCommonVersion { .. }) => PeerError::VersionMismatch,
            Self::Handshake(_) | Self::Io(_) => PeerError::Unreachable,
        }
    }
}
