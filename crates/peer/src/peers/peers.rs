//! The connections of one node.

use super::accept::{Accepted, accept_loop};
use super::config::PeersConfig;
use super::establish::{Proved, establish};
use super::links::{Found, Links};
use crate::connection::{Driver, DriverParts, ItemStream, NodeClock, Services, Shared};
use crate::counters::{PeerCounters, PeerCounts};
use crate::error::PeerError;
use crate::frame::{GoodbyeReason, Priority};
use crate::handshake::{Handshake, HandshakeError, LocalPeer};
use crate::identity::{Lane, RingVersion};
use crate::mux::{Body, InvalidConfig, Mux, Request, Response, Side};
use crate::sessions::{Admission, LiveSession, Sessions};
use ombak_runtime::{Listener, Network, Runtime, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

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
    /// Which connection it takes.
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
    pub(super) local: LocalPeer,
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

    /// Sends a request and waits for its answer. Dropping the future cancels the request on both
    /// sides.
    pub async fn call(&self, to: NodeId, outgoing: Outgoing) -> Response {
        let born_us = self.inner.born_us(&outgoing);
        let counters = self.inner.links.lock().counters(to);
        let response = match self.inner.connection(to, &outgoing).await {
            Ok(shared) => match shared.call(self.inner.request(outgoing, born_us, 0)) {
                Ok(call) => call.await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        counters.called(&response);
        response
    }

    /// Sends a request whose answer is a stream of items. The peer sends at most `window_bytes`
    /// ahead of what was consumed, and an item has at most half of that.
    pub async fn call_streamed(
        &self,
        to: NodeId,
        outgoing: Outgoing,
        window_bytes: usize,
    ) -> Result<ItemStream, PeerError> {
        let born_us = self.inner.born_us(&outgoing);
        let counters = self.inner.links.lock().counters(to);
        let opened = match self.inner.connection(to, &outgoing).await {
            Ok(shared) => shared.call_streamed(self.inner.request(outgoing, born_us, window_bytes.max(1))),
            Err(error) => Err(error),
        };
        counters.called(&opened);
        opened
    }

    /// The process that this node has connections with under a node id, in either direction.
    pub fn live_session(&self, of: NodeId) -> Option<LiveSession> {
        self.inner.sessions.of(of).map(|(_, live)| live)
    }

    /// Whether this node and a connected peer both have a capability.
    pub fn shares(&self, with: NodeId, capability: &str) -> bool {
        let peer = self.inner.sessions.of(with);
        peer.is_some_and(|(identity, _)| self.inner.local.identity.shares(&identity, capability))
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
    pub(super) fn runtime(&self) -> &Arc<dyn Runtime> {
        self.clock.runtime()
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    fn born_us(&self, outgoing: &Outgoing) -> i64 {
        let age_us = i64::try_from(outgoing.age.as_micros()).unwrap_or(i64::MAX);
        self.clock.now_us().saturating_sub(age_us)
    }

    fn request(&self, outgoing: Outgoing, born_us: i64, window_bytes: usize) -> Request {
        Request {
            service: outgoing.service,
            priority: outgoing.priority,
            ring: outgoing.ring,
            born_us,
            deadline_us: self.clock.us_of(outgoing.deadline),
            window_bytes,
            body: outgoing.body,
        }
    }

    /// The connection for a request. If there is none, one is opened, and the request waits for
    /// that; it has not been queued anywhere by then.
    async fn connection(self: &Arc<Self>, to: NodeId, outgoing: &Outgoing) -> Result<Arc<Shared>, PeerError> {
        if self.is_stopping() {
            return Err(PeerError::Unreachable);
        }
        let now = self.runtime().now();
        let found = self.links.lock().find(to, outgoing.lane, now, self.config.waiting_max)?;
        let mut opening = match found {
            Found::Up(shared) => return Ok(shared),
            Found::Opening(opening) => opening,
            Found::Open(address, done, opening) => {
                let opens = Arc::clone(self).open(to, outgoing.lane, address, done);
                self.runtime().spawn(Box::pin(opens));
                opening
            }
        };
        // The sender sends nothing: it is dropped when the attempt has ended.
        let waited = within(&**self.runtime(), Some(outgoing.deadline), opening.changed()).await;
        if waited.is_err() {
            return Err(PeerError::Unreachable);
        }
        self.links.lock().connected(to, outgoing.lane)
    }

    /// Opens a connection and runs it.
    async fn open(self: Arc<Self>, to: NodeId, lane: Lane, address: SocketAddr, done: watch::Sender<()>) {
        let give_up_at = self.runtime().now() + self.config.connect_max;
        let connecting = within(&**self.runtime(), Some(give_up_at), self.connect(to, lane, address)).await;
        let proved = match connecting.unwrap_or(Err(ConnectFailure::Handshake(HandshakeError::TooSlow))) {
            Ok(proved) => proved,
            Err(failure) => {
                tracing::info!(peer = %to, %address, %failure, "no connection to a peer");
                self.down(to, lane, failure.as_peer_error());
                drop(done);
                return;
            }
        };
        let counters = self.links.lock().counters(to);
        let (driver, shared) = self.driver(proved, Side::Initiator, counters);
        let is_wanted = {
            let mut links = self.links.lock();
            links.up(to, lane, Arc::clone(&shared));
            links.address(to) == Some(address)
        };
        if !is_wanted || self.is_stopping() {
            shared.say_goodbye(GoodbyeReason::Replaced, "the connection is not needed any more");
        }
        drop(done);
        let end = driver.run().await;
        tracing::info!(peer = %to, %address, %end, "a connection to a peer has ended");
        self.down(to, lane, PeerError::Unreachable);
    }

    fn down(&self, to: NodeId, lane: Lane, error: PeerError) {
        let now = self.runtime().now();
        self.links.lock().down(to, lane, error, now, &self.config);
    }

    async fn connect(&self, to: NodeId, lane: Lane, address: SocketAddr) -> Result<Proved, ConnectFailure> {
        let stream = self.network.connect(address).await?;
        let handshake = Handshake::initiator(self.local.clone(), Some(to), lane, self.nonce()?);
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
        let shared = Arc::new(Shared::new(mux));
        let driver = Driver::new(DriverParts {
            stream: proved.stream,
            arrived: proved.arrived,
            shared: Arc::clone(&shared),
            services: Arc::clone(&self.services),
            peer: Arc::new(proved.established.peer),
            clock: Arc::clone(&self.clock),
            lifetime_us: self.config.mux.lifetime_us,
            counters,
            ticket: proved.ticket,
        });
        (driver, shared)
    }

    pub(super) fn counters(&self, node: NodeId) -> Arc<PeerCounters> {
        self.links.lock().counters(node)
    }
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
