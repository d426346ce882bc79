//! The service of puts that the receiver coordinates.

use super::counters::count;
use super::failure::{PUT_REFUSED, REPLICA_ERROR};
use super::service::{ReplicaService, reply};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{
    ForwardedMessage, decode_forwarded_put, decode_put_reply, encode_error, encode_forwarded_put, encode_put_reply,
};
use ombak_kv::replica::{ForwardedPut, PutFailure, ReplicaClient};
use ombak_peer::{Incoming, Responder};
use std::sync::Arc;

/// A put from this length on is decoded by a thread for large requests: a head can have so many
/// parts that decoding takes long.
const POOLED_PUT_BYTES_MIN: usize = 64 << 10;

/// Puts that the receiver coordinates.
pub(crate) const COORDINATE: NodeService = NodeService {
    number: 3,
    title: "forwarded puts",
    capability: "coordinate.1",
    since: Since::Version1,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.coordinate(&request, answer))
    }),
    messages: &[
        MessageKind { name: "forwarded_put", check: |bytes| again(bytes, decode_forwarded_put, encode_forwarded_put) },
        MessageKind { name: "put_reply", check: |bytes| again(bytes, decode_put_reply, encode_put_reply) },
    ],
};

impl ReplicaService {
    /// The deadline is checked again immediately before the event is stamped: the engine does that
    /// (docs/design/replication.md §12).
    fn coordinate(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, body)) = self.hold(request, answer) else { return };
        if body.len() >= POOLED_PUT_BYTES_MIN {
            let (service, request) = (self.clone(), request.clone());
            self.runtime.spawn(Box::pin(async move {
                let decoded = match service.kv.offload(move || decode_forwarded_put(&body)).await {
                    Ok(decoded) => decoded,
                    Err(error) => return refuse_put(answer, PutFailure::Refused(error)),
                };
                let Some((answer, put)) = service.accept(&request, answer, decoded) else { return };
                count(&service.counters.puts_coordinated);
                let done = service.local.coordinate(forwarded(put, &request)).await;
                reply(answer, done, encode_put_reply, refuse_put);
                drop(under_way);
            }));
            return;
        }
        let Some((answer, put)) = self.decode(request, answer, decode_forwarded_put) else { return };
        count(&self.counters.puts_coordinated);
        let work = self.local.coordinate(forwarded(put, request));
        self.finish(work, encode_put_reply, refuse_put, answer, under_way);
    }
}

fn refuse_put(answer: Responder, failure: PutFailure) {
    let code = if matches!(failure, PutFailure::Refused(_)) { PUT_REFUSED } else { REPLICA_ERROR };
    answer.refuse(code, encode_error(&failure.into_error()));
}

/// A put that has arrived, by the clock of this node.
fn forwarded(message: ForwardedMessage, request: &Incoming) -> ForwardedPut {
    let ForwardedMessage { number, begins_before, request: put } = message;
    // Without a moment by which it must begin, the deadline alone counts.
    let begin_by = begins_before.and_then(|before| request.deadline().checked_sub(before));
    ForwardedPut { number, request: put, begin_by, deadline: Some(request.expires_at()) }
}
