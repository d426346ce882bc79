//! The driver on a real runtime: packets go from node to node within the process.

use super::network::id;
use crate::{
    DetectionConfig, DetectionTransport, FailureDetector, FailureDetectorParts, HealthConfig, HealthProbe,
    LivenessTable, Outcome, Process, SoftState,
};
use bytes::Bytes;
use ombak_runtime::{BoxFuture, Runtime, RuntimeExt, TokioRuntime, within};
use ombak_types::NodeId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Nodes by their id, and whether those that are here answer requests.
#[derive(Default)]
struct Wires {
    nodes: Mutex<BTreeMap<NodeId, FailureDetector>>,
    answers: AtomicBool,
}

struct Wire(NodeId, Arc<Wires>);

impl DetectionTransport for Wire {
    fn send(&self, to: NodeId, packet: Bytes) {
        let (from, wires) = (self.0, Arc::clone(&self.1));
        TokioRuntime.spawn(Box::pin(async move {
            let receiver = wires.nodes.lock().get(&to).cloned();
            if let Some(receiver) = receiver {
                receiver.receive(from, &packet);
            }
        }));
    }
}

impl HealthProbe for Wire {
    fn probe(&self, node: NodeId) -> BoxFuture<'static, bool> {
        let wires = Arc::clone(&self.1);
        Box::pin(async move {
            if !wires.answers.load(Ordering::Relaxed) || !wires.nodes.lock().contains_key(&node) {
                std::future::pending::<()>().await;
            }
            true
        })
    }
}

fn start(node: u64, wires: &Arc<Wires>) -> FailureDetector {
    let wire = Arc::new(Wire(id(node), Arc::clone(wires)));
    let parts = FailureDetectorParts {
        runtime: Arc::new(TokioRuntime),
        transport: wire.clone(),
        probe: wire,
        me: Process::new(id(node), 1, node),
        config: DetectionConfig::default(),
        health: HealthConfig::default(),
        liveness: Arc::new(LivenessTable::new(&HealthConfig::default())),
    };
    let detector = FailureDetector::start(parts).unwrap();
    wires.nodes.lock().insert(id(node), detector.clone());
    detector.set_members(BTreeSet::from([id(1), id(2), id(3)]));
    detector
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let limit = Some(TokioRuntime.now() + Duration::from_secs(30));
    let wait = async {
        while !holds() {
            TokioRuntime.sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(within(&TokioRuntime, limit, wait).await.is_ok(), "{what}");
}

#[tokio::test]
async fn nodes_find_each_other_tell_each_other_and_notice_who_stops() {
    let wires = Arc::new(Wires::default());
    wires.answers.store(true, Ordering::Relaxed);
    let nodes: Vec<FailureDetector> = (1..=3).map(|node| start(node, &wires)).collect();
    let up = |by: usize, of: u64| nodes[by].liveness().is_up(id(of));
    eventually("all are up", || up(0, 2) && up(0, 3) && up(1, 1) && up(1, 3) && up(2, 1) && up(2, 2)).await;
    assert!(!up(0, 1), "a node is no peer of itself");

    let views = nodes[0].published().clone();
    nodes[2].publish(SoftState { avoids_coverage: true, ..SoftState::default() });
    let told = views.wait_for(|view| view.peers[&id(3)].soft_state.as_ref().is_some_and(|state| state.avoids_coverage));
    assert!(told.await.is_some());

    wires.nodes.lock().remove(&id(2));
    nodes[1].leave();
    eventually("the node has left", || !up(0, 2) && !up(2, 2)).await;
    wires.nodes.lock().remove(&id(3));
    nodes[2].stop();
    eventually("the node is down", || !up(0, 3)).await;
}

/// Gossip goes on, and requests have no answer.
#[tokio::test]
async fn a_peer_that_answers_gossip_but_no_requests_is_down_until_its_probes_are_answered() {
    let wires = Arc::new(Wires::default());
    wires.answers.store(true, Ordering::Relaxed);
    let nodes: Vec<FailureDetector> = (1..=2).map(|node| start(node, &wires)).collect();
    let table = nodes[0].liveness();
    eventually("the peer is up", || table.is_up(id(2))).await;
    wires.answers.store(false, Ordering::Relaxed);
    table.began(id(2));
    eventually("the peer is down for requests", || !table.is_up(id(2))).await;
    assert!(nodes[0].view().is_up(id(2)), "the detector has heard it all the time");
    wires.answers.store(true, Ordering::Relaxed);
    eventually("probes let it back in", || table.is_up(id(2))).await;
    table.ended(id(2), Outcome::Answered, Duration::from_millis(1));
}
