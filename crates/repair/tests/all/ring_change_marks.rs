//! What was removed everywhere but at one node does not come back while the ring changes
//! (docs/design/anti-entropy.md §9).

use crate::engines::cluster::{Cluster, bucket};
use crate::exchanges::{World, storage_key};
use crate::other_ways::{class_of, dropped, host, remove, with_a_dead_copy};
use ombak_ring::placement::Step;
use ombak_storage::fs::sim::Loss;

/// A world with marks of three primaries, and a fourth node that owns nothing.
async fn with_a_spare_node() -> World {
    let world = World::with_nodes(4).await;
    world.round().await;
    world
}

/// The nodes that get other roles do what they have to.
async fn finish(cluster: &Cluster) {
    cluster.step(Step::Flip).await;
    cluster.step(Step::Finish).await;
}

/// A mark for the third primary covers the copy. Without the rule it comes back at the first one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_is_not_pushed_below_a_mark_to_a_primary_that_has_none() {
    let (world, key) = with_a_dead_copy().await;
    let (cluster, class) = (&world.cluster, class_of(&world.cluster, &key));
    let transfers = host(cluster, 2).transfers().clone();
    transfers.marks.retain(|_, node| node != cluster.id(0)).unwrap();
    transfers.owed.missed(class, cluster.id(0), 1);
    transfers.wake();
    cluster.wait_until("it is paid", |_| transfers.owed.list().is_empty()).await;
    assert_eq!(cluster.holders(&bucket(), &key), [2]);
}

/// Without the rule about proofs, the new primary gets the copy. Without the mark of the proof, the
/// exchange after the change pushes it: nobody knows that it was proved to the new primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_leaves_out_what_was_removed_and_gives_a_mark() {
    let world = with_a_spare_node().await;
    let (cluster, bucket, keys) = (&world.cluster, bucket(), world.keys());
    [0, 1].into_iter().for_each(|node| remove(cluster, node, &keys[0]));
    // Somebody has lost this one: it was not removed.
    remove(cluster, 0, &keys[1]);
    cluster.set_goal(&[3, 1, 2]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    assert_eq!(cluster.holders(&bucket, &keys[0]), [2]);
    assert!(cluster.holders(&bucket, &keys[1]).contains(&3));
    finish(cluster).await;
    (1..4).for_each(|node| cluster.repair(node).start_exchange_round());
    cluster.wait_until("the copy is gone", |c| c.holders(&bucket, &keys[0]).is_empty()).await;
    assert_eq!(dropped(cluster, 2), [storage_key(&keys[0])]);
    cluster.wait_until("the node has handed all back", |c| c.repair(0).settled().partitions_with_hints == 0).await;
    keys[1..].iter().for_each(|key| assert_eq!(cluster.holders(&bucket, key), [1, 2, 3], "{key}"));
}

/// Nobody can tell what such a member has removed. Without the rule the change would wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_waits_for_no_member_that_is_marked_as_down() {
    let world = with_a_spare_node().await;
    let (cluster, bucket, keys) = (&world.cluster, bucket(), world.keys());
    [0, 1].into_iter().for_each(|node| remove(cluster, node, &keys[0]));
    cluster.stop(1, Loss::Nothing).await;
    cluster.mark_down(1);
    cluster.set_goal(&[3, 1, 2]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    assert_eq!(cluster.holders(&bucket, &keys[0]), [2, 3]);
}

/// Without its marks the node hands the copy back as any other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_no_primary_any_more_judges_by_its_marks_what_it_hands_back() {
    let world = with_a_spare_node().await;
    let (cluster, bucket, keys) = (&world.cluster, bucket(), world.keys());
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    cluster.repair(2).set_handoff(false, true);
    [0, 1, 3].into_iter().for_each(|node| remove(cluster, node, &keys[0]));
    remove(cluster, 1, &keys[1]);
    finish(cluster).await;
    // It has forgotten what it needs no more.
    cluster.wait_until("it has looked at its marks", |_| world.figures(2).classes.is_empty()).await;
    cluster.repair(2).set_handoff(true, true);
    cluster.wait_until("the node has handed all back", |c| c.repair(2).settled().partitions_with_hints == 0).await;
    assert_eq!(cluster.holders(&bucket, &keys[0]), [0usize; 0]);
    assert_eq!(dropped(cluster, 2), [storage_key(&keys[0])]);
    keys[1..].iter().for_each(|key| assert_eq!(cluster.holders(&bucket, key), [0, 1, 3], "{key}"));
}
