//! Asks a node over the path that requests of clients take.

use crate::services::{NodeContext, NodeService, Opened, Server, Since};
use bytes::Bytes;
use ombak_failure_detection::HealthProbe;
use ombak_peer::frame::Priority;
use ombak_peer::mux::Body;
use ombak_peer::{Incoming, Lane, Outgoing, Peers, RefusalCode, Responder, RingVersion};
use ombak_runtime::{BoxFuture, Runtime};
use ombak_types::NodeId;
use std::sync::Arc;
use std::time::Duration;

/// Longer than the failure detector waits: its own limit ends the probe.
const PROBE_LIFE: Duration = Duration::from_secs(10);

/// Sends probes with the priority of requests, so they wait where requests wait.
pub(super) struct RequestProbe {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) transport: Peers,
}

impl HealthProbe for RequestProbe {
    fn probe(&self, node: NodeId) -> BoxFuture<'static, bool> {
        let transport = self.transport.clone();
        let outgoing = Outgoing {
            lane: Lane::Requests,
            service: PROBES.number,
            priority: Priority::Request,
            ring: RingVersion::default(),
            age: Duration::ZERO,
            deadline: self.runtime.now() + PROBE_LIFE,
            body: Body::new(),
        };
        Box::pin(async move { transport.call(node, outgoing).await.is_ok() })
    }
}

/// Whether a node answers requests at all. Questions and answers are empty.
pub(crate) const PROBES: NodeService = NodeService {
    number: 10,
    title: "health probes",
    capability: "health-probe.1",
    since: Since::Version1,
    server: Server::OfNode(open),
    messages: &[],
};

/// Answers probes through the threads that wait for disks. If all of them hang, no probe is
/// answered.
fn open(context: &NodeContext) -> Opened {
    let (kv, runtime) = (context.kv.clone(), context.runtime.clone());
    Opened::without_gate(move |_request: Incoming, answer: Responder| {
        let kv = kv.clone();
        runtime.spawn(Box::pin(async move {
            match kv.wait_for_disk_thread().await {
                Ok(()) => answer.answer(Body::new()),
                Err(_) => answer.refuse(RefusalCode::SHUTTING_DOWN, Bytes::new()),
            }
        }));
    })
}
