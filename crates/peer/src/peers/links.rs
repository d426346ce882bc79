//! The connections that this node has opened, or would open.

use super::config::PeersConfig;
use crate::connection::Shared;
use crate::counters::PeerCounters;
use crate::error::PeerError;
use crate::identity::Lane;
use ombak_types::NodeId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// The connection of one lane to one peer.
enum Link {
    /// There is none.
    Down,
    /// It is being opened. The sender is dropped when that has ended.
    Opening(watch::Receiver<()>),
    Up(Arc<Shared>),
}

/// One lane of one peer.
struct LaneState {
    link: Link,
    /// How many requests have begun to wait for the connection that is being opened.
    waiting: usize,
    failures: u32,
    not_before: Option<Instant>,
    last_error: PeerError,
}

impl LaneState {
    const fn new() -> Self {
        Self { link: Link::Down, waiting: 0, failures: 0, not_before: None, last_error: PeerError::Unreachable }
    }
}

struct Node {
    address: Option<SocketAddr>,
    lanes: [LaneState; 2],
    counters: Arc<PeerCounters>,
}

/// What a request to a peer finds.
pub(super) enum Found {
    /// A connection.
    Up(Arc<Shared>),
    /// A connection that is being opened.
    Opening(watch::Receiver<()>),
    /// Nothing: the caller opens a connection to this address, and drops the sender at the end.
    Open(SocketAddr, watch::Sender<()>, watch::Receiver<()>),
}

/// The addresses of all peers, and the connections to them.
#[derive(Default)]
pub(super) struct Links {
    nodes: BTreeMap<NodeId, Node>,
}

const fn place(lane: Lane) -> usize {
    match lane {
        Lane::Requests => 0,
        Lane::Bulk => 1,
    }
}

impl Links {
    fn node(&mut self, node: NodeId) -> &mut Node {
        self.nodes.entry(node).or_insert_with(|| Node {
            address: None,
            lanes: [LaneState::new(), LaneState::new()],
            counters: Arc::default(),
        })
    }

    pub(super) fn counters(&mut self, node: NodeId) -> Arc<PeerCounters> {
        Arc::clone(&self.node(node).counters)
    }

    pub(super) fn all_counters(&self) -> impl Iterator<Item = (NodeId, &PeerCounters)> {
        self.nodes.iter().map(|(id, node)| (*id, &*node.counters))
    }

    /// Changes the address of a peer. Returns the connections that lead to the old one.
    pub(super) fn set_address(&mut self, node: NodeId, address: Option<SocketAddr>) -> Vec<Arc<Shared>> {
        let node = self.node(node);
        if std::mem::replace(&mut node.address, address) == address {
            return Vec::new();
        }
        node.lanes.iter_mut().for_each(|lane| lane.not_before = None);
        node.lanes.iter().filter_map(up).collect()
    }

    /// All open connections.
    pub(super) fn open(&self) -> Vec<Arc<Shared>> {
        self.nodes.values().flat_map(|node| &node.lanes).filter_map(up).collect()
    }

    /// What a request finds at `now`.
    pub(super) fn find(
        &mut self,
        to: NodeId,
        lane: Lane,
        now: Instant,
        waiting_max: usize,
    ) -> Result<Found, PeerError> {
        let node = self.nodes.get_mut(&to).ok_or(PeerError::Unreachable)?;
        let address = node.address.ok_or(PeerError::Unreachable)?;
        let lane = &mut node.lanes[place(lane)];
        match &lane.link {
            Link::Up(shared) if !shared.is_closed() => return Ok(Found::Up(Arc::clone(shared))),
            // An attempt that was broken off, as by a panic, left this behind.
            Link::Opening(opening) if opening.has_changed().is_err() => {}
            Link::Opening(_) if lane.waiting >= waiting_max => return Err(PeerError::Overload),
            Link::Opening(opening) => {
                lane.waiting += 1;
                return Ok(Found::Opening(opening.clone()));
            }
            Link::Up(_) | Link::Down => {}
        }
        if lane.not_before.is_some_and(|not_before| now < not_before) {
            return Err(lane.last_error.clone());
        }
        let (done, opening) = watch::channel(());
        (lane.link, lane.waiting) = (Link::Opening(opening.clone()), 1);
        Ok(Found::Open(address, done, opening))
    }

    /// The connection after an attempt to open it has ended.
    pub(super) fn connected(&self, to: NodeId, lane: Lane) -> Result<Arc<Shared>, PeerError> {
        let lane = &self.nodes.get(&to).ok_or(PeerError::Unreachable)?.lanes[place(lane)];
        up(lane).ok_or_else(|| lane.last_error.clone())
    }

    /// Notes that a connection was opened.
    pub(super) fn up(&mut self, to: NodeId, lane: Lane, shared: Arc<Shared>) {
        let lane = &mut self.node(to).lanes[place(lane)];
        (lane.link, lane.failures, lane.not_before) = (Link::Up(shared), 0, None);
    }

    /// Notes that a connection could not be opened, or has ended.
    pub(super) fn down(&mut self, to: NodeId, lane: Lane, error: PeerError, now: Instant, config: &PeersConfig) {
        let lane = &mut self.node(to).lanes[place(lane)];
        let pause = config.backoff_min.saturating_mul(1 << lane.failures.min(16)).min(config.backoff_max);
        lane.failures = lane.failures.saturating_add(1);
        lane.not_before = now.checked_add(pause);
        (lane.link, lane.last_error) = (Link::Down, error);
    }

    pub(super) fn address(&self, of: NodeId) -> Option<SocketAddr> {
        self.nodes.get(&of)?.address
    }
}

fn up(lane: &LaneState) -> Option<Arc<Shared>> {
    match &lane.link {
        Link::Up(shared) => Some(Arc::clone(shared)),
        _ => None,
    }
}
