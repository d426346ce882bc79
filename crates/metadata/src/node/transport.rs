//! How nodes reach each other.

use bytes::Bytes;
use ombak_runtime::BoxFuture;
use ombak_types::NodeId;
use std::time::Instant;

/// The request was not answered. It may have had an effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {to} does not answer: {why}")]
pub struct NoAnswer {
    /// The node that was asked.
    pub to: NodeId,
    /// Why, for people.
    pub why: String,
}

/// Carries requests to other nodes. The receiver gives each request to
/// [`MetadataNode::handle`](crate::MetadataNode::handle) and sends back what it returns.
pub trait RaftTransport: Send + Sync {
    /// Sends a request and waits for the response until the deadline.
    fn send(&self, to: NodeId, request: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, NoAnswer>>;
}
