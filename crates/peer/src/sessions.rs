//! Which peers are let in.

use crate::handshake::{FirstWords, NoWords, Refusal, RefusalKind, RemotePeer};
use crate::identity::NodeIdentity;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The process that this node has connections with under some node id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveSession {
    /// The random number of the process.
    pub session: u64,
    /// How many times its data directory had been started.
    pub boot_number: u64,
    /// How many connections with it are open.
    pub connections: usize,
}

/// Decides about a peer that has proved that it knows the cluster's secret.
pub trait Admission: Send + Sync {
    /// Decides about `peer`. `live` is the process that has connections under the same node id.
    fn admit(&self, peer: &RemotePeer, live: Option<LiveSession>) -> Result<(), Refusal>;

    /// What this node tells its peers before any request of a connection. They hear it if both
    /// sides have the capability `handshake::FIRST_WORDS`.
    fn first_words(&self) -> Arc<dyn FirstWords> {
        Arc::new(NoWords)
    }

    /// Whether a node that is not connected said last that it has a capability; `None` if nothing
    /// is known of it.
    fn has_said(&self, _node: NodeId, _capability: &str) -> Option<bool> {
        None
    }
}

/// If two live processes have one node id, the one that was there first stays
/// (docs/design/replication.md §8). A process that was restarted is let in when the connections of
/// the one before it have ended: at once if the machine still runs, and otherwise after the silence
/// that ends them.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepOlderSession;

impl Admission for KeepOlderSession {
    fn admit(&self, peer: &RemotePeer, live: Option<LiveSession>) -> Result<(), Refusal> {
        match live {
            Some(live) if live.session != peer.identity.session => {
                let text = format!(
                    "another process with the node id {} is connected; its start was number {}, this one is number {}",
                    peer.identity.node, live.boot_number, peer.identity.boot_number
                );
                Err(Refusal::new(RefusalKind::NodeIdInUse, text))
            }
            _ => Ok(()),
        }
    }
}

/// A process that this node has connections with.
struct Live {
    identity: Arc<NodeIdentity>,
    connections: usize,
}

impl Live {
    fn session(&self) -> LiveSession {
        let NodeIdentity { session, boot_number, .. } = *self.identity;
        LiveSession { session, boot_number, connections: self.connections }
    }
}

/// The processes that this node has connections with.
#[derive(Clone)]
pub(crate) struct Sessions {
    admission: Arc<dyn Admission>,
    live: Arc<Mutex<BTreeMap<NodeId, Live>>>,
}

impl Sessions {
    pub(crate) fn new(admission: Arc<dyn Admission>) -> Self {
        Self { admission, live: Arc::default() }
    }

    pub(crate) fn first_words(&self) -> Arc<dyn FirstWords> {
        self.admission.first_words()
    }

    /// Whether a node has said that it has a capability: the connected process, or else what is
    /// known of the last one.
    pub(crate) fn has_said(&self, node: NodeId, capability: &str) -> Option<bool> {
        match self.of(node) {
            Some((identity, _)) => Some(identity.capabilities.contains(capability)),
            None => self.admission.has_said(node, capability),
        }
    }

    /// Admits a connection. It counts as live until the ticket is dropped.
    pub(crate) fn admit(&self, peer: &RemotePeer) -> Result<SessionTicket, Refusal> {
        let identity = &peer.identity;
        let mut live = self.live.lock();
        self.admission.admit(peer, live.get(&identity.node).map(Live::session))?;
        let fresh = || Live { identity: Arc::new(identity.clone()), connections: 0 };
        let entry = live.entry(identity.node).or_insert_with(fresh);
        if entry.identity.session != identity.session {
            *entry = fresh();
        }
        entry.connections += 1;
        Ok(SessionTicket { sessions: self.clone(), node: identity.node, session: identity.session })
    }

    /// What the connected process with a node id said about itself, and its connections.
    pub(crate) fn of(&self, node: NodeId) -> Option<(Arc<NodeIdentity>, LiveSession)> {
        self.live.lock().get(&node).map(|live| (Arc::clone(&live.identity), live.session()))
    }
}

/// A live connection of a session.
pub(crate) struct SessionTicket {
    sessions: Sessions,
    node: NodeId,
    session: u64,
}

impl Drop for SessionTicket {
    fn drop(&mut self) {
        let mut live = self.sessions.live.lock();
        let Some(entry) = live.get_mut(&self.node).filter(|entry| entry.identity.session == self.session) else {
            return;
        };
        entry.connections -= 1;
        if entry.connections == 0 {
            live.remove(&self.node);
        }
    }
}
