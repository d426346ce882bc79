//! Nodes that detect by themselves which others are up, over real sockets.

use crate::support::{Cluster, PATIENCE};
use ombak_cluster::Detection;
use ombak_failure_detection::PeerState;
use ombak_kv::{Peers, PutOptions};
use ombak_types::Quorum;
use std::time::{Duration, Instant};

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn sees(cluster: &Cluster, by: usize, of: usize) -> bool {
    cluster.node(by).peers().is_up(cluster.id(of))
}

fn all_see_all(cluster: &Cluster) -> bool {
    (0..3).all(|by| (0..3).filter(|of| *of != by).all(|of| sees(cluster, by, of)))
}

#[tokio::test]
async fn nodes_find_each_other_write_and_notice_who_stops() {
    let mut cluster = Cluster::configured(3, |parts| parts.detection = Some(Detection::default()));
    eventually("all nodes are up", || all_see_all(&cluster)).await;
    cluster.put(0, "k", "v", PutOptions { w: Some(Quorum::All), ..PutOptions::default() }).await.unwrap();
    for node in 0..3 {
        assert_eq!(cluster.values(node, "k").await, ["v"]);
    }
    // What nodes tell about themselves arrives.
    let detector = cluster.node(0).failure_detector().unwrap();
    let ring = cluster.node(0).kv().ring().version();
    let told = || {
        let view = detector.view();
        view.peers.values().filter_map(|peer| peer.soft_state.clone()).all(|state| state.ring.number == ring.number)
            && view.peers.values().all(|peer| peer.soft_state.is_some())
    };
    eventually("the others have told which ring they know", told).await;

    // A node that stops to answer listings tells the others, and so does one that begins again.
    let participates = |cluster: &Cluster| {
        let asked = [0, 1].map(|by| cluster.node(by).peers().replica_state(cluster.id(2), 0, 3).participates);
        (asked[0] == asked[1]).then_some(asked[0])
    };
    for now in [false, true] {
        cluster.node(2).kv().set_participates_in_coverage(now);
        eventually("participation is known", || participates(&cluster) == Some(now)).await;
    }

    cluster.node(2).stop().await;
    eventually("the node has left", || !sees(&cluster, 0, 2) && !sees(&cluster, 1, 2)).await;
    assert_eq!(detector.view().peers[&cluster.id(2)].state, PeerState::Left);
    assert!(cluster.node(2).failure_detector().is_none());
    assert!(sees(&cluster, 0, 1));
    cluster.put(0, "k2", "v", PutOptions::default()).await.unwrap();

    // This one does not say goodbye to the failure detection.
    let silent = cluster.id(1);
    drop(cluster.nodes.remove(1));
    eventually("the node is down", || detector.view().peers[&silent].state == PeerState::Down).await;
    assert!(!cluster.node(0).peers().is_up(silent));
    cluster.stop().await;
}
