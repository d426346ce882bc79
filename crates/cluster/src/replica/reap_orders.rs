//! Orders to reap tombstones now, over the transport.

use super::service::{ReplicaService, asker_of, refuse, ring_of};
use crate::services::{MessageKind, NodeService, Opened, Server, Since, again};
use crate::wire::{decode_ordered, decode_reap_order, encode_ordered, encode_reap_order};
use ombak_kv::replica::{Ordered, ReapOrder};
use ombak_peer::{Incoming, Responder};

/// Orders to reap tombstones.
pub(crate) const REAP_ORDERS: NodeService = NodeService {
    number: 15,
    title: "orders to reap tombstones",
    capability: "reap-orders.1",
    since: Since::Later,
    server: Server::OfNode(|context| {
        let replicas = context.replicas.clone();
        Opened::behind(context.replicas.gate(), move |request, answer| replicas.order_reaping(&request, answer))
    }),
    messages: &[
        MessageKind { name: "reap_order", check: |bytes| again(bytes, decode_reap_order, encode_reap_order) },
        MessageKind {
            name: "ordered",
            check: |bytes| again(bytes, decode_ordered, |answers: &Vec<Ordered>| encode_ordered(answers)),
        },
    ],
};

impl ReplicaService {
    fn order_reaping(&self, request: &Incoming, answer: Responder) {
        let Some((answer, under_way)) = self.begin(request, answer) else { return };
        let Some((answer, order)) = self.decode(request, answer, decode_reap_order) else { return };
        let order = ReapOrder { ring: ring_of(request), ..order };
        let ordered = self.local.order_for(asker_of(request, &answer), order);
        self.finish(ordered, |answers: &Vec<Ordered>| encode_ordered(answers), refuse, answer, under_way);
    }
}
