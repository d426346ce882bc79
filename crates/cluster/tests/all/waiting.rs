//! What a client of a healthy node waits for when another node falls silent, over real sockets.

use crate::support::freezing::{FreezingNetwork, Frost};
use crate::support::{Cluster, PATIENCE, put_request, soon, storage_key, until, with_r, with_w};
use ombak_kv::replica::{ForwardedPut, PutFailure, ReplicaStore, StoreKind, StoreMode};
use ombak_kv::{Peers, PutOptions};
use ombak_peer::PeersConfig;
use ombak_types::{Error, Object, Quorum, Sibling, StoreFailureKind, stored_object};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Nodes of which the second can stand still. Connections are not given up during a test, so only
/// what ends the requests on them can end those.
fn freezing(count: usize, frost: &Frost) -> Cluster {
    let number = std::sync::atomic::AtomicUsize::new(0);
    Cluster::configured(count, |parts| {
        let mut transport = PeersConfig::default();
        transport.mux.ping_interval_us = 50_000;
        transport.mux.answer_max_us = 300_000;
        transport.mux.silence_max_us = i64::try_from(10 * PATIENCE.as_micros()).unwrap();
        parts.transport = transport;
        if number.fetch_add(1, Ordering::SeqCst) == 1 {
            parts.network = std::sync::Arc::new(FreezingNetwork(frost.clone()));
        }
    })
}

/// A put that no deadline ends.
fn endless(cluster: &Cluster, key: &str) -> impl Future<Output = Result<ombak_kv::PutReply, PutFailure>> + use<> {
    let put = put_request(key, "v", PutOptions::default());
    let forwarded = ForwardedPut { number: 1, request: put, begin_by: None, deadline: None };
    cluster.replica(0, 1).coordinate(forwarded)
}

/// docs/design/replication.md §12: the put was delivered, so it is unknown whether it was executed.
#[tokio::test]
async fn a_forwarded_put_ends_when_its_coordinator_falls_silent() {
    let frost = Frost::default();
    let cluster = freezing(3, &frost);
    cluster.put(0, "k", "v", with_w(3)).await.unwrap();
    frost.set(true);
    let ended = soon(endless(&cluster, "k")).await;
    assert!(matches!(ended, Err(PutFailure::Ended(Error::Timeout))), "{ended:?}");
    // Until the node answers again, it gets nothing, and another one may be asked at once.
    let next = soon(endless(&cluster, "k")).await;
    let Err(PutFailure::Refused(Error::Storage(why))) = next else { panic!("{next:?}") };
    assert_eq!(why.kind, StoreFailureKind::Unreachable);
    frost.set(false);
    let again = async {
        while matches!(endless(&cluster, "k").await, Err(PutFailure::Refused(_))) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(again).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_read_of_all_replicas_and_a_put_to_all_end_when_one_falls_silent() {
    let frost = Frost::default();
    let cluster = freezing(3, &frost);
    cluster.put(0, "k", "v", with_w(3)).await.unwrap();
    frost.set(true);
    let read = tokio::time::timeout(PATIENCE / 2, cluster.get(0, "k", with_r(3)));
    assert_eq!(read.await.expect("it waits for the silent node"), Err(Error::Timeout));
    let quorum = Some(Quorum::All);
    let put = cluster.put(0, "k", "w", PutOptions { w: quorum, ..PutOptions::default() });
    let put = tokio::time::timeout(PATIENCE / 2, put).await.expect("it waits for the silent node");
    assert!(matches!(put, Err(Error::QuorumUnsatisfied { option: "w", .. } | Error::Timeout)), "{put:?}");
    // What the others can do is done.
    assert_eq!(soon(cluster.values(0, "k")).await.len(), 2);
    frost.set(false);
    cluster.stop().await;
}

/// A node whose disk is slow still answers pings, so what it does is waited for.
#[tokio::test]
async fn a_request_to_a_node_with_a_slow_disk_keeps_its_time() {
    let cluster = freezing(2, &Frost::default());
    let faults = &cluster.nodes[1].faults;
    cluster.put(0, "k", "v", with_w(2)).await.unwrap();
    faults.hold_syncs(true);
    let object = Object::new(Sibling::new("v"));
    let mut head = Vec::new();
    stored_object::encode_head(&object, &mut head);
    let store = ReplicaStore {
        partition: 0,
        n: 3,
        ring: cluster.node(0).kv().ring().version(),
        key: storage_key("slow"),
        head: head.into(),
        body: object.siblings[0].value.clone(),
        stored_secs: None,
        kind: StoreKind { dvv: true, values: 0 },
        mode: StoreMode::Merge,
        noted: Some(cluster.node(1).kv().counter()),
        synced: true,
        deadline: None,
    };
    let mut slow = tokio::spawn(cluster.node(0).peers().replica(cluster.id(1)).store(store));
    let heard = || cluster.node(0).transport().counts()[&cluster.id(1)].bytes_received;
    let before = heard();
    // A pong has 24 bytes or more, so these are the pongs of a time far beyond the limit.
    until("20 pings are answered", || heard() >= before + 20 * 24).await;
    assert!(tokio::time::timeout(Duration::ZERO, &mut slow).await.is_err(), "it has ended");
    faults.hold_syncs(false);
    soon(slow).await.unwrap().unwrap();
    cluster.stop().await;
}
