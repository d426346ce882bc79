//! Puts and deletes over several nodes.

use crate::replicas::cluster::{Cluster, bucket, count};
use ombak_kv::{DeleteRequest, GetOptions, GetReply, PutOptions, is_tombstone};
use ombak_types::{Error, Object, Sibling, VectorClock};
use std::future::poll_fn;
use std::task::Poll;
use tokio::task::yield_now;

#[tokio::test]
async fn what_is_written_through_one_node_is_read_through_each() {
    let cluster = Cluster::of(3);
    for (through, key) in [(0, "k0"), (1, "k1"), (2, "k2")] {
        cluster.put(through, key, "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        for node in 0..3 {
            assert_eq!(cluster.values(node, key).await, ["v"]);
        }
        assert_eq!(cluster.holders(key), [0, 1, 2]);
        cluster.wait_until_equal(&[0, 1, 2], key).await;
    }
}

#[tokio::test]
async fn values_that_were_written_without_knowing_of_each_other_are_siblings_on_every_node() {
    let cluster = Cluster::of(3);
    let all = || PutOptions { w: count(3), ..PutOptions::default() };
    let (first, second) = tokio::join!(cluster.put(0, "k", "x", all()), cluster.put(1, "k", "y", all()));
    assert_eq!((first, second), (Ok(()), Ok(())));
    for node in 0..3 {
        assert_eq!(cluster.values(node, "k").await, ["x", "y"]);
    }
    cluster.wait_until_equal(&[0, 1, 2], "k").await;
    // A write that has seen both replaces both.
    let GetReply::Found(seen) = cluster.get(2, "k", GetOptions::default()).await.unwrap() else { panic!("not found") };
    let object = Object { clock: seen.clock, siblings: vec![Sibling::new("z")] };
    cluster.put_object(2, "k", object, all()).await.unwrap();
    assert_eq!(cluster.values(0, "k").await, ["z"]);
}

#[tokio::test]
async fn a_node_without_a_position_lets_another_one_coordinate() {
    let cluster = Cluster::of(5);
    // With five nodes and n=3 each key has two nodes without a position.
    for key in ["a", "b", "c", "d", "e", "f"] {
        for through in 0..5 {
            let options = PutOptions { w: count(3), return_body: true, ..PutOptions::default() };
            cluster.put(through, &format!("{key}{through}"), "v", options).await.unwrap();
            assert_eq!(cluster.holders(&format!("{key}{through}")).len(), 3);
        }
    }
}

#[tokio::test]
async fn a_stand_in_takes_the_write_of_a_node_that_is_down() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    cluster.set_down(owners[0], true);
    let through = owners[1];
    let strict = PutOptions { pw: count(3), ..PutOptions::default() };
    let refused = cluster.put(through, "k", "new", strict).await;
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "pw", need: 3, got: 2 }));
    cluster.put(through, "k", "new", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    assert_eq!(cluster.holders("k").len(), 4, "three owners, one of which is down, and the stand-in");
    assert_eq!(cluster.values(through, "k").await, ["new", "old"]);
    let unsloppy = PutOptions { w: count(3), sloppy_quorum: false, ..PutOptions::default() };
    let refused = cluster.put(through, "k", "newer", unsloppy).await;
    assert_eq!(refused, Err(Error::InsufficientVnodes { have: 2, need: 3 }));
}

#[tokio::test]
async fn a_delete_leaves_a_tombstone_on_every_node_and_no_node_reaps_it_alone() {
    let cluster = Cluster::of(3);
    let mut request = DeleteRequest {
        bucket: bucket(),
        key: "k".into(),
        clock: None,
        get: GetOptions::default(),
        put: PutOptions { w: count(3), ..PutOptions::default() },
        rw: None,
    };
    assert!(!cluster.nodes[1].delete(request.clone()).await.unwrap().found);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    request.get.r = count(3);
    assert!(cluster.nodes[1].delete(request).await.unwrap().found);
    assert!(is_tombstone(cluster.wait_until_equal(&[0, 1, 2], "k").await));
    for node in 0..3 {
        let read = cluster.get(node, "k", GetOptions::default()).await.unwrap();
        assert!(matches!(read, GetReply::NotFound { tombstone: Some(_) }), "{read:?}");
    }
}

#[tokio::test]
async fn a_put_runs_to_its_end_when_its_client_goes_away() {
    let cluster = Cluster::of(3);
    for seed in 0..12 {
        cluster.delay_messages(seed);
        let key = format!("k{seed}");
        let mut put = Box::pin(cluster.put(0, &key, "v", PutOptions { w: count(3), ..PutOptions::default() }));
        // The client goes away earlier or later.
        for _ in 0..=seed / 2 {
            let is_ended = poll_fn(|cx| Poll::Ready(put.as_mut().poll(cx).is_ready())).await;
            if is_ended {
                break;
            }
            yield_now().await;
        }
        drop(put);
        assert!(cluster.stored(0, &key).is_some(), "the put has begun");
        cluster.wait_until_equal(&[0, 1, 2], &key).await;
    }
}

/// A replica may not know what it has refused: the put reads its copy again and sends it once more.
#[tokio::test]
async fn a_replica_whose_counter_is_not_known_gets_the_version_at_the_second_try() {
    let cluster = Cluster::of(3);
    let stranger = cluster.nodes[1].identity().node_id;
    let later = ombak_kv::replica::NodeCounter { boot: cluster.nodes[1].counter().boot + 1, counter: 0 };
    cluster.nodes[0].note_counter(stranger, later);
    cluster.put(0, "k", "v", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.put(2, "k2", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    assert_eq!(cluster.holders("k2"), [0, 1, 2]);
}

/// Another node coordinates a put `asis` that a node cannot store.
#[tokio::test]
async fn an_asis_put_goes_on_when_the_store_of_its_node_fails() {
    let cluster = Cluster::of(3);
    let faults = &cluster.faults[0];
    faults.set(&faults.writes_fail, true);
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new("v")] };
    let options = PutOptions { asis: true, w: count(2), ..PutOptions::default() };
    cluster.put_object(0, "k", object, options).await.unwrap();
    cluster.wait_until_equal(&[1, 2], "k").await;
    assert_eq!(cluster.holders("k"), [1, 2]);
}
