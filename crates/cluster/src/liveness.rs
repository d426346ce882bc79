//! Which nodes are up, as far as requests are concerned.

use ombak_types::NodeId;
use std::time::Duration;

/// How a request to a peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestOutcome {
    /// The peer has answered, with a result or with an error of its own.
    Answered,
    /// A bounded queue was full, here or at the peer.
    Overloaded,
    /// The request was provably not delivered.
    NotDelivered,
    /// The request left this node and the peer did not answer it in time, or the connection ended.
    NotAnswered,
    /// The caller gave the request up before its end. Until then the peer had not answered.
    Abandoned,
}

/// Knows which nodes are up. It is asked several times for each request, so it must neither block
/// nor take long.
pub trait Liveness: Send + Sync {
    /// Whether requests may be sent to a node.
    fn is_up(&self, node: NodeId) -> bool;

    /// A request to a node begins. Exactly one call of [`Liveness::ended`] follows.
    fn began(&self, _node: NodeId) {}

    /// A request to a node has ended, `took` after its beginning.
    fn ended(&self, node: NodeId, outcome: RequestOutcome, took: Duration);
}

/// The liveness of a node that knows no other, or that detects failures by itself
/// ([`crate::NodeParts::detection`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyIsUp;

impl Liveness for NobodyIsUp {
    fn is_up(&self, _node: NodeId) -> bool {
        false
    }

    fn ended(&self, _node: NodeId, _outcome: RequestOutcome, _took: Duration) {}
}
