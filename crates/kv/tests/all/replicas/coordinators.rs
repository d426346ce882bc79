//! Which node coordinates a put, and what happens if it cannot (docs/design/replication.md §12).

use crate::replicas::cluster::{Cluster, bucket, count};
use ombak_kv::replica::{ForwardedPut, PutFailure, ReplicaClient};
use ombak_kv::{PutOptions, PutRequest};
use ombak_types::{Error, Object, Sibling, StoreFailureKind, VectorClock};
use std::time::{Duration, Instant};

fn all() -> PutOptions {
    PutOptions { w: count(2), ..PutOptions::default() }
}

#[tokio::test]
async fn another_node_coordinates_when_the_disk_of_this_one_is_full() {
    let cluster = Cluster::of(3);
    let faults = &cluster.faults[0];
    faults.set(&faults.writes_fail, true);
    cluster.put(0, "k", "v", all()).await.unwrap();
    assert_eq!(cluster.holders("k"), [1, 2]);
    let siblings = cluster.values(1, "k").await;
    assert_eq!(siblings, ["v"], "there is one event for the put");
}

#[tokio::test]
async fn another_node_coordinates_when_this_one_cannot_read_its_copy() {
    for are_media_errors in [false, true] {
        let cluster = Cluster::of(3);
        cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
        let faults = &cluster.faults[0];
        faults.set(&faults.are_media_errors, are_media_errors);
        faults.set(&faults.reads_fail, true);
        cluster.put(0, "k", "new", all()).await.unwrap();
        assert_eq!(cluster.values(1, "k").await, ["new", "old"]);
    }
}

#[tokio::test]
async fn another_node_coordinates_when_the_first_is_not_reachable() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    let through = (0..5).find(|node| !owners.contains(node)).unwrap();
    cluster.set_cut(owners[0], true);
    cluster.put(through, "k", "w", all()).await.unwrap();
    assert_eq!(cluster.values(owners[1], "k").await, ["v", "w"]);
    // A put that every node refuses ends with the reason of one that has refused it.
    for &owner in &owners[1..] {
        let faults = &cluster.faults[owner];
        faults.set(&faults.writes_fail, true);
    }
    let strict = PutOptions { sloppy_quorum: false, ..all() };
    let refused = cluster.put(through, "k", "x", strict).await;
    assert!(matches!(&refused, Err(Error::Storage(why)) if why.kind == StoreFailureKind::DiskFull), "{refused:?}");
}

/// A node that is paused may execute the put when it wakes, so nobody else is asked.
#[tokio::test]
async fn a_put_that_may_have_been_executed_is_not_tried_elsewhere() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    let through = (0..5).find(|node| !owners.contains(node)).unwrap();
    let first = {
        // The first node of the list that is asked: the one whose absence changes nothing else.
        owners.iter().for_each(|&owner| cluster.set_stopped(owner, true));
        owners[0]
    };
    let brief = PutOptions { timeout: Some(Duration::from_millis(50)), ..all() };
    assert_eq!(cluster.put(through, "k", "w", brief).await, Err(Error::Timeout));
    owners.iter().for_each(|&owner| cluster.set_stopped(owner, false));
    assert_eq!(cluster.values(first, "k").await, ["v"]);
}

fn forwarded(number: u64, key: &'static str, value: &'static str) -> ForwardedPut {
    let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value)] };
    let request = PutRequest { bucket: bucket(), key: Some(key.into()), object, options: all() };
    ForwardedPut { number, request, begin_by: Some(Instant::now() + Duration::from_secs(30)), deadline: None }
}

#[tokio::test]
async fn a_forwarded_put_is_executed_once_and_not_late() {
    let cluster = Cluster::of(3);
    let replica = cluster.nodes[0].local_replica();
    let mut late = forwarded(1, "k", "late");
    late.begin_by = Some(Instant::now());
    assert_eq!(replica.coordinate(late).await, Err(PutFailure::Refused(Error::Timeout)));
    assert_eq!(cluster.holders("k"), [] as [usize; 0], "it is not executed, also not afterwards");
    replica.coordinate(forwarded(2, "k", "v")).await.unwrap();
    let again = replica.coordinate(forwarded(2, "k", "v")).await;
    assert_eq!(again, Err(PutFailure::Ended(Error::Timeout)), "the same number is not executed twice");
    assert_eq!(cluster.values(1, "k").await, ["v"]);
}

/// The rule of docs/design/replication.md §6 for stand-ins: what this one could lose with its power
/// does not reach the other.
#[tokio::test]
async fn a_stand_in_that_cannot_sync_sends_nothing_to_another_stand_in() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    let stand_ins: Vec<usize> = (0..5).filter(|node| !owners.contains(node)).collect();
    owners[1..].iter().for_each(|&owner| cluster.set_down(owner, true));
    let faults = &cluster.faults[stand_ins[0]];
    faults.set(&faults.syncs_fail, true);
    let replica = cluster.nodes[stand_ins[0]].local_replica();
    let put = replica.coordinate(forwarded(1, "k", "new")).await;
    assert_eq!(put, Err(PutFailure::Ended(Error::QuorumUnsatisfied { option: "w", need: 2, got: 1 })));
    cluster.wait_until("the owner has it", || cluster.stored(owners[0], "k") != cluster.stored(owners[1], "k")).await;
    assert_eq!(cluster.stored(stand_ins[1], "k"), None);
    // What is synced may go to both.
    faults.set(&faults.syncs_fail, false);
    let mut put = forwarded(2, "k", "newer");
    put.request.options.w = count(3);
    replica.coordinate(put).await.unwrap();
    assert!(cluster.stored(stand_ins[1], "k").is_some());
}

/// The nodes do not agree on which of them are up: the stand-in that is asked has no position.
#[tokio::test]
async fn a_node_without_a_position_refuses_and_another_is_asked() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    let stranger = (0..5).find(|node| !owners.contains(node)).unwrap();
    let refused = cluster.nodes[stranger].local_replica().coordinate(forwarded(3, "k", "w")).await;
    let is_unreachable = |why: &Error| matches!(why, Error::Storage(why) if why.kind == StoreFailureKind::Unreachable);
    assert!(matches!(&refused, Err(PutFailure::Refused(why)) if is_unreachable(why)), "{refused:?}");
    // One node believes that all owners are down, and asks the stand-ins, which believe that they
    // are up.
    let through = (0..5).rfind(|node| !owners.contains(node)).unwrap();
    owners.iter().for_each(|&owner| cluster.set_down_for(through, owner));
    cluster.put(through, "k2", "w", all()).await.unwrap();
    cluster.put(through, "k", "w", all()).await.unwrap();
}
