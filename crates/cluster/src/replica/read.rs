//! The service of reads of one key at a replica. Hot.

use super::counters::count;
use super::service::{ReplicaService, knows_placements, ring_of};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{
    decode_read_reply, decode_replica_read, encode_read_reply, encode_read_reply_without_placement, encode_replica_read,
};
use ombak_kv::replica::ReplicaRead;
use ombak_peer::{Incoming, Responder};

/// Reads of one key at a replica.
pub(crate) const READ: NodeService = NodeService {
    number: 1,
    title: "replica reads",
    capability: "replica-read.1",
    since: Since::Version1,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.read(&request, answer))
    }),
    messages: &[
        MessageKind { name: "replica_read", check: |bytes| again(bytes, decode_replica_read, encode_replica_read) },
        MessageKind { name: "read_reply", check: |bytes| again(bytes, decode_read_reply, encode_read_reply) },
    ],
};

impl ReplicaService {
    fn read(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, read)) = self.decode(request, answer, decode_replica_read) else { return };
        count(&self.counters.reads_served);
        let read = ReplicaRead { deadline: Some(request.expires_at()), ring: ring_of(request), ..read };
        let encode = if knows_placements(request) { encode_read_reply } else { encode_read_reply_without_placement };
        self.end(self.local.begin_read(read), encode, answer, under_way);
    }
}
