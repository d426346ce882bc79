//! The service of conditional puts: it answers their questions.

use super::service::{ReplicaService, knows_placements, refuse, ring_of};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{
    decode_promise_reply, decode_promise_request, encode_promise_reply, encode_promise_reply_without_placement,
    encode_promise_request,
};
use ombak_kv::replica::{ConditionalClient, PromiseRequest};
use ombak_peer::{Incoming, Responder};

/// Questions of conditional puts before they write.
pub(crate) const PROMISE: NodeService = NodeService {
    number: 11,
    title: "promises to conditional puts",
    capability: "promise.1",
    since: Since::Version1,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.promise(&request, answer))
    }),
    messages: &[
        MessageKind {
            name: "promise_request",
            check: |bytes| again(bytes, decode_promise_request, encode_promise_request),
        },
        MessageKind { name: "promise_reply", check: |bytes| again(bytes, decode_promise_reply, encode_promise_reply) },
    ],
};

impl ReplicaService {
    fn promise(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, question)) = self.decode(request, answer, decode_promise_request) else { return };
        let (deadline, ring) = (Some(request.expires_at()), ring_of(request));
        let work = self.local.promise(PromiseRequest { deadline, ring, ..question });
        let encode =
            if knows_placements(request) { encode_promise_reply } else { encode_promise_reply_without_placement };
        self.finish(work, encode, refuse, answer, under_way);
    }
}
