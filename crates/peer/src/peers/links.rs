//! The connections that this node has opened, or would open.

use super::config::PeersConfig;
use crate::connection::Shared;
use crate::counters::PeerCounters;
use crate::error::PeerError;
use crate::identity::Channel;
use futures_util::future::{self, FutureExt};
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Ends when an attempt to open a connection has ended. Those who wait for it wake in the order in
/// which they began to wait, so that a simulation can repeat it.
pub(super) type Opening = future::Shared<oneshot::Receiver<()>>;

/// One connection to one peer.
enum Link {
    /// There is none.
    Down,
    /// It is being opened. The sender is dropped when that has ended.
    Opening(Opening),
    Up(Arc<Shared>),
}

/// One channel to one peer.
struct ChannelState {
    link: Link,
    /// How many requests have begun to wait for the connection that is being opened.
    waiting: usize,
    failures: u32,
    not_before: Option<Instant>,
    last_error: PeerError,
}

impl ChannelState {
    const fn new() -> Self {
        Self { link: Link::Down, waiting: 0, failures: 0, not_before: None, last_error: PeerError::Unreachable }
    }
}

struct Node {
    address: Option<SocketAddr>,
    /// By their codes. Channels that were never used are missing.
    channels: BTreeMap<u8, ChannelState>,
    counters: Arc<PeerCounters>,
}

impl Node {
    fn channel(&mut self, channel: Channel) -> &mut ChannelState {
        self.channels.entry(channel.code()).or_insert_with(ChannelState::new)
    }
}

/// What a request to a peer finds.
pub(super) enum Found {
    /// A connection.
    Up(Arc<Shared>),
    /// A connection that is being opened.
    Opening(Opening),
    /// Nothing: the caller opens a connection to this address, and drops the sender at the end.
    Open(SocketAddr, oneshot::Sender<()>, Opening),
}

/// The addresses of all peers, and the connections to them.
#[derive(Default)]
pub(super) struct Links {
    nodes: BTreeMap<NodeId, Node>,
}

impl Links {
    fn node(&mut self, node: NodeId) -> &mut Node {
        self.nodes.entry(node).or_insert_with(|| Node {
            address: None,
            channels: BTreeMap::new(),
            counters: Arc::default(),
        })
    }

    pub(super) fn counters(&mut self, node: NodeId) -> Arc<PeerCounters> {
        Arc::clone(&self.node(node).counters)
    }

    /// The connection of a channel, if it is open.
    pub(super) fn open_channel(&self, to: NodeId, channel: Channel) -> Option<Arc<Shared>> {
        match &self.nodes.get(&to)?.channels.get(&channel.code())?.link {
            Link::Up(shared) if !shared.is_closed() => Some(Arc::clone(shared)),
            _ => None,
        }
    }

    pub(super) fn all_counters(&self) -> impl Iterator<Item = (NodeId, &PeerCounters)> {
        self.nodes.iter().map(|(id, node)| (*id, &*node.counters))
    }

    /// Changes the address of a peer. Returns the connections that lead to the old one. No request
    /// finds them any more.
    pub(super) fn set_address(&mut self, node: NodeId, address: Option<SocketAddr>) -> Vec<Arc<Shared>> {
        let node = self.node(node);
        if std::mem::replace(&mut node.address, address) == address {
            return Vec::new();
        }
        let mut old = Vec::new();
        for channel in node.channels.values_mut() {
            channel.not_before = None;
            if let Some(shared) = up(channel) {
                channel.link = Link::Down;
                old.push(shared);
            }
        }
        old
    }

    /// All open connections.
    pub(super) fn open(&self) -> Vec<Arc<Shared>> {
        self.nodes.values().flat_map(|node| node.channels.values()).filter_map(up).collect()
    }

    /// What a request finds at `now`.
    pub(super) fn find(
        &mut self,
        to: NodeId,
        channel: Channel,
        now: Instant,
        waiting_max: usize,
    ) -> Result<Found, PeerError> {
        let node = self.nodes.get_mut(&to).ok_or(PeerError::Unreachable)?;
        let address = node.address.ok_or(PeerError::Unreachable)?;
        let state = node.channel(channel);
        match &state.link {
            Link::Up(shared) if !shared.is_closed() => return Ok(Found::Up(Arc::clone(shared))),
            // An attempt that was broken off, as by a panic, left this behind.
            Link::Opening(opening) if opening.clone().now_or_never().is_some() => {}
            Link::Opening(_) if state.waiting >= waiting_max => return Err(PeerError::Overload),
            Link::Opening(opening) => {
                state.waiting += 1;
                return Ok(Found::Opening(opening.clone()));
            }
            Link::Up(_) | Link::Down => {}
        }
        if state.not_before.is_some_and(|not_before| now < not_before) {
            return Err(state.last_error.clone());
        }
        let (done, opening) = oneshot::channel();
        let opening = opening.shared();
        (state.link, state.waiting) = (Link::Opening(opening.clone()), 1);
        Ok(Found::Open(address, done, opening))
    }

    /// The connection after an attempt to open it has ended.
    pub(super) fn connected(&self, to: NodeId, channel: Channel) -> Result<Arc<Shared>, PeerError> {
        let node = self.nodes.get(&to).ok_or(PeerError::Unreachable)?;
        let state = node.channels.get(&channel.code()).ok_or(PeerError::Unreachable)?;
        up(state).ok_or_else(|| state.last_error.clone())
    }

    /// Notes that a connection to an address was opened. Returns whether it is still wanted: the
    /// peer may have another address by now.
    pub(super) fn up(&mut self, to: NodeId, channel: Channel, address: SocketAddr, shared: Arc<Shared>) -> bool {
        let node = self.node(to);
        let is_wanted = node.address == Some(address);
        let state = node.channel(channel);
        state.link = if is_wanted { Link::Up(shared) } else { Link::Down };
        (state.failures, state.not_before) = (0, None);
        is_wanted
    }

    /// Notes that a connection has ended. One that another one has replaced changes nothing.
    pub(super) fn ended(
        &mut self,
        to: NodeId,
        channel: Channel,
        connection: &Arc<Shared>,
        now: Instant,
        config: &PeersConfig,
    ) {
        if up(self.node(to).channel(channel)).is_some_and(|current| Arc::ptr_eq(&current, connection)) {
            self.down(to, channel, PeerError::Unreachable, now, config);
        }
    }

    /// Notes that no connection to an address could be opened. If the peer has another address by
    /// now, the next request tries that one at once.
    pub(super) fn failed(
        &mut self,
        (to, address): (NodeId, SocketAddr),
        channel: Channel,
        error: PeerError,
        now: Instant,
        config: &PeersConfig,
    ) {
        self.down(to, channel, error, now, config);
        let node = self.node(to);
        if node.address != Some(address) {
            node.channel(channel).not_before = None;
        }
    }

    fn down(&mut self, to: NodeId, channel: Channel, error: PeerError, now: Instant, config: &PeersConfig) {
        let state = self.node(to).channel(channel);
        let pause = config.backoff_min.saturating_mul(1 << state.failures.min(16)).min(config.backoff_max);
        state.failures = state.failures.saturating_add(1);
        state.not_before = now.checked_add(pause);
        (state.link, state.last_error) = (Link::Down, error);
    }
}

fn up(channel: &ChannelState) -> Option<Arc<Shared>> {
    match &channel.link {
        Link::Up(shared) => Some(Arc::clone(shared)),
        _ => None,
    }
}
