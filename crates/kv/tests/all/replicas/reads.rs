//! Reads over several nodes.

use crate::replicas::cluster::{Cluster, count};
use ombak_kv::{GetOptions, GetReply, PutOptions};
use ombak_types::{Error, Quorum};
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn a_read_repairs_the_replica_that_missed_a_write() {
    let cluster = Cluster::of(3);
    cluster.put(0, "k", "old", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, true);
    let refused = cluster.put(0, "k", "x", PutOptions { w: count(3), ..PutOptions::default() }).await;
    assert_eq!(refused, Err(Error::QuorumUnsatisfied { option: "w", need: 3, got: 2 }));
    cluster.put(0, "k", "y", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, false);
    assert_ne!(cluster.stored(2, "k"), cluster.stored(0, "k"));
    assert_eq!(cluster.values(1, "k").await, ["old", "x", "y"]);
    cluster.wait_until_equal(&[0, 1, 2], "k").await;
    // The key is new to one replica.
    cluster.set_cut(1, true);
    cluster.put(0, "new", "v", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(1, false);
    assert_eq!(cluster.stored(1, "new"), None);
    assert_eq!(cluster.values(1, "new").await, ["v"]);
    cluster.wait_until_equal(&[0, 1, 2], "new").await;
}

#[tokio::test]
async fn a_read_counts_nodes_that_do_not_answer_as_failures() {
    let cluster = Cluster::of(3);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(1, true);
    cluster.set_cut(2, true);
    let two = GetOptions { r: count(2), ..GetOptions::default() };
    let answer = cluster.get(0, "k", two).await;
    assert!(matches!(answer, Err(Error::QuorumUnsatisfied { option: "r", need: 2, .. })), "{answer:?}");
    let one = GetOptions { r: count(1), ..GetOptions::default() };
    assert!(matches!(cluster.get(0, "k", one).await, Ok(GetReply::Found(_))));
}

/// Two of three owners are down, and the third is slow: what the stand-ins do not have does not
/// count before the owner is late (docs/design/replication.md §14).
#[tokio::test]
async fn stand_ins_wait_for_the_owner_that_is_up() {
    let cluster = Cluster::of(5);
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let owners = cluster.holders("k");
    let through = (0..5).find(|node| !owners.contains(node)).unwrap();
    cluster.set_down(owners[0], true);
    cluster.set_down(owners[1], true);
    assert_eq!(cluster.values(through, "k").await, ["v"]);
    cluster.set_stopped(owners[2], true);
    let brief = GetOptions { timeout: Some(Duration::from_millis(50)), ..GetOptions::default() };
    let late = cluster.get(through, "k", brief).await;
    assert_eq!(late, Ok(GetReply::NotFound { tombstone: None }), "the stand-ins are a quorum when the owner is late");
}

/// The rule of docs/design/replication.md §13: what one replica cannot read, the others repair.
#[tokio::test]
async fn an_unreadable_copy_is_repaired_from_the_others() {
    for are_media_errors in [false, true] {
        unreadable_copy_is_repaired(are_media_errors).await;
    }
}

async fn unreadable_copy_is_repaired(are_media_errors: bool) {
    let cluster = Cluster::of(3);
    cluster.faults.iter().for_each(|faults| faults.set(&faults.are_media_errors, are_media_errors));
    cluster.put(0, "k", "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    let digest = cluster.wait_until_equal(&[0, 1, 2], "k").await;
    let faults = &cluster.faults[1];
    faults.set(&faults.reads_fail, true);
    // Another node's read finds the damage, and repairs it where it lies.
    let puts = || faults.puts.load(Ordering::SeqCst);
    let before = puts();
    assert_eq!(cluster.values(0, "k").await, ["v"]);
    cluster.wait_until("the copy is written anew", || puts() > before).await;
    faults.set(&faults.reads_fail, false);
    assert_eq!(cluster.stored(1, "k"), Some(digest));
    // If all are damaged, the read fails, and nothing is absent.
    cluster.faults.iter().for_each(|faults| faults.set(&faults.reads_fail, true));
    let all = GetOptions { r: Some(Quorum::One), ..GetOptions::default() };
    let refused = cluster.get(0, "k", all).await;
    assert!(matches!(refused, Err(Error::QuorumUnsatisfied { option: "r", need: 1, got: 0 })), "{refused:?}");
}

#[tokio::test]
async fn reads_are_not_repaired_beyond_the_limit() {
    let cluster = Cluster::configured(3, |config| config.read_repair.max = Some(0));
    cluster.set_cut(2, true);
    cluster.put(0, "k", "v", PutOptions { w: count(2), ..PutOptions::default() }).await.unwrap();
    cluster.set_cut(2, false);
    let skipped = |node: usize| {
        let numbers = cluster.nodes[node].stats().numbers();
        numbers.into_iter().find(|(name, _)| *name == "skipped_read_repairs_total").map_or(0, |(_, value)| value)
    };
    assert_eq!(cluster.values(0, "k").await, ["v"]);
    cluster.wait_until("the repair is left out", || skipped(0) == 1).await;
    assert_eq!(cluster.stored(2, "k"), None);
}
