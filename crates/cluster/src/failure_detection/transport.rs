//! Carries packets of the failure detection.

use crate::services::{NodeContext, NodeService, Opened, Server, Since};
use bytes::Bytes;
use ombak_failure_detection::DetectionTransport;
use ombak_peer::frame::Priority;
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, Lane, Outgoing, Peers, Responder, RingVersion};
use ombak_runtime::Runtime;
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many packets to one node may be under way. What is more is dropped.
const UNDER_WAY_MAX: usize = 32;
/// A packet that has not left after this long is of no use any more.
const PACKET_LIFE: Duration = Duration::from_secs(1);

/// Failure detection. `ombak_failure_detection` encodes its packets.
pub(crate) const PACKETS: NodeService = NodeService {
    number: 5,
    title: "failure detection",
    capability: "membership.1",
    since: Since::Version1,
    server: Server::OfNode(open),
    messages: &[],
};

fn open(context: &NodeContext) -> Opened {
    let slot = context.failure_detector.clone();
    Opened::without_gate(move |request: Incoming, answer: Responder| {
        if let Some(failure_detector) = &*slot.load() {
            failure_detector.receive(request.peer().identity.node, request.body());
        }
        answer.answer(Body::new());
    })
}

/// The way of packets over the transport. They have the priority of control messages, so transfers
/// do not delay them.
pub(super) struct PacketTransport {
    runtime: Arc<dyn Runtime>,
    transport: Peers,
    under_way: Arc<Mutex<BTreeMap<NodeId, usize>>>,
}

impl PacketTransport {
    pub(super) fn new(runtime: Arc<dyn Runtime>, transport: Peers) -> Self {
        Self { runtime, transport, under_way: Arc::default() }
    }
}

/// A packet that counts as under way until this is dropped.
struct UnderWay(NodeId, Arc<Mutex<BTreeMap<NodeId, usize>>>);

impl UnderWay {
    fn begin(to: NodeId, counts: &Arc<Mutex<BTreeMap<NodeId, usize>>>) -> Option<Self> {
        let mut locked = counts.lock();
        let count = locked.entry(to).or_default();
        if *count >= UNDER_WAY_MAX {
            return None;
        }
        *count += 1;
        Some(Self(to, Arc::clone(counts)))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.1.lock();
        if let Some(count) = counts.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.0);
            }
        }
    }
}

impl DetectionTransport for PacketTransport {
    fn send(&self, to: NodeId, packet: Bytes) {
        let Some(under_way) = UnderWay::begin(to, &self.under_way) else { return };
        let outgoing = Outgoing {
            lane: Lane::Requests,
            service: PACKETS.number,
            priority: Priority::Control,
            ring: RingVersion::default(),
            age: Duration::ZERO,
            deadline: self.runtime.now() + PACKET_LIFE,
            body: Body::from(packet),
        };
        let transport = self.transport.clone();
        self.runtime.spawn(Box::pin(async move {
            // A packet that is lost is noticed by what does not come back.
            let _ = transport.call(to, outgoing).await;
            drop(under_way);
        }));
    }
}
