//! A version that a mark covers, or that is in doubt, leaves a store by exchanges alone
//! (docs/design/anti-entropy.md §5, "The same copy on other ways").

use crate::engines::cluster::{Cluster, bucket, count};
use crate::exchanges::{World, storage_key};
use bytes::Bytes;
use ombak_kv::repair_host::{Access, EmptyStore, RepairHost, Towards};
use ombak_kv::replica::{AskRequest, Push, ReapingClient, Round, TransferClient};
use ombak_kv::{ClassId, DeleteMode, FillReason, GetOptions, GetReply, PutOptions};
use ombak_ring::placement::Step;
use ombak_storage::fs::sim::Loss;
use ombak_types::names::encode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Actor, Bucket, Object, Sibling, VectorClock, stored_object};
use std::sync::Arc;
use std::time::Duration;

fn r(n: u32) -> GetOptions {
    GetOptions { r: count(n), notfound_ok: Some(false), ..GetOptions::default() }
}

pub fn host(cluster: &Cluster, node: usize) -> Arc<dyn RepairHost> {
    cluster.kv(node).repair_host()
}

pub fn class_of(cluster: &Cluster, key: &str) -> ClassId {
    ClassId { partition: cluster.home_of(&bucket(), key), n: 3 }
}

/// Removes a key from the store of a node, as a round of reaping does.
pub fn remove(cluster: &Cluster, node: usize, key: &str) {
    let digest = cluster.stored(node, &bucket(), key).unwrap();
    let partition = host(cluster, node).partitions().find(class_of(cluster, key).partition).unwrap();
    let key = storage_key(key);
    assert!(partition.lock(&key, Access::Blocking).unwrap().remove_proven(digest).unwrap());
}

/// The newest seq of a node's store of the class of a key.
fn last_seq(cluster: &Cluster, node: usize, key: &str) -> u64 {
    let partition = host(cluster, node).partitions().find(class_of(cluster, key).partition).unwrap();
    partition.store().last_seq()
}

/// A world with marks, in which one key was removed at the first two nodes and is at the third one
/// again.
pub async fn with_a_dead_copy() -> (World, String) {
    let world = World::new().await;
    let key = world.keys().remove(0);
    world.round().await;
    remove(&world.cluster, 0, &key);
    remove(&world.cluster, 1, &key);
    (world, key)
}

pub fn dropped(cluster: &Cluster, node: usize) -> Vec<Bytes> {
    cluster.repair(node).dropped_copies().unwrap().into_iter().map(|copy| copy.key).collect()
}

/// Without the rule the read brings the key back to the other two nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_spreads_no_copy_that_a_mark_covers() {
    let (world, key) = with_a_dead_copy().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    assert!(matches!(cluster.get(0, &bucket, &key, r(1)).await.unwrap(), GetReply::Found(_)));
    cluster.wait_until("the copy is gone", |c| c.holders(&bucket, &key).is_empty()).await;
    assert_eq!(dropped(cluster, 2), [storage_key(&key)]);
}

/// The second node cannot read what it has, and the first one has removed the key. Without the rule
/// the read gives the copy in doubt to the second node, which is evidence for it from then on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_gives_no_copy_in_doubt_to_a_primary_that_cannot_read_its_own() {
    let world = World::new().await;
    let (cluster, bucket, key) = (&world.cluster, bucket(), world.keys().remove(0));
    world.round().await;
    remove(cluster, 0, &key);
    cluster.damage(1, &bucket, &key);
    let class = class_of(cluster, &key);
    host(cluster, 2).transfers().doubt.raise(class.partition, last_seq(cluster, 2, &key));
    assert!(matches!(cluster.get(0, &bucket, &key, r(1)).await.unwrap(), GetReply::Found(_)));
    cluster.wait_until("the copy is gone", |c| c.stored(2, &bucket, &key).is_none()).await;
    assert_eq!(dropped(cluster, 2), [storage_key(&key)]);
    assert_eq!(cluster.stored(0, &bucket, &key), None);
}

/// The exchange of the key brings back what one replica has lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_has_a_copy_that_a_mark_covers_exchanged_at_once() {
    let world = World::new().await;
    let (cluster, bucket, key) = (&world.cluster, bucket(), world.keys().remove(0));
    world.round().await;
    remove(cluster, 1, &key);
    assert!(matches!(cluster.get(0, &bucket, &key, r(2)).await.unwrap(), GetReply::Found(_)));
    cluster.wait_until("all have it", |c| c.holders(&bucket, &key) == [0, 1, 2]).await;
    assert_eq!(dropped(cluster, 0), Vec::<Bytes>::new());
}

/// Nothing else repairs such a key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_reads_leave_to_exchanges_is_exchanged_also_while_these_are_suspended() {
    let world = World::new().await;
    let (cluster, bucket, key) = (&world.cluster, bucket(), world.keys().remove(0));
    world.round().await;
    (0..cluster.count()).for_each(|node| cluster.repair(node).set_exchanges_suspended(true).unwrap());
    remove(cluster, 1, &key);
    assert!(matches!(cluster.get(0, &bucket, &key, r(2)).await.unwrap(), GetReply::Found(_)));
    cluster.wait_until("all have it", |c| c.holders(&bucket, &key) == [0, 1, 2]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_spreads_a_copy_above_the_marks() {
    let world = World::new().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    world.round().await;
    let key = (0..).map(|number| format!("new{number}")).find(|key| world.has_all_primaries(key)).unwrap();
    let push = cluster.push_of(&bucket, &key, "w");
    cluster.kv(0).local_replica().push(push).await.unwrap();
    let before = cluster.pushed();
    assert!(matches!(cluster.get(1, &bucket, &key, r(1)).await.unwrap(), GetReply::Found(_)));
    cluster.wait_until("all have it", |c| c.holders(&bucket, &key) == [0, 1, 2]).await;
    assert_eq!(cluster.pushed(), before, "no exchange has brought it");
}

/// The record of a removal was lost at the node that drives the rounds. Without the rule the round
/// brings the tombstone to the other two primaries, and a later one removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_of_reaping_spreads_no_tombstone_that_a_mark_covers() {
    let world = World::configured(|config| config.delete_mode = DeleteMode::After(Duration::from_millis(1))).await;
    let (cluster, bucket) = (&world.cluster, bucket());
    world.round().await;
    let is_driven = |key: &String| world.has_all_primaries(key) && cluster.owners(&bucket, key, 3)[0] == 2;
    let key = (0..).map(|number| format!("dead{number}")).find(is_driven).unwrap();
    let class = class_of(cluster, &key);
    let here = host(cluster, 2);
    let store_id = here.partitions().find(class.partition).unwrap().store().identity().store_id;
    for node in [0, 1].map(|node| cluster.id(node)) {
        let marks = &here.transfers().marks;
        let mark = marks.towards(class, node, store_id).unwrap();
        marks.keep(class, node, Towards { seq: mark.seq + 1_000, ..mark }).unwrap();
    }
    let mut clock = VectorClock::new();
    drop(clock.increment(&Actor::new(&[7; 9]), UnixMicros(7)));
    cluster.store_tombstone(2, &bucket, &key, &clock).await;
    cluster.wait_until("the tombstone is gone", |c| c.holders(&bucket, &key).is_empty()).await;
    assert_eq!(dropped(cluster, 2), [storage_key(&key)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_is_not_pushed_where_a_mark_covers_it() {
    let (world, key) = with_a_dead_copy().await;
    let (cluster, bucket, class) = (&world.cluster, bucket(), class_of(&world.cluster, &key));
    let transfers = host(cluster, 2).transfers().clone();
    transfers.owed.missed(class, cluster.id(0), 1);
    transfers.wake();
    cluster.wait_until("it is paid", |_| transfers.owed.list().is_empty()).await;
    assert_eq!(cluster.holders(&bucket, &key), [2]);
    // What came later is pushed.
    let new = (0..)
        .map(|number| format!("new{number}"))
        .find(|key| world.has_all_primaries(key) && class_of(cluster, key) == class)
        .unwrap();
    cluster.kv(2).local_replica().push(cluster.push_of(&bucket, &new, "w")).await.unwrap();
    transfers.owed.missed(class, cluster.id(0), 1);
    transfers.wake();
    cluster.wait_until("it is pushed", |c| c.holders(&bucket, &new) == [0, 2]).await;
    assert_eq!(cluster.holders(&bucket, &key), [2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_is_not_pushed_while_it_is_in_doubt() {
    let world = World::new().await;
    let (cluster, bucket, key) = (&world.cluster, bucket(), world.keys().remove(0));
    let class = class_of(cluster, &key);
    let transfers = host(cluster, 2).transfers().clone();
    transfers.doubt.raise(class.partition, last_seq(cluster, 2, &key));
    remove(cluster, 0, &key);
    transfers.owed.missed(class, cluster.id(0), 1);
    transfers.wake();
    cluster.wait_until("it is paid", |_| transfers.owed.list().is_empty()).await;
    assert_eq!(cluster.holders(&bucket, &key), [1, 2]);
}

/// Without the rule the second node gets nothing of what marks cover until the first one is back.
/// If the disk of the third one fails meanwhile, all of that is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fills_takes_covered_copies_early_while_a_primary_is_down() {
    let world = World::new().await;
    let (cluster, bucket, keys) = (&world.cluster, bucket(), world.keys());
    world.round().await;
    cluster.stop(1, Loss::Nothing).await;
    cluster.lose_stores(1);
    cluster.close(0).await;
    cluster.set_down(2, true);
    cluster.start(1);
    world.start_exchanges_with(1, |config| config.takes_early_after = Duration::ZERO);
    cluster.set_down(2, false);
    let has_all = |c: &Cluster| keys.iter().all(|key| c.stored(1, &bucket, key).is_some());
    cluster.wait_until("the second node has what the third one has", has_all).await;
    assert!(!host(cluster, 1).is_full(class_of(cluster, &keys[0]).partition, 3), "it still waits for the first one");
    cluster.start(0);
    world.start_exchanges(0);
    cluster.wait_until_settled().await;
}

/// Wipes the second node of a world in which the first one lacks a key that the third one holds,
/// and fills it again. Exchanges are suspended, so the filling alone brings anything.
async fn fill_the_second_node(world: &World) {
    let cluster = &world.cluster;
    [0, 2].into_iter().for_each(|node| cluster.repair(node).set_exchanges_suspended(true).unwrap());
    cluster.stop(1, Loss::Nothing).await;
    cluster.lose_stores(1);
    // A node that has no exchanges takes everything, so it sees nobody before it has some.
    [0, 2].into_iter().for_each(|node| cluster.set_down(node, true));
    cluster.start(1);
    world.start_exchanges_with(1, |config| config.begins = false);
    [0, 2].into_iter().for_each(|node| cluster.set_down(node, false));
    cluster.wait_until_settled().await;
}

/// Without the rule the second node gets the copy. The first node knew that it had been removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fills_leaves_out_what_a_full_primary_lacks() {
    let world = World::new().await;
    let (cluster, bucket, keys) = (&world.cluster, bucket(), world.keys());
    world.round().await;
    remove(cluster, 0, &keys[0]);
    fill_the_second_node(&world).await;
    assert_eq!(cluster.holders(&bucket, &keys[0]), [2], "a mark covers it");
    keys[1..].iter().for_each(|key| assert_eq!(cluster.holders(&bucket, key), [0, 1, 2], "{key}"));
}

/// The third node may have lost its unsynced tail. Without the rule it brings the copy to the other
/// two nodes. The exchanges that come after the filling drop it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fills_brings_nobody_what_its_own_marks_cover() {
    let (world, key) = with_a_dead_copy().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    [0, 1].into_iter().for_each(|node| cluster.repair(node).set_exchanges_suspended(true).unwrap());
    cluster.stop(2, Loss::Everything).await;
    [0, 1].into_iter().for_each(|node| cluster.set_down(node, true));
    cluster.start_knowing(2, Some(FillReason::LostWrites));
    world.start_exchanges_with(2, |config| config.begins = false);
    assert!(!cluster.kv(2).is_full(class_of(cluster, &key)));
    [0, 1].into_iter().for_each(|node| cluster.set_down(node, false));
    cluster.wait_until_settled().await;
    assert_eq!(cluster.holders(&bucket, &key), [2]);
    (0..cluster.count()).for_each(|node| cluster.repair(node).set_exchanges_suspended(false).unwrap());
    world.round().await;
    cluster.wait_until("the copy is gone", |c| c.holders(&bucket, &key).is_empty()).await;
    assert_eq!(dropped(cluster, 2), [storage_key(&key)]);
}

/// Without the rule the second node is evidence that the copy was not removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_fills_leaves_out_a_copy_in_doubt_that_a_full_primary_lacks() {
    let world = World::new().await;
    let (cluster, bucket, keys) = (&world.cluster, bucket(), world.keys());
    remove(cluster, 0, &keys[0]);
    let class = class_of(cluster, &keys[0]);
    host(cluster, 2).transfers().doubt.raise(class.partition, last_seq(cluster, 2, &keys[0]));
    fill_the_second_node(&world).await;
    assert_eq!(cluster.holders(&bucket, &keys[0]), [2]);
    (0..cluster.count()).for_each(|node| cluster.repair(node).set_exchanges_suspended(false).unwrap());
    world.round().await;
    cluster.wait_until("the copy is gone", |c| c.holders(&bucket, &keys[0]).is_empty()).await;
    assert_eq!(dropped(cluster, 2), [storage_key(&keys[0])]);
    keys[1..].iter().for_each(|key| assert_eq!(cluster.holders(&bucket, key), [0, 1, 2], "{key}"));
}

/// The copy that a client has not seen takes no part in the new version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_takes_the_place_of_a_copy_in_doubt() {
    let world = World::new().await;
    let (cluster, bucket, key) = (&world.cluster, bucket(), world.keys().remove(0));
    let (partition, seq) = (class_of(cluster, &key).partition, last_seq(cluster, 0, &key));
    let transfers = host(cluster, 0).transfers().clone();
    transfers.doubt.raise(partition, seq);
    let here = PutOptions { w: count(1), ..PutOptions::default() };
    cluster.put(0, &bucket, &key, "new", here).await.unwrap();
    let values = values_at(cluster, 0, &key);
    assert_eq!((values, dropped(cluster, 0)), (vec!["new".to_owned()], vec![Bytes::from(storage_key(&key))]));
    // A version above the doubt is merged as ever.
    cluster.put(0, &bucket, &key, "newer", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    assert!(values_at(cluster, 0, &key).contains(&"new".to_owned()));
}

/// No other replica can show that it was removed. Without the rule a put would drop it, although it
/// may be all that there is of an acknowledged write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_put_is_merged_with_a_copy_in_doubt_that_has_no_other_replica() {
    let world = World::new().await;
    let cluster = &world.cluster;
    let bucket = cluster.create_type("one", 1);
    let key = (0..).map(|number| format!("o{number}")).find(|key| cluster.owners(&bucket, key, 1) == [0]).unwrap();
    let alone = || PutOptions { w: count(1), ..PutOptions::default() };
    cluster.put(0, &bucket, &key, "old", alone()).await.unwrap();
    let transfers = host(cluster, 0).transfers().clone();
    let (home, seq) = (cluster.home_of(&bucket, &key), cluster.stored_seq(0, &bucket, &key).unwrap());
    transfers.doubt.raise(home, seq);
    assert!(transfers.is_doubtful(home, seq));
    cluster.put(0, &bucket, &key, "new", alone()).await.unwrap();
    assert_eq!(values_of(cluster, 0, &bucket, &key), ["new", "old"]);
    assert_eq!(dropped(cluster, 0), Vec::<Bytes>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_peer_takes_the_place_of_a_copy_in_doubt() {
    let world = World::new().await;
    let (cluster, bucket, key) = (&world.cluster, bucket(), world.keys().remove(0));
    let (partition, seq) = (class_of(cluster, &key).partition, last_seq(cluster, 0, &key));
    host(cluster, 0).transfers().doubt.raise(partition, seq);
    let mut clock = VectorClock::new();
    clock.increment(&Actor::new(b"another"), UnixMicros(1));
    for node in [0, 1] {
        cluster.store_tombstone(node, &bucket, &key, &clock).await;
    }
    let versions = [0, 1].map(|node| (values_at(cluster, node, &key).len(), dropped(cluster, node).len()));
    assert_eq!(versions, [(1, 1), (2, 0)], "at the second node it is not in doubt");
}

fn values_at(cluster: &Cluster, node: usize, key: &str) -> Vec<String> {
    values_of(cluster, node, &bucket(), key)
}

/// The values of the siblings that a node holds of a key, in alphabetical order.
pub fn values_of(cluster: &Cluster, node: usize, bucket: &Bucket, key: &str) -> Vec<String> {
    let partition = host(cluster, node).partitions().find(cluster.home_of(bucket, key)).unwrap();
    let mut storage_key = Vec::new();
    encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
    let found = partition.read(&storage_key, Access::Blocking).unwrap().unwrap();
    let object: Object = stored_object::decode(&found.head, found.body.as_ref()).unwrap();
    let text = |sibling: &Sibling| String::from_utf8(sibling.value.to_vec()).unwrap();
    let mut values: Vec<String> = object.siblings.iter().map(text).collect();
    values.sort_unstable();
    values
}

/// A key of a home of which the first node is no primary in the class with n = 1.
fn foreign_key(cluster: &Cluster) -> String {
    let bucket = bucket();
    (0..).map(|number| format!("f{number}")).find(|key| cluster.owners(&bucket, key, 1) == [1]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_held_nothing_writes_down_how_far_it_was() {
    let world = World::new().await;
    let cluster = &world.cluster;
    let class = ClassId { n: 1, ..class_of(cluster, &foreign_key(cluster)) };
    let (kv, here) = (cluster.kv(0), host(cluster, 0));
    cluster.wait_until("it knows that it holds nothing", |_| here.transfers().foreign.holds_nothing(class)).await;
    let round = Round { partition: class.partition, n_val: 1, ring: here.home_version(class.partition), number: 1 };
    let request = AskRequest { round, keys: vec![Bytes::from_static(b"k")], floor: UnixMicros(0) };
    let answer = kv.local_replica().ask(request).await.unwrap();
    assert_eq!(answer.answers, [true]);
    let store = empty_store(&*here, class);
    assert!(here.transfers().empty_at.of(class, store) > 0);
}

fn empty_store(here: &dyn RepairHost, class: ClassId) -> EmptyStore {
    let store_id = here.partitions().find(class.partition).unwrap().store().identity().store_id;
    EmptyStore { store_id, class_print: here.buckets().snapshot().class_print(class.n) }
}

/// A copy for others that had been handed back before is dropped, and a later one is handed back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stand_in_drops_what_it_had_handed_back() {
    let world = World::new().await;
    let cluster = &world.cluster;
    let bucket = cluster.create_type("one", 1);
    let mut keys = (0..).map(|number| format!("f{number}")).filter(|key| cluster.owners(&bucket, key, 1) == [1]);
    let later = keys.next().unwrap();
    let home = cluster.home_of(&bucket, &later);
    let key = keys.find(|key| cluster.home_of(&bucket, key) == home).unwrap();
    let (class, here) = (ClassId { partition: home, n: 1 }, host(cluster, 0));
    let store = empty_store(&*here, class);
    let seq = here.partitions().find(home).unwrap().store().last_seq();
    here.transfers().empty_at.note(class, store, seq, u64::MAX - 1).unwrap();
    push_foreign(cluster, class, &bucket, &later).await;
    cluster.wait_until("it is handed back", |c| c.holders(&bucket, &later) == [1]).await;
    // As if the next one had come before the note.
    here.transfers().empty_at.note(class, store, seq + 1_000_000, u64::MAX).unwrap();
    push_foreign(cluster, class, &bucket, &key).await;
    cluster.wait_until("it is dropped", |c| c.holders(&bucket, &key).is_empty()).await;
    assert_eq!(dropped(cluster, 0).len(), 1);
}

/// Without the rule the first node keeps such copies for ever, and cannot leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_in_doubt_for_others_go_where_one_of_them_has_the_version_and_otherwise_nowhere() {
    let world = World::new().await;
    let cluster = &world.cluster;
    let bucket = cluster.create_type("two", 2);
    let mut keys = (0..).map(|number| format!("f{number}")).filter(|key| cluster.owners(&bucket, key, 2) == [1, 2]);
    let held = keys.next().unwrap();
    let home = cluster.home_of(&bucket, &held);
    let removed = keys.find(|key| cluster.home_of(&bucket, key) == home).unwrap();
    let (class, here) = (ClassId { partition: home, n: 2 }, host(cluster, 0));
    let seq = here.partitions().find(home).unwrap().store().last_seq();
    here.transfers().doubt.raise(home, seq + 1_000_000);
    push_to(cluster, 1, class, &bucket, &held).await;
    for key in [&held, &removed] {
        push_to(cluster, 0, class, &bucket, key).await;
    }
    cluster.wait_until("it is handed back", |c| c.holders(&bucket, &held) == [1, 2]).await;
    cluster.wait_until("it is dropped", |c| c.holders(&bucket, &removed).is_empty()).await;
    assert_eq!(dropped(cluster, 0).len(), 1);
}

/// Brings a copy to the first node, which is no primary of its class.
async fn push_foreign(cluster: &Cluster, class: ClassId, bucket: &Bucket, key: &str) {
    push_to(cluster, 0, class, bucket, key).await;
}

async fn push_to(cluster: &Cluster, node: usize, class: ClassId, bucket: &Bucket, key: &str) {
    let mut push = Push { class, checksum: None, ..cluster.push_of(bucket, key, "w") };
    push.copies.iter_mut().for_each(|copy| copy.n = class.n);
    cluster.kv(node).local_replica().push(push).await.unwrap();
}

/// A node that owns everything alone finds damage, and then another one joins. Nobody else has what
/// is in doubt. Without the rule the new node gets nothing of it, and the next exchange drops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_only_primary_holds_is_brought_to_a_new_one_also_in_doubt() {
    let cluster = Cluster::with_owners(2, 1, |_| ());
    let bucket = bucket();
    let keys: Vec<String> = (0..20).map(|number| format!("k{number}")).collect();
    for key in &keys {
        cluster.put(0, &bucket, key, "v", PutOptions { w: count(1), ..PutOptions::default() }).await.unwrap();
    }
    let here = host(&cluster, 0);
    here.transfers().other_ways.set_on(true);
    for partition in here.partitions().all_open() {
        assert!(here.transfers().found_damage(here.partitions(), partition.number(), None));
    }
    cluster.set_goal(&[0, 1]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    for key in &keys {
        let (home, seq) = (class_of(&cluster, key).partition, 1);
        assert!(here.transfers().is_doubtful(home, seq), "this node is alone no more");
        assert_eq!(cluster.holders(&bucket, key), [0, 1], "{key}");
    }
}

/// What is in doubt at a leaving node, and at no primary, goes nowhere. The node leaves
/// nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_with_what_is_in_doubt() {
    let cluster = Cluster::with_owners(4, 3, |_| ());
    let bucket = bucket();
    let key = (0..).map(|number| format!("k{number}")).find(|key| cluster.owners(&bucket, key, 3).len() == 3);
    let key = key.unwrap();
    cluster.put(0, &bucket, &key, "v", PutOptions { w: count(3), ..PutOptions::default() }).await.unwrap();
    cluster.wait_until_settled().await;
    let here = host(&cluster, 0);
    here.transfers().other_ways.set_on(true);
    let home = class_of(&cluster, &key).partition;
    assert!(here.transfers().found_damage(here.partitions(), home, None));
    [1, 2].into_iter().for_each(|node| remove(&cluster, node, &key));
    cluster.wait_until("it is full again", |c| c.kv(0).is_full(class_of(c, &key))).await;
    cluster.leaves(0);
    cluster.set_goal(&[1, 2, 3]).await;
    cluster.step(Step::Begin).await;
    cluster.prove_all().await;
    cluster.step(Step::Flip).await;
    cluster.step(Step::Finish).await;
    let holds_nothing = |c: &Cluster| c.repair(0).settled().partitions_with_hints == 0;
    cluster.wait_until("the node need not stay for it", holds_nothing).await;
    assert_eq!(cluster.holders(&bucket, &key), [0], "nobody has got it");
}
