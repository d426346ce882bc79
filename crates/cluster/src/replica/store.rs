//! The service of stores of one version at a replica. Hot.

use super::counters::count;
use super::service::{ReplicaService, knows_placements, ring_of};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{
    decode_replica_store, decode_store_reply, encode_replica_store, encode_store_reply,
    encode_store_reply_without_placement,
};
use ombak_kv::replica::ReplicaStore;
use ombak_peer::{Incoming, Responder};

/// Stores of one version at a replica.
pub(crate) const STORE: NodeService = NodeService {
    number: 2,
    title: "replica stores",
    capability: "replica-store.1",
    since: Since::Version1,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.store(&request, answer))
    }),
    messages: &[
        MessageKind { name: "replica_store", check: |bytes| again(bytes, decode_replica_store, encode_replica_store) },
        MessageKind { name: "store_reply", check: |bytes| again(bytes, decode_store_reply, encode_store_reply) },
    ],
};

impl ReplicaService {
    fn store(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, body)) = self.hold(request, answer) else { return };
        let Some((answer, store)) = self.accept(request, answer, decode_replica_store(&body)) else { return };
        count(&self.counters.stores_served);
        let store = ReplicaStore { deadline: Some(request.expires_at()), ring: ring_of(request), ..store };
        let encode = if knows_placements(request) { encode_store_reply } else { encode_store_reply_without_placement };
        self.end(self.local.begin_store(store), encode, answer, under_way);
    }
}
