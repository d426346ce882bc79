//! What brings copies back to where they belong: hints, owed marks and filling classes, over
//! several engines in one process.

use crate::engines::cluster::{Cluster, RING_SIZE, bucket, count};
use bytes::Bytes;
use ombak_kv::{BackendChoice, ClassId, GetOptions, GetReply, KvConfig, PutOptions};
use ombak_repair::{KeyChoice, UnreadableVersion};
use ombak_storage::fs::sim::Loss;
use ombak_storage::{BackendFactory, MemoryConfig, MemoryFactory, MultiFactory};
use ombak_types::{Bucket, Error, Object, Sibling, VectorClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

/// One copy is enough.
fn one() -> PutOptions {
    PutOptions { dw: count(1), ..w(1) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_fallback_took_goes_back_and_leaves_it() {
    let cluster = Cluster::of(5);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[0], true);
    cluster.put(owners[1], &bucket, "k", "v", w(3)).await.unwrap();
    let fallback = cluster.holders(&bucket, "k").into_iter().find(|node| !owners.contains(node)).unwrap();
    assert!(!cluster.repair(fallback).settled().is_settled());
    let classes = || (0..RING_SIZE).map(|partition| ClassId { partition, n: 3 });
    assert_eq!(classes().filter(|class| cluster.kv(fallback).may_hold_hints(*class)).count(), 1);
    assert_eq!(cluster.stored(owners[0], &bucket, "k"), None);
    cluster.set_down(owners[0], false);
    cluster.wait_until_settled().await;
    assert!(!classes().any(|class| cluster.kv(fallback).may_hold_hints(class)));
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    assert_eq!(cluster.repair(fallback).settled().hints.keys, 0);
    assert!((0..5).all(|node| cluster.repair(node).transfers().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_stays_while_a_primary_is_down_and_goes_to_the_others_meanwhile() {
    let cluster = Cluster::of(5);
    let bucket = bucket();
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[0], true);
    cluster.set_cut(owners[2], true);
    let coordinator = owners[1];
    cluster.put(coordinator, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.wait_until("the fallback has it", |c| c.holders(&bucket, "k").len() == 2).await;
    let fallback = cluster.holders(&bucket, "k").into_iter().find(|node| !owners.contains(node)).unwrap();
    // Only the fallback can bring it to the third primary now.
    cluster.stop(coordinator, Loss::Nothing).await;
    cluster.set_cut(owners[2], false);
    cluster.wait_until("another primary has it", |c| c.stored(owners[2], &bucket, "k").is_some()).await;
    assert!(cluster.stored(fallback, &bucket, "k").is_some(), "a primary is down");
    cluster.start(coordinator);
    cluster.set_down(owners[0], false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_missed_a_write_gets_it_without_a_read() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "k", "old", w(3)).await.unwrap();
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, "k", "new", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    let partition = (0..RING_SIZE).find(|p| cluster.kv(0).has_owed(ClassId { partition: *p, n: 3 }, cluster.id(2)));
    assert!(partition.is_some());
    cluster.set_cut(2, false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_with_a_lower_n_val_reaches_all_primaries() {
    let cluster = Cluster::of(5);
    let bucket = bucket();
    for key in 0..20 {
        let (key, options) = (format!("k{key}"), PutOptions { n_val: Some(1), ..PutOptions::default() });
        cluster.put(0, &bucket, &key, "v", options).await.unwrap();
    }
    cluster.wait_until_settled().await;
    for key in 0..20 {
        cluster.assert_only_owners_hold(&bucket, &format!("k{key}"), 3);
    }
}

/// The history of docs/design/replication.md §1: the fallback of one class is a primary of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_of_one_class_keeps_nothing_of_another() {
    let cluster = Cluster::of(4);
    let (two, three) = (cluster.create_type("two", 2), cluster.create_type("three", 3));
    for key in ["a", "b", "c", "d"] {
        let owners = cluster.owners(&two, key, 2);
        cluster.set_down(owners[0], true);
        cluster.put(owners[1], &two, key, "v", w(2)).await.unwrap();
        let home_is_shared = cluster.holders(&two, key);
        assert_eq!(home_is_shared.len(), 2);
        cluster.set_down(owners[0], false);
    }
    cluster.put(0, &three, "k", "v", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    for key in ["a", "b", "c", "d"] {
        cluster.assert_only_owners_hold(&two, key, 2);
    }
    cluster.assert_only_owners_hold(&three, "k", 3);
}

/// docs/design/replication.md §4a: a write that arrives between the proof and the removal stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_changed_since_its_proof_is_not_removed() {
    let cluster = Arc::new(Cluster::of(5));
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[0], true);
    cluster.put(owners[1], &bucket, "k", "v", w(3)).await.unwrap();
    let fallback = cluster.holders(&bucket, "k").into_iter().find(|node| !owners.contains(node)).unwrap();
    // Each of the first answers that the fallback gets, to comparisons and to pushes, is followed
    // by a write that only the fallback takes.
    const LATE_WRITES: usize = 8;
    let writes = Arc::new(AtomicUsize::new(0));
    let (there, seen, told) = (Arc::downgrade(&cluster), writes.clone(), bucket.clone());
    let handle = tokio::runtime::Handle::current();
    cluster.on_answer(move |_| {
        let Some(cluster) = there.upgrade() else { return };
        if seen.fetch_add(1, Ordering::SeqCst) >= LATE_WRITES {
            return;
        }
        let others = || (0..5).filter(|node| *node != fallback);
        others().for_each(|node| cluster.set_down(node, true));
        let value = format!("late {}", seen.load(Ordering::SeqCst));
        let put = async { cluster.put(fallback, &told, "k", &value, w(1)).await };
        tokio::task::block_in_place(|| handle.block_on(put)).unwrap();
        others().for_each(|node| cluster.set_down(node, false));
    });
    cluster.set_down(owners[0], false);
    cluster.wait_until("the late writes", |_| writes.load(Ordering::SeqCst) > LATE_WRITES).await;
    cluster.wait_until_settled().await;
    cluster.no_hook();
    let GetReply::Found(object) = cluster.get(owners[0], &bucket, "k", GetOptions::default()).await.unwrap() else {
        panic!("not found")
    };
    assert_eq!(object.siblings.len(), 1 + LATE_WRITES, "no late write is lost");
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// docs/design/replication.md §4b: what a node proved survives the loss of its power.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_proved_survives_the_loss_of_power_of_every_primary() {
    let cluster = Arc::new(Cluster::of(5));
    let bucket = bucket();
    let owners = cluster.owners(&bucket, "k", 3);
    owners.iter().for_each(|&node| cluster.set_down(node, true));
    let fallback = (0..5).find(|node| !owners.contains(node)).unwrap();
    cluster.put(fallback, &bucket, "k", "v", w(1)).await.unwrap();
    owners.iter().for_each(|&node| cluster.set_down(node, false));
    cluster.wait_until("the fallbacks gave it back", |c| c.holders(&bucket, "k").len() == 3).await;
    for &node in &owners {
        cluster.stop(node, Loss::Everything).await;
    }
    owners.iter().for_each(|&node| cluster.start(node));
    assert_eq!(cluster.holders(&bucket, "k").len(), 3, "it was on disk before the fallback removed it");
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_holds_too_much_for_others_takes_no_more() {
    let cluster = Cluster::configured(5, |config| config.transfer.foreign_bytes_max = 10_000);
    let bucket = bucket();
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[0], true);
    let value = "x".repeat(4_000);
    let all = PutOptions { w: count(3), ..PutOptions::default() };
    let mut refused = None;
    for _ in 0..10 {
        refused = refused.or(cluster.put(owners[1], &bucket, "k", &value, all.clone()).await.err());
    }
    assert!(matches!(refused, Some(Error::Overload | Error::QuorumUnsatisfied { .. })), "{refused:?}");
    cluster.put(owners[1], &bucket, "k", &value, w(2)).await.unwrap();
    cluster.set_down(owners[0], false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_pushed_while_handoff_is_disabled() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    (0..3).for_each(|node| cluster.repair(node).set_handoff(false, true));
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    cluster.set_cut(2, false);
    cluster.repair(2).set_handoff(true, false);
    cluster.repair(0).set_handoff(true, true);
    cluster.wait_until("a push was refused", |c| c.pushed() > 0).await;
    assert_eq!(cluster.stored(2, &bucket, "k"), None);
    (1..3).for_each(|node| cluster.repair(node).set_handoff(true, true));
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// A transfer that is under way when an operator disables it ends, and begins again when it is
/// enabled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disabling_handoff_ends_what_is_under_way() {
    const KEYS: usize = 400;
    let cluster = Cluster::configured(5, |config| config.transfer.bytes_per_second = 4_000);
    let bucket = bucket();
    let value = "x".repeat(1_000);
    cluster.set_down(0, true);
    for key in 0..KEYS {
        cluster.put(1, &bucket, &format!("k{key}"), &value, w(3)).await.unwrap();
    }
    cluster.set_down(0, false);
    let pushed = |c: &Cluster| (1..5).map(|node| c.repair(node).transfer_figures().hinted_objects_sent).sum::<u64>();
    cluster
        .wait_until("some hints go back", |c| pushed(c) > 0 && (1..5).any(|n| !c.repair(n).transfers().is_empty()))
        .await;
    (1..5).for_each(|node| cluster.repair(node).set_handoff(false, true));
    (1..5).for_each(|node| cluster.repair(node).set_transfer_rate(0));
    cluster.wait_until("all transfers end", |c| (1..5).all(|node| c.repair(node).transfers().is_empty())).await;
    let before = pushed(&cluster);
    let held = |c: &Cluster| (1..5).map(|node| c.repair(node).transfer_figures().hinted_objects).sum::<u64>();
    assert!(held(&cluster) > 0, "at 4 kB/s they cannot all be back yet");
    // Without the limit of the rate, everything would be back at once.
    cluster.put(1, &bucket, "another", "v", w(3)).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(pushed(&cluster), before);
    (1..5).for_each(|node| cluster.repair(node).set_transfer_limit(0));
    (1..5).for_each(|node| cluster.repair(node).set_handoff(true, true));
    let reached = cluster.repair(1).transfer_config();
    assert_eq!((reached.concurrency, reached.bytes_per_second, reached.gives, reached.takes), (0, 0, true, true));
    assert_eq!(pushed(&cluster), before, "no work begins at the limit 0");
    (1..5).for_each(|node| cluster.repair(node).set_transfer_limit(2));
    cluster.wait_until_settled().await;
    let received = cluster.repair(0).transfer_figures();
    // Pushes that were under way when the rest was broken off count only where they arrived.
    assert!(received.objects_received >= pushed(&cluster), "{received:?}");
    assert_eq!(held(&cluster), 0);
    for key in 0..KEYS {
        cluster.assert_only_owners_hold(&bucket, &format!("k{key}"), 3);
    }
}

/// A node that refused pushes is tried again at once, and not after the pause that has grown
/// meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_refused_is_counted_and_comes_when_it_is_asked_for() {
    let cluster = Cluster::of(5);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.repair(owners[0]).set_handoff(true, false);
    cluster.set_down(owners[0], true);
    cluster.put(owners[1], &bucket, "k", "v", w(3)).await.unwrap();
    cluster.set_down(owners[0], false);
    // The pauses are 0.5 s, 1 s, 2 s, 4 s and 8 s.
    cluster.wait_until("it refuses five times", |c| c.repair(owners[0]).transfer_figures().rejected >= 5).await;
    assert_eq!(cluster.stored(owners[0], &bucket, "k"), None);
    cluster.repair(owners[0]).set_handoff(true, true);
    let began = std::time::Instant::now();
    (0..5).for_each(|node| cluster.repair(node).retry_transfers());
    cluster.wait_until_settled().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(7), "{:?}", began.elapsed());
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// The classes of a node that are not full.
fn filling(cluster: &Cluster, node: usize) -> usize {
    cluster.kv(node).filling_classes().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lost_its_newest_writes_is_filled_before_its_not_found_counts() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    for key in 0..50 {
        cluster.put(0, &bucket, &format!("k{key}"), "v", w(3)).await.unwrap();
    }
    cluster.wait_until_saved(2).await;
    cluster.stop(2, Loss::Everything).await;
    // Nobody can fill it yet.
    cluster.set_cut(0, true);
    cluster.set_cut(1, true);
    cluster.start(2);
    assert!(filling(&cluster, 2) > 0);
    assert!(cluster.stored(2, &bucket, "k1").is_none(), "the write was not synced");
    let one = GetOptions { r: count(1), sloppy_quorum: true, ..GetOptions::default() };
    let answer = cluster.get(2, &bucket, "k1", one).await;
    assert!(!matches!(answer, Ok(GetReply::NotFound { .. })), "{answer:?}");
    cluster.set_cut(0, false);
    cluster.set_cut(1, false);
    cluster.wait_until_settled().await;
    for key in 0..50 {
        cluster.assert_only_owners_hold(&bucket, &format!("k{key}"), 3);
    }
    let absent = GetOptions { r: count(3), ..GetOptions::default() };
    let answer = cluster.get(2, &bucket, "absent", absent).await;
    assert!(matches!(answer, Ok(GetReply::NotFound { .. })), "{answer:?}");
}

/// docs/design/replication.md §1: the file system of a replica shuts itself down, and is mounted
/// again without what was not synced. The machine runs on, and no note of the failure reaches
/// the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_lost_its_newest_writes_on_the_same_boot_is_filled_too() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "k", "v", w(3)).await.unwrap();
    cluster.wait_until_saved(2).await;
    cluster.stop(2, Loss::Remount).await;
    // Nobody can fill it yet.
    cluster.set_cut(0, true);
    cluster.set_cut(1, true);
    cluster.start(2);
    assert!(cluster.stored(2, &bucket, "k").is_none(), "the write was not synced");
    let class = ClassId { partition: cluster.home_of(&bucket, "k"), n: 3 };
    assert!(!cluster.kv(2).is_full(class), "its not-found would count");
    cluster.set_cut(0, false);
    cluster.set_cut(1, false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    assert!(cluster.kv(2).is_full(class));
}

/// Nothing that is saved tells that a store was ever written to: its first write came after the
/// last checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_whose_young_store_is_lost_is_filled_before_its_not_found_counts() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "old", "v", w(3)).await.unwrap();
    cluster.wait_until_saved(2).await;
    let young = |key: &String| cluster.home_of(&bucket, key) != cluster.home_of(&bucket, "old");
    let young = (0..).map(|number| format!("young{number}")).find(young).unwrap();
    cluster.put(0, &bucket, &young, "v", w(3)).await.unwrap();
    cluster.stop(2, Loss::Nothing).await;
    cluster.lose_stores(2);
    // Nobody can fill it yet.
    cluster.set_cut(0, true);
    cluster.set_cut(1, true);
    cluster.start(2);
    let is_full = |key: &str| cluster.kv(2).is_full(ClassId { partition: cluster.home_of(&bucket, key), n: 3 });
    assert_eq!((is_full("old"), is_full(&young)), (false, false));
    cluster.set_cut(0, false);
    cluster.set_cut(1, false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, &young, 3);
}

/// docs/design/replication.md §1: the coordinator of a write has lost it, and with it the mark that
/// says who missed the write. Only the primary that is compared last has the write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_filling_replica_got_last_reaches_the_primaries_that_were_compared_before() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    let (coordinator, mut others) = (0, [1, 2]);
    cluster.wait_until_saved(coordinator).await;
    let before = cluster.snapshot(coordinator);
    // A filling replica is compared with the others in the order of their ids.
    others.sort_by_key(|node| cluster.id(*node));
    let [first, last] = others;
    cluster.set_down(first, true);
    cluster.put(coordinator, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.stop(coordinator, Loss::Nothing).await;
    cluster.set_disk(coordinator, &before);
    cluster.lose_stores(coordinator);
    cluster.set_down(last, true);
    cluster.start(coordinator);
    assert!(!cluster.kv(coordinator).is_full(ClassId { partition: cluster.home_of(&bucket, "k"), n: 3 }));
    assert_eq!(cluster.holders(&bucket, "k"), [last]);
    cluster.set_down(first, false);
    cluster.set_down(last, false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// docs/design/replication.md §18: nobody is full, and all compare with each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_loss_of_power_of_all_the_nodes_fill_each_other() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    for key in 0..50 {
        cluster.put(key % 3, &bucket, &format!("k{key}"), "v", w(3)).await.unwrap();
    }
    for node in 0..3 {
        cluster.wait_until_saved(node).await;
    }
    for node in 0..3 {
        cluster.stop(node, Loss::Some).await;
    }
    (0..3).for_each(|node| cluster.start(node));
    assert!((0..3).any(|node| filling(&cluster, node) > 0));
    cluster.wait_until_settled().await;
    for key in (0..50).map(|key| format!("k{key}")) {
        let versions: Vec<_> = (0..3).map(|node| cluster.stored(node, &bucket, &key)).collect();
        assert!(versions.iter().all(|version| *version == versions[0]), "{key}: {versions:?}");
    }
    for node in 0..3 {
        assert_eq!(filling(&cluster, node), 0);
        cluster.close(node).await;
    }
    (0..3).for_each(|node| cluster.start(node));
    assert_eq!((0..3).map(|node| filling(&cluster, node)).sum::<usize>(), 0, "full replicas stay full");
}

/// docs/design/replication.md §2: the marks of a killed process are gone, and everything after its
/// last checkpoint is owed instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_node_still_owes_what_others_missed() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.wait_until_saved(0).await;
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.stop(0, Loss::Nothing).await;
    cluster.set_cut(2, false);
    cluster.start(0);
    cluster.wait_until("the other node has it", |c| c.stored(2, &bucket, "k").is_some()).await;
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_closed_in_order_keeps_its_marks() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    cluster.wait_until_saved(0).await;
    cluster.close(0).await;
    cluster.start(0);
    assert!(cluster.repair(0).settled().owed_marks > 0);
    cluster.set_cut(2, false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// docs/design/replication.md §13: a replica that cannot read its copy refuses what others push. It
/// notices that, and gets the version from the others without a read of a client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_cannot_read_its_copy_does_not_hold_up_owed_marks() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    (0..3).for_each(|node| cluster.repair(node).set_handoff(false, true));
    cluster.set_cut(0, true);
    cluster.put(2, &bucket, "k", "one", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(2).settled().owed_marks > 0).await;
    cluster.set_cut(0, false);
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, "k", "other", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    cluster.damage(2, &bucket, "k");
    cluster.set_cut(2, false);
    // Only the one that cannot read its copy does not push it.
    cluster.repair(0).set_handoff(true, true);
    cluster.wait_until("it has what it missed", |c| c.repair(0).settled().owed_marks == 0).await;
    (1..3).for_each(|node| cluster.repair(node).set_handoff(true, true));
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    cluster.wait_until("it is repaired", |c| c.kv(2).unreadable_keys() == (0, 1)).await;
}

/// The node that owes cannot read what it owes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_read_what_it_owes_repairs_it_first() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    cluster.damage(0, &bucket, "k");
    cluster.set_cut(2, false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    cluster.wait_until("it is repaired", |c| c.kv(0).unreadable_keys() == (0, 1)).await;
}

/// A hint that cannot be read goes when all primaries have exactly that version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_that_cannot_be_read_goes_when_all_primaries_have_it() {
    let cluster = Cluster::of(4);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[2], true);
    cluster.put(owners[0], &bucket, "k", "v", w(3)).await.unwrap();
    let fallback = cluster.holders(&bucket, "k").into_iter().find(|node| !owners.contains(node)).unwrap();
    cluster.damage(fallback, &bucket, "k");
    cluster.set_down(owners[2], false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// What a node has found that it cannot read, without the number of tries.
fn unreadable(cluster: &Cluster, node: usize) -> Vec<(Bucket, Bytes, bool)> {
    let report = cluster.repair(node).unreadable_report(10);
    assert_eq!((report.more, report.versions.len() as u64), (0, cluster.repair(node).settled().unreadable_keys));
    report.versions.into_iter().map(|version| (version.bucket, version.key, version.is_hint)).collect()
}

/// Waits until a node has tried in vain to repair what it cannot read.
async fn wait_until_tried(cluster: &Cluster, node: usize) {
    let is_tried = |version: &UnreadableVersion| version.failures >= 2;
    let tried = |c: &Cluster| c.repair(node).unreadable_report(1).versions.iter().any(is_tried);
    cluster.wait_until("a repair has failed twice", tried).await;
}

/// Nobody can tell whether what the primaries hold by now has seen the hint: it stays, an operator
/// sees why, and ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_that_cannot_be_read_stays_until_an_operator_gives_it_up() {
    let cluster = Cluster::of(4);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[2], true);
    cluster.put(owners[0], &bucket, "k", "v", w(3)).await.unwrap();
    let fallback = cluster.holders(&bucket, "k").into_iter().find(|node| !owners.contains(node)).unwrap();
    // A node that has just stored a version has its head in memory, and so its clock.
    cluster.close(fallback).await;
    cluster.set_down(owners[2], false);
    let GetReply::Found(Object { clock, .. }) =
        cluster.get(owners[0], &bucket, "k", GetOptions::default()).await.unwrap()
    else {
        panic!("not found")
    };
    let later = Object { clock, siblings: vec![Sibling::new("later")] };
    cluster.put_object(owners[0], &bucket, "k", later, w(3)).await.unwrap();
    cluster.damage(fallback, &bucket, "k");
    cluster.start(fallback);
    wait_until_tried(&cluster, fallback).await;
    assert_eq!(unreadable(&cluster, fallback), [(bucket.clone(), "k".into(), true)]);
    let settled = cluster.repair(fallback).settled();
    assert_eq!((settled.partitions_with_hints, settled.unreadable_keys, settled.is_settled()), (1, 1, false));
    let drop = |choice: KeyChoice| cluster.repair(fallback).drop_unreadable(&choice);
    assert_eq!(drop(KeyChoice::Key(bucket.clone(), "other".into())), Ok(0));
    assert_eq!(drop(KeyChoice::Bucket(Bucket::untyped("other"))), Ok(0));
    assert_eq!(drop(KeyChoice::Key(bucket.clone(), "k".into())), Ok(1));
    assert_eq!(filling(&cluster, fallback), 0, "it is no primary of the key");
    cluster.wait_until_settled().await;
    assert_eq!(unreadable(&cluster, fallback), []);
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// A version that one primary holds and cannot read, and no other node has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_replica_can_read_stays_until_an_operator_gives_it_up() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let cut = |is_cut| (1..3).for_each(|node| cluster.set_cut(node, is_cut));
    cut(true);
    cluster.put(0, &bucket, "k", "v", one()).await.unwrap();
    cluster.wait_until("the misses are noted", |c| c.repair(0).settled().owed_marks == 2).await;
    cluster.damage(0, &bucket, "k");
    cut(false);
    wait_until_tried(&cluster, 0).await;
    assert_eq!(unreadable(&cluster, 0), [(bucket.clone(), "k".into(), false)]);
    assert!(!cluster.repair(0).settled().is_settled() && cluster.repair(0).settled().owed_marks > 0);
    let read = cluster.get(1, &bucket, "k", GetOptions { r: count(3), ..GetOptions::default() }).await;
    assert!(read.is_err(), "{read:?}");
    // What it lacks then is not known as long as nobody is there to compare it.
    cut(true);
    assert_eq!(cluster.repair(0).drop_unreadable(&KeyChoice::All), Ok(1));
    assert!(filling(&cluster, 0) > 0);
    cluster.stop(0, Loss::Nothing).await;
    cluster.start(0);
    assert!(filling(&cluster, 0) > 0, "it is on the disk");
    cut(false);
    cluster.wait_until_settled().await;
    let read = cluster.get(1, &bucket, "k", GetOptions { r: count(3), ..GetOptions::default() }).await;
    assert!(matches!(read, Ok(GetReply::NotFound { .. })), "{read:?}");
}

/// A disk that can be read again gives back what it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_be_read_again_is_not_given_up() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    (1..3).for_each(|node| cluster.set_cut(node, true));
    cluster.put(0, &bucket, "k", "v", one()).await.unwrap();
    cluster.damage(0, &bucket, "k");
    cluster.get(0, &bucket, "k", GetOptions::default()).await.unwrap_err();
    wait_until_tried(&cluster, 0).await;
    cluster.heal(0, &bucket, "k");
    assert_eq!(cluster.repair(0).drop_unreadable(&KeyChoice::All), Ok(0));
    (1..3).for_each(|node| cluster.set_cut(node, false));
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// A node that cannot store a put `asis` does not coordinate it, because it could owe nobody what
/// it does not have. The node that coordinates it instead owes it to the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_could_not_store_reaches_all_primaries() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "other", "v", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    cluster.set_cut(2, true);
    cluster.set_free_bytes(0, Some(0));
    let asis = PutOptions { asis: true, ..one() };
    cluster.put(0, &bucket, "k", "v", asis).await.unwrap();
    assert_eq!(cluster.holders(&bucket, "k"), [1]);
    // What the node knew in memory only is lost.
    cluster.stop(0, Loss::Nothing).await;
    cluster.set_free_bytes(0, None);
    cluster.start(0);
    cluster.set_cut(2, false);
    cluster.wait_until("every primary has it", |c| c.holders(&bucket, "k").len() == 3).await;
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// A put `asis` is not acknowledged if no node that can be reached has stored it first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_asis_that_nobody_can_store_is_refused() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    (0..3).for_each(|node| cluster.set_free_bytes(node, Some(0)));
    let asis = PutOptions { asis: true, ..w(1) };
    let refused = cluster.put(0, &bucket, "k", "v", asis).await;
    assert!(matches!(refused, Err(Error::Storage(_))), "{refused:?}");
    assert!(cluster.holders(&bucket, "k").is_empty());
}

/// What a node holds for others is counted once, however often it is written, and is told by owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_that_is_written_again_counts_once() {
    let cluster = Cluster::configured(5, |config| config.transfer.foreign_bytes_max = 10_000);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    cluster.set_down(owners[0], true);
    for number in 0..30 {
        let clock = match cluster.get(owners[1], &bucket, "k", GetOptions::default()).await.unwrap() {
            GetReply::Found(object) => object.clock,
            GetReply::NotFound { .. } => VectorClock::new(),
        };
        let sibling = Sibling::new(format!("{number}{}", "x".repeat(3_000)));
        let object = Object { clock, siblings: vec![sibling] };
        cluster.put_object(owners[1], &bucket, "k", object, w(3)).await.unwrap();
    }
    let fallback = cluster.holders(&bucket, "k").into_iter().find(|node| !owners.contains(node)).unwrap();
    let held = cluster.kv(fallback).foreign_by_owner();
    assert_eq!(held.keys().copied().collect::<Vec<_>>(), [cluster.id(owners[0])]);
    let amount = held[&cluster.id(owners[0])];
    assert!(amount.keys == 1 && (3_000..4_000).contains(&amount.bytes), "{amount:?}");
    cluster.set_down(owners[0], false);
    cluster.wait_until_settled().await;
    assert!(cluster.kv(fallback).foreign_by_owner().is_empty());
}

/// Backends `a` (the default) and `b`.
fn two_backends(config: &mut KvConfig) {
    let names = ["a", "b"];
    let choice = names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect();
    let choice = Arc::new(BackendChoice::new(choice, 0, Vec::new()));
    let store = |name: &&str| -> (String, Arc<dyn BackendFactory>) {
        ((*name).to_owned(), Arc::new(MemoryFactory::new(MemoryConfig::default())))
    };
    config.backend = Arc::new(MultiFactory::new(names.iter().map(store).collect(), choice.clone()));
    config.backend_choice = Some(choice);
}

/// A node that does not know a bucket type yet does not know the backend of its buckets. It takes
/// no copy until it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_an_unknown_bucket_type_comes_again_when_the_type_is_known() {
    let cluster = Cluster::configured(3, two_backends);
    let props = [("backend".to_owned(), "b".into()), ("allow_mult".to_owned(), true.into())].into_iter().collect();
    let create = |node: usize| {
        cluster.kv(node).buckets().create_type(b"t", &props).unwrap();
        cluster.kv(node).buckets().activate_type(b"t").unwrap();
    };
    (0..2).for_each(create);
    let bucket = Bucket::typed("t", "b");
    cluster.put(0, &bucket, "k", "v", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    create(2);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    for node in 0..3 {
        let children = cluster.kv(node).vnode_status().into_iter().flat_map(|(_, status)| status.children);
        let keys = children.fold([0, 0], |[a, b], child| match child.name.as_str() {
            "a" => [a + child.keys, b],
            _ => [a, b + child.keys],
        });
        assert_eq!(keys, [0, 1], "node {node}");
    }
}
