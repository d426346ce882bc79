//! Homes that change their replicas, over several engines in one process: what the nodes become,
//! what they prove to each other, and what they keep.

use crate::engines::cluster;

use crate::engines::cluster::{Cluster, bucket, count};
use bytes::Bytes;
use ombak_kv::replica::{Give, GivePass, TransferClient};
use ombak_kv::{ClassId, DeleteMode, FillReason, PutOptions};
use ombak_repair::TransferKind;
use ombak_ring::placement::{Step, StepOf};
use ombak_storage::fs::sim::Loss;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Bucket, VectorClock};
use std::time::Duration;

const KEYS: usize = 60;

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

fn key(number: usize) -> String {
    format!("k{number}")
}

/// Four nodes of which three own everything, and some objects.
async fn three_of_four() -> (Cluster, Bucket) {
    let cluster = Cluster::with_owners(4, 3, |_| ());
    let bucket = bucket();
    for number in 0..KEYS {
        cluster.put(number % 3, &bucket, &key(number), "value", w(3)).await.unwrap();
    }
    cluster.wait_until_settled().await;
    (cluster, bucket)
}

/// The classes of a node that are not full, with one reason.
fn filling(cluster: &Cluster, node: usize, reason: FillReason) -> usize {
    cluster.kv(node).filling_classes().iter().filter(|(_, why)| *why == reason).count()
}

fn assert_only_owners_hold_all(cluster: &Cluster, bucket: &Bucket) {
    (0..KEYS).for_each(|number| cluster.assert_only_owners_hold(bucket, &key(number), 3));
}

/// Ends a change that is proved. Afterwards each object is at its owners alone.
async fn flip_and_finish(cluster: &Cluster, bucket: &Bucket) {
    cluster.step(Step::Flip).await;
    cluster.step(Step::Finish).await;
    cluster.wait_until_settled().await;
    assert_only_owners_hold_all(cluster, bucket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_the_place_of_another() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    assert!(filling(&cluster, 3, FillReason::Joining) > 0 && filling(&cluster, 0, FillReason::Joining) == 0);
    let joining = cluster.kv(3).filling_classes()[0].0;
    assert!(!cluster.kv(3).is_full(joining), "nothing of it is there yet");
    assert!((0..3).all(|node| cluster.repair(node).ring_report(cluster.placement().version()).proved.is_empty()));
    cluster.prove_all().await;
    assert!(!cluster.kv(3).is_full(joining), "the home has not flipped");
    assert_eq!(cluster.repair(3).ring_report(cluster.placement().version()).lacking, []);
    cluster.step(Step::Flip).await;
    assert_eq!((filling(&cluster, 3, FillReason::Joining), cluster.kv(3).is_full(joining)), (0, true));
    for number in 0..KEYS {
        assert!(cluster.holders(&bucket, &key(number)).contains(&2), "nobody drops anything before the end");
    }
    cluster.step(Step::Finish).await;
    cluster.wait_until_settled().await;
    assert_only_owners_hold_all(&cluster, &bucket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_is_aborted_gives_back_what_was_taken_and_proves_nothing_for_the_next_one() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    cluster.step(Step::Abort).await;
    assert_eq!(filling(&cluster, 3, FillReason::Joining), 0);
    cluster.wait_until_settled().await;
    assert_only_owners_hold_all(&cluster, &bucket);
    cluster.step(Step::Begin).await;
    // The proofs of the first attempt are of objects that the node has dropped since. Orders of the
    // second one come only when everybody has confirmed it.
    (0..3).for_each(|node| cluster.repair(node).set_handoff(false, true));
    (0..3).for_each(|node| cluster.order_proofs_of(node));
    tokio::task::yield_now().await;
    assert!((0..3).all(|node| cluster.repair(node).ring_report(cluster.placement().version()).proved.is_empty()));
    (0..3).for_each(|node| cluster.repair(node).set_handoff(true, true));
    cluster.prove_all().await;
    flip_and_finish(&cluster, &bucket).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_for_another_begin_proves_nothing() {
    let (cluster, _) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    let begun = cluster.after(Step::Begin);
    // The receivers know the begin, and one of the provers does not.
    cluster.adopt([0, 1, 3], &begun).await;
    let before = cluster.placement();
    cluster.follow(begun).await;
    cluster.adopt([2], &before).await;
    (0..3).for_each(|node| cluster.order_proofs_of(node));
    cluster.wait_until("the others have proved", |c| c.has_proved_all(0) && c.has_proved_all(1)).await;
    assert_eq!(cluster.repair(2).ring_report(before.version()).proved, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_skipped_the_begin_compares_before_it_is_full() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    let begun = cluster.after(Step::Begin);
    let flipped = {
        let steps =
            begun.homes().map(|home| StepOf { home: home.home(), seen: home.version().number, step: Step::Flip });
        begun.after(&steps.collect::<Vec<_>>()).unwrap()
    };
    cluster.set_cut(3, true);
    cluster.follow(flipped).await;
    assert!(filling(&cluster, 3, FillReason::NewStore) > 0 && filling(&cluster, 0, FillReason::NewStore) == 0);
    cluster.set_cut(3, false);
    cluster.wait_until("it is full", |c| c.kv(3).filling_classes().is_empty()).await;
    cluster.step(Step::Finish).await;
    cluster.wait_until_settled().await;
    assert_only_owners_hold_all(&cluster, &bucket);
}

/// It was marked as down, so the homes flipped without its proof. What it alone holds, no proof of
/// the others has brought to the new member.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_did_not_prove_and_stays_a_primary_owes_what_it_holds() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    [0, 2].into_iter().for_each(|node| cluster.set_down(node, true));
    for number in 0..KEYS {
        let strict = PutOptions { sloppy_quorum: false, dw: count(1), ..w(1) };
        cluster.put(1, &bucket, &format!("alone {number}"), "value", strict).await.unwrap();
    }
    cluster.close(1).await;
    [0, 2].into_iter().for_each(|node| cluster.set_down(node, false));
    cluster.step(Step::Begin).await;
    [0, 2].into_iter().for_each(|node| cluster.order_proofs_of(node));
    cluster.wait_until("the others have proved", |c| c.has_proved_all(0) && c.has_proved_all(2)).await;
    cluster.step(Step::Flip).await;
    cluster.step(Step::Finish).await;
    cluster.start(1);
    cluster.wait_until_settled().await;
    (0..KEYS).for_each(|number| cluster.assert_only_owners_hold(&bucket, &format!("alone {number}"), 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_lacks_outlives_its_process() {
    let (cluster, _) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.set_handoffs(false);
    cluster.step(Step::Begin).await;
    let joining = filling(&cluster, 3, FillReason::Joining);
    assert!(joining > 0);
    cluster.close(3).await;
    cluster.start(3);
    assert_eq!(filling(&cluster, 3, FillReason::Joining), joining);
    // It also finds out what happened while it was away, although it has begun nothing since.
    cluster.stop(3, Loss::Nothing).await;
    cluster.step(Step::Abort).await;
    cluster.step(Step::Begin).await;
    cluster.step(Step::Abort).await;
    cluster.start(3);
    assert_eq!(cluster.kv(3).filling_classes(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_joining_store_that_loses_writes_is_not_full_after_the_flip() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    // The others push nothing to it any more.
    cluster.set_handoffs(false);
    cluster.stop(3, Loss::Nothing).await;
    cluster.start_knowing(3, Some(FillReason::LostWrites));
    cluster.repair(3).set_handoff(false, false);
    let lacking = cluster.repair(3).ring_report(cluster.placement().version()).lacking;
    assert!(!lacking.is_empty(), "it would not be full");
    cluster.set_handoffs(true);
    cluster.wait_until("it compared", |c| c.repair(3).ring_report(c.placement().version()).lacking.is_empty()).await;
    assert!(filling(&cluster, 3, FillReason::Joining) > 0);
    cluster.prove_all().await;
    flip_and_finish(&cluster, &bucket).await;
}

/// docs/design/replication.md §2: a fallback becomes a primary, and nobody else has the version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_took_for_others_is_owed_when_it_becomes_a_primary() {
    let (cluster, bucket) = (Cluster::of(4), bucket());
    cluster.wait_until_settled().await;
    cluster.set_handoffs(false);
    let of_first_home = |number: &usize| cluster.owners(&bucket, &key(*number), 3) == [0, 1, 2];
    let keys: Vec<String> = (0..KEYS).filter(of_first_home).map(key).collect();
    assert!(!keys.is_empty());
    (0..3).for_each(|node| cluster.set_down(node, true));
    for key in &keys {
        cluster.put(3, &bucket, key, "v", PutOptions { dw: count(1), ..w(1) }).await.unwrap();
        assert_eq!(cluster.holders(&bucket, key), [3]);
    }
    (0..3).for_each(|node| cluster.set_down(node, false));
    cluster.set_goal(&[0, 1, 3, 2]).await;
    cluster.step(Step::Begin).await;
    assert!(cluster.repair(3).settled().owed_marks > 0);
    cluster.set_handoffs(true);
    cluster.prove_all().await;
    cluster.step(Step::Flip).await;
    cluster.step(Step::Finish).await;
    cluster.wait_until_settled().await;
    for key in &keys {
        assert_eq!(cluster.owners(&bucket, key, 3), [0, 1, 3]);
        cluster.assert_only_owners_hold(&bucket, key, 3);
    }
}

/// A member that does not know the goal does not know the node either, and could remove a tombstone
/// without asking it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_new_node_brings_waits_until_its_home_has_the_version_of_the_goal() {
    let (cluster, bucket) = three_of_four().await;
    cluster.repair(3).set_handoff(false, true);
    let mut clock = VectorClock::new();
    (0..9).for_each(|actor| drop(clock.increment(&Actor::new(&[actor; 9]), UnixMicros(7))));
    cluster.store_tombstone(3, &bucket, "brought", &clock).await;
    cluster.set_goal(&[0, 1, 3]).await;
    assert!(!cluster.placement().has_goal(cluster.home_of(&bucket, "brought")), "the home is to change");
    cluster.repair(3).set_handoff(true, true);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(cluster.holders(&bucket, "brought"), [3], "a member may not know the node");
    cluster.step(Step::Begin).await;
    cluster.wait_until("all have it", |c| c.holders(&bucket, "brought") == [0, 1, 2, 3]).await;
}

/// A mark stays when its peer leaves the class, and is paid when the peer is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_role_keeps_what_is_owed() {
    let (cluster, bucket) = (Cluster::of(4), bucket());
    cluster.wait_until_settled().await;
    cluster.set_handoffs(false);
    let number = (0..KEYS).find(|number| cluster.owners(&bucket, &key(*number), 3) == [0, 1, 2]).unwrap();
    let partition = cluster.home_of(&bucket, &key(number));
    cluster.set_cut(2, true);
    cluster.put(0, &bucket, &key(number), "v", w(2)).await.unwrap();
    cluster.wait_until("the miss is noted", |c| c.repair(0).settled().owed_marks > 0).await;
    cluster.set_cut(2, false);
    let class = ClassId { partition, n: 3 };
    cluster.set_goal(&[0, 1, 3, 2]).await;
    for step in [Step::Begin, Step::Abort, Step::Begin] {
        cluster.step(step).await;
        assert!(cluster.kv(0).has_owed(class, cluster.id(2)), "after {step:?}");
    }
    cluster.set_handoffs(true);
    cluster.wait_until("it is paid", |c| !c.kv(0).has_owed(class, c.id(2))).await;
    assert!(cluster.stored(2, &bucket, &key(number)).is_some());
}

/// Otherwise the home would wait for the class, and the class for a node that never comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_fills_from_its_primaries_without_one_that_was_removed() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.remove(2).await;
    cluster.stop(0, Loss::Nothing).await;
    cluster.start_knowing(0, Some(FillReason::LostWrites));
    let is_full = |c: &Cluster| filling(c, 0, FillReason::LostWrites) == 0;
    assert!(!is_full(&cluster));
    cluster.wait_until("it is full", is_full).await;
    cluster.prove_all().await;
    flip_and_finish(&cluster, &bucket).await;
}

/// The only copy of an acknowledged version may be at a member that is new in the home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_of_the_old_set_fills_from_the_new_one_too() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.set_handoffs(false);
    [1, 2].into_iter().for_each(|node| cluster.set_cut(node, true));
    let number = (0..KEYS).find(|number| cluster.owners(&bucket, &key(*number), 3) == [0, 1, 2]).unwrap();
    let options = PutOptions { dw: count(1), ..w(1) };
    cluster.put(0, &bucket, &key(number), "only there", options).await.unwrap();
    let newest = |c: &Cluster, node| c.stored(node, &bucket, &key(number));
    cluster.wait_until("both have it", |c| newest(c, 0) == newest(c, 3) && newest(c, 0) != newest(c, 1)).await;
    cluster.stop(0, Loss::Nothing).await;
    cluster.lose_stores(0);
    [1, 2].into_iter().for_each(|node| cluster.set_cut(node, false));
    cluster.start_knowing(0, Some(FillReason::NewStore));
    cluster.set_handoffs(true);
    cluster.wait_until("it is full", |c| filling(c, 0, FillReason::NewStore) == 0).await;
    assert_eq!(newest(&cluster, 0), newest(&cluster, 3));
}

/// Otherwise the home would wait for the class, and the class for a disk on which nobody needs
/// anything any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_class_fills_beside_a_leaver_that_takes_no_copies() {
    let (cluster, bucket) = three_of_four().await;
    cluster.leaves(2);
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    let number = (0..KEYS).find(|number| cluster.owners(&bucket, &key(*number), 3) == [1, 2, 0]).unwrap();
    let class = ClassId { partition: cluster.home_of(&bucket, &key(number)), n: 3 };
    cluster.set_cut(2, true);
    cluster.put(1, &bucket, &key(number), "newer", PutOptions { dw: count(1), ..w(1) }).await.unwrap();
    let newest = |c: &Cluster, node| c.stored(node, &bucket, &key(number));
    let has_newest = |c: &Cluster, node| newest(c, node) == newest(c, 1);
    cluster.wait_until("the others have it", |c| has_newest(c, 0) && has_newest(c, 3)).await;
    cluster.set_free_bytes(2, Some(0));
    // Nobody else knows what the leaver lacks.
    cluster.remove(1).await;
    cluster.close(0).await;
    cluster.set_cut(2, false);
    cluster.start_knowing(0, Some(FillReason::LostWrites));
    cluster.wait_until("it is full", |c| filling(c, 0, FillReason::LostWrites) == 0).await;
    assert!(newest(&cluster, 2) != newest(&cluster, 0));
    assert!(cluster.kv(0).owed_marks().contains(&(class, cluster.id(2))));
    // If the leaver stays after all, it gets what it lacks.
    cluster.set_free_bytes(2, None);
    cluster.step(Step::Abort).await;
    [0, 2, 3].into_iter().for_each(|node| cluster.repair(node).retry_transfers());
    cluster.wait_until("the leaver has it", |c| newest(c, 2) == newest(c, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_of_a_node_that_was_removed_is_forgotten() {
    let (cluster, bucket) = three_of_four().await;
    let partition = cluster.home_of(&bucket, "k");
    cluster.set_cut(2, true);
    let give = Give {
        class: ClassId { partition, n: 3 },
        to: cluster.id(2),
        order: 1,
        ranges: 1,
        wanted: vec![0],
        pass: GivePass::All,
    };
    cluster.kv(0).local_replica().give(give).await.unwrap();
    // While the node tries to carry out the order, it counts as a transfer, too.
    assert!((1..=2).contains(&cluster.repair(0).settled().transfers));
    cluster.remove(2).await;
    cluster.wait_until("it is forgotten", |c| c.repair(0).settled().transfers == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_changing_home_is_reaped() {
    let cluster = Cluster::with_owners(4, 3, |c| c.delete_mode = DeleteMode::After(Duration::from_millis(1)));
    let bucket = bucket();
    cluster.wait_until_settled().await;
    cluster.set_goal(&[0, 1, 3]).await;
    let partition = cluster.home_of(&bucket, "k");
    assert!(!cluster.placement().has_goal(partition));
    cluster.step(Step::Begin).await;
    let mut clock = VectorClock::new();
    (0..9).for_each(|actor| drop(clock.increment(&Actor::new(&[actor; 9]), UnixMicros(7))));
    for node in 0..3 {
        cluster.store_tombstone(node, &bucket, "k", &clock).await;
    }
    cluster.wait_until("it is due", |c| (0..3).any(|node| c.kv(node).versions_to_reap() > 0)).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!((0..3).all(|node| cluster.stored(node, &bucket, "k").is_some()), "the home is changing");
    cluster.step(Step::Abort).await;
    cluster.wait_until("it is reaped", |c| c.holders(&bucket, "k").is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_that_is_interrupted_five_times_sends_hardly_more() {
    let (cluster, bucket) = three_of_four().await;
    let value = "x".repeat(20_000);
    for number in 0..KEYS {
        cluster.put(number % 3, &bucket, &key(number), &value, w(3)).await.unwrap();
    }
    cluster.wait_until_settled().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    let copies = (0..KEYS).filter(|n| cluster.owners_after(&bucket, &key(*n)).contains(&3)).count() as u64;
    let before = cluster.pushed();
    // Each interruption comes after about a sixth of the copies.
    for interruption in 1..=5 {
        let limit = copies * interruption / 6;
        (0..3).for_each(|node| cluster.repair(node).set_transfer_rate(400_000));
        (0..3).for_each(|node| cluster.order_proofs_of(node));
        cluster.wait_until("a part has arrived", |c| c.pushed() - before >= limit).await;
        (0..3).for_each(|node| cluster.repair(node).set_handoff(false, true));
        (0..3).for_each(|node| cluster.repair(node).set_proofs_wanted(Vec::new()));
        cluster.wait_until("nothing is under way", |c| (0..3).all(|node| c.repair(node).transfers().is_empty())).await;
        let prover = (interruption % 3) as usize;
        cluster.stop(prover, Loss::Nothing).await;
        cluster.start(prover);
        (0..3).for_each(|node| cluster.repair(node).set_handoff(true, true));
    }
    (0..3).for_each(|node| cluster.repair(node).set_transfer_rate(0));
    cluster.prove_all().await;
    let sent = cluster.pushed() - before;
    assert!(sent * 10 <= copies * 12, "{sent} copies were sent, and {copies} were needed");
}

/// The proofs bring the same versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_to_a_new_member_comes_with_the_proofs_and_not_twice() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.set_handoffs(false);
    cluster.set_cut(3, true);
    for number in KEYS..10 * KEYS {
        cluster.put(number % 3, &bucket, &key(number), "value", w(2)).await.unwrap();
    }
    cluster.wait_until("something is owed", |c| (0..3).all(|node| !c.kv(node).owed_marks().is_empty())).await;
    // A put waits for two of them. What the third one lacks, proofs would bring it, too.
    let have_all = |c: &Cluster| (KEYS..10 * KEYS).all(|number| c.holders(&bucket, &key(number)) == [0, 1, 2]);
    cluster.wait_until("the others have all", have_all).await;
    cluster.set_cut(3, false);
    let before = cluster.pushed();
    (0..3).for_each(|node| cluster.order_proofs_of(node));
    // A push that is refused counts as sent, so the new member takes copies first.
    cluster.repair(3).set_handoff(true, true);
    cluster.set_handoffs(true);
    cluster.prove_all().await;
    cluster.wait_until("nothing is owed", |c| (0..3).all(|node| c.kv(node).owed_marks().is_empty())).await;
    let (sent, needed) = (cluster.pushed() - before, 10 * KEYS as u64);
    assert!(sent * 10 <= needed * 11, "{sent} copies were sent, and {needed} were needed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_ends_the_proof_with_a_clear_obstacle_and_nobody_drops_anything() {
    let (cluster, bucket) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.set_free_bytes(3, Some(0));
    (0..3).for_each(|node| cluster.order_proofs_of(node));
    cluster.wait_until("there is an obstacle", |c| (0..3).all(|n| !c.repair(n).proof_obstacles().is_empty())).await;
    let obstacle = cluster.repair(0).proof_obstacles().remove(0);
    assert!(obstacle.why.contains("no space left"), "{}", obstacle.why);
    assert_eq!(obstacle.node, cluster.id(3));
    assert!((0..3).all(|node| !cluster.has_proved_all(node)));
    let takes_no_copies = |node| cluster.repair(node).ring_report(cluster.placement().version()).takes_no_copies;
    assert_eq!((0..4).map(takes_no_copies).collect::<Vec<_>>(), [false, false, false, true]);
    assert!((0..KEYS).all(|number| cluster.holders(&bucket, &key(number)).len() >= 3));
    cluster.set_free_bytes(3, None);
    (0..3).for_each(|node| cluster.repair(node).retry_transfers());
    cluster.prove_all().await;
    assert!((0..3).all(|node| cluster.repair(node).proof_obstacles().is_empty()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaver_with_a_full_disk_has_given_what_it_proved_and_no_more() {
    let (cluster, bucket) = three_of_four().await;
    cluster.leaves(2);
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    cluster.step(Step::Flip).await;
    // A primary that is down proves nothing, so nothing is removed before the disk is full.
    cluster.set_down(1, true);
    cluster.step(Step::Finish).await;
    cluster.set_free_bytes(2, Some(0));
    let hints = |cluster: &Cluster| cluster.repair(2).settled().partitions_with_hints;
    cluster.repair(2).retry_transfers();
    cluster.wait_until("a pass has ended", |c| c.repair(2).settled().hints.keys > 0).await;
    assert!(hints(&cluster) > 0);
    cluster.set_down(1, false);
    cluster.wait_until("everything is proved", |c| hints(c) == 0 && c.repair(2).settled().transfers == 0).await;
    let held = (0..KEYS).filter(|number| cluster.holders(&bucket, &key(*number)).contains(&2)).count();
    assert!(held > 0, "nothing could be removed");
    // For rounds of reaping it holds what it holds.
    let class = |number| ClassId { partition: cluster.home_of(&bucket, &key(number)), n: 3 };
    assert!((0..KEYS).all(|number| cluster.kv(2).may_hold_hints(class(number))));
    // Another change of the homes may have other primaries.
    cluster.set_down(1, true);
    cluster.set_free_bytes(2, None);
    cluster.set_goal(&[0, 3, 1]).await;
    cluster.step(Step::Begin).await;
    assert!(hints(&cluster) > 0, "it was proved to the primaries of another ring");
    cluster.set_down(1, false);
    cluster.prove_all().await;
    cluster.step(Step::Flip).await;
    cluster.step(Step::Finish).await;
    cluster.repair(2).retry_transfers();
    cluster.wait_until_settled().await;
    assert_only_owners_hold_all(&cluster, &bucket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_finds_each_key_once_while_the_homes_change() {
    let (cluster, bucket) = three_of_four().await;
    let all: std::collections::BTreeSet<String> = (0..KEYS).map(key).collect();
    for goal in [[0, 1, 3], [2, 1, 3], [0, 2, 1]] {
        cluster.set_goal(&goal).await;
        for step in [Step::Begin, Step::Flip, Step::Finish] {
            if step == Step::Flip {
                cluster.prove_all().await;
            }
            let mut listing = cluster.kv(0).list_keys(&bucket, Some(cluster::LIMIT)).unwrap();
            let mut keys = Vec::new();
            let mut has_stepped = false;
            while let Some(batch) = listing.next().await {
                keys.extend(batch.unwrap().into_iter().map(|key: Bytes| String::from_utf8(key.to_vec()).unwrap()));
                if !std::mem::replace(&mut has_stepped, true) {
                    cluster.step(step).await;
                }
            }
            let number = keys.len();
            let found: std::collections::BTreeSet<String> = keys.into_iter().collect();
            assert_eq!((found.len(), number), (all.len(), all.len()), "{goal:?} {step:?}");
        }
        cluster.wait_until_settled().await;
    }
    assert_only_owners_hold_all(&cluster, &bucket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proof_shows_how_far_it_is() {
    let (cluster, _) = three_of_four().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.repair(0).set_transfer_rate(1);
    cluster.order_proofs_of(0);
    let is_shown = |c: &Cluster| {
        let active = c.repair(0).transfers();
        active.iter().any(|t| t.kind == TransferKind::Ownership && t.keys_total.is_some_and(|total| total >= t.keys))
    };
    cluster.wait_until("it is shown", is_shown).await;
    cluster.repair(0).set_transfer_rate(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_everybody_has_is_dropped_by_ranges_and_what_came_later_is_not() {
    let cluster = Cluster::with_owners(4, 3, |_| ());
    let bucket = bucket();
    // So many that each home has more than are compared key by key.
    let keys: Vec<String> = (0..12_000).map(key).collect();
    for key in &keys {
        cluster.put(0, &bucket, key, "v", w(3)).await.unwrap();
    }
    cluster.wait_until_settled().await;
    cluster.set_goal(&[0, 1, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    cluster.step(Step::Flip).await;
    // This copy of a former member differs, so its range does.
    let mut clock = VectorClock::new();
    (0..9).for_each(|actor| drop(clock.increment(&Actor::new(&[actor; 9]), UnixMicros(7))));
    cluster.store_tombstone(2, &bucket, &keys[0], &clock).await;
    let (before, asked_before) = (cluster.compared(), cluster.asked_for_sums());
    // One primary adopts the end of the change later than the others.
    let finished = cluster.after(Step::Finish);
    cluster.adopt([0, 1, 2], &finished).await;
    cluster.wait_until("all are asked for sums", |c| c.asked_for_sums() >= asked_before + 3).await;
    cluster.follow(finished).await;
    cluster.wait_until_settled().await;
    for key in &keys {
        assert_eq!(cluster.holders(&bucket, key), [0, 1, 3]);
    }
    let compared = cluster.compared() - before;
    assert!(compared < keys.len() as u64, "{compared} versions were compared one by one");
    let stored = cluster.stored(2, &bucket, &keys[0]);
    assert_eq!(stored, None);
    assert_ne!(cluster.stored(0, &bucket, &keys[0]), cluster.stored(0, &bucket, &keys[1]));
    cluster.assert_only_owners_hold(&bucket, &keys[0], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_was_damaged_on_its_way_is_not_stored() {
    let (cluster, bucket) = (Cluster::of(3), bucket());
    cluster.wait_until_settled().await;
    let push = cluster.push_of(&bucket, "k", "v");
    let damaged = ombak_kv::replica::Push { checksum: push.checksum.map(|checksum| checksum + 1), ..push.clone() };
    let receiver = cluster.kv(0).local_replica();
    let refused = TransferClient::push(&receiver, damaged).await.unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
    assert!(cluster.holders(&bucket, "k").is_empty());
    TransferClient::push(&receiver, push).await.unwrap();
    assert_eq!(cluster.holders(&bucket, "k"), [0]);
}
