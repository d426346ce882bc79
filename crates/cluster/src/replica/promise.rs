//! Answers the questions of conditional puts.

use super::service::{ReplicaService, knows_placements, refuse, ring_of};
use crate::service_numbers::PROMISE;
use crate::wire::{decode_promise_request, encode_promise_reply, encode_promise_reply_without_placement};
use ombak_kv::{ConditionalClient, PromiseRequest};
use ombak_peer::connection::TwoServices;
use ombak_peer::{Incoming, Responder, Services};
use std::sync::Arc;

impl ReplicaService {
    pub(super) fn register_promises(self: &Arc<Self>, services: &mut Services) -> Result<(), TwoServices> {
        let service = self.clone();
        let promise = move |request, answer| service.promise(&request, answer);
        services.register(PROMISE, "promises to conditional puts", Arc::new(promise))
    }

    fn promise(self: &Arc<Self>, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, question)) = self.decode(request, answer, decode_promise_request) else { return };
        let (deadline, ring) = (Some(request.expires_at()), ring_of(request));
        let work = self.local.promise(PromiseRequest { deadline, ring, ..question });
        let encode =
            if knows_placements(request) { encode_promise_reply } else { encode_promise_reply_without_placement };
        self.finish(work, encode, refuse, answer, under_way);
    }
}
