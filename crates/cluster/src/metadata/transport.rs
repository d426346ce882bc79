//! Carries the messages of the metadata's group to other nodes.

use super::service::METADATA;
use crate::services::NodeService;
use bytes::Bytes;
use ombak_metadata::{NoAnswer, RaftTransport};
use ombak_peer::frame::Priority;
use ombak_peer::mux::Body;
use ombak_peer::{Lane, Outgoing, Peers, RingVersion};
use ombak_runtime::BoxFuture;
use ombak_types::NodeId;
use std::time::{Duration, Instant};

/// A longer message, such as a part of a snapshot, does not go before the requests of clients.
const CONTROL_BYTES_MAX: usize = 64 << 10;

/// The way of the metadata's messages to other nodes.
#[derive(Clone)]
pub(crate) struct PeerTransport(pub Peers);

impl RaftTransport for PeerTransport {
    fn send(&self, to: NodeId, request: Bytes, deadline: Instant) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        let peers = self.0.clone();
        Box::pin(async move {
            let answer = peers.call(to, question(METADATA, request, deadline)).await;
            answer.map_err(|e| NoAnswer { to, why: e.to_string() })
        })
    }
}

/// A question to a service that concerns no key: the receiver does not compare rings.
pub(crate) fn question(service: NodeService, body: Bytes, deadline: Instant) -> Outgoing {
    let priority = if body.len() > CONTROL_BYTES_MAX { Priority::Request } else { Priority::Control };
    Outgoing {
        lane: Lane::Requests,
        service: service.number,
        priority,
        ring: RingVersion::default(),
        age: Duration::ZERO,
        deadline,
        body: Body::from(body),
    }
}
