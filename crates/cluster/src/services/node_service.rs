//! What a service registers.

use super::context::NodeContext;
use super::gate::Gate;
use super::message_kind::MessageKind;
use crate::member::MemberContext;
use ombak_peer::{Incoming, Responder, Service};
use std::sync::Arc;

/// A service that nodes have for each other.
pub(crate) struct NodeService {
    /// Its number in the headers of requests. It is never used for something else later.
    pub(crate) number: u16,
    /// What it does, for messages to people.
    pub(crate) title: &'static str,
    /// What a node says in its handshakes that has the service: a name, a dot, and the version of
    /// its messages. If messages change in a way that an earlier version does not understand, the
    /// new ones get a service of their own, or a capability beside this one.
    pub(crate) capability: &'static str,
    /// Which nodes have it.
    pub(crate) since: Since,
    /// How its server is opened.
    pub(crate) server: Server,
    /// The kinds of its questions and answers. Those that another crate encodes are tested there.
    pub(crate) messages: &'static [MessageKind],
}

/// Which nodes have a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// Every node that has clusters.
    Version1,
    /// Those of a later version. Whoever asks such a service first looks whether the other node
    /// says its capability (`ombak_peer::Peers::shares`).
    Later,
}

/// How a server is opened.
pub(crate) enum Server {
    /// Every node has the service.
    OfNode(fn(&NodeContext) -> Opened),
    /// Members of a cluster have it. Other nodes may ask while the engine is not open yet.
    OfMember(fn(&MemberContext) -> Opened),
}

/// A server that is open.
pub(crate) struct Opened {
    pub(super) service: Arc<dyn Service>,
    pub(super) gate: Option<Arc<Gate>>,
}

impl Opened {
    /// A server of questions about data. When the node stops, it refuses further ones, and the node
    /// waits for those that are under way.
    pub(crate) fn behind(gate: &Arc<Gate>, serve: impl Fn(Incoming, Responder) + Send + Sync + 'static) -> Self {
        Self { service: Arc::new(serve), gate: Some(gate.clone()) }
    }

    /// A server of questions that are not about data. It goes on until the transport ends.
    pub(crate) fn without_gate(serve: impl Fn(Incoming, Responder) + Send + Sync + 'static) -> Self {
        Self { service: Arc::new(serve), gate: None }
    }
}
