//! Which copies of a store are in doubt after it has lost something (docs/design/anti-entropy.md
//! §5, "Doubt"), and that a store exchanges again after that.

use crate::engines::cluster::{Cluster, bucket, count};
use crate::exchanges::{World, w};
use crate::other_ways::{class_of, values_of, with_a_dead_copy};
use ombak_kv::repair_host::{Access, RepairHost};
use ombak_kv::{ClassId, PutOptions};
use ombak_storage::fs::sim::Loss;
use ombak_types::Bucket;
use ombak_types::names::encode_storage_key;
use std::sync::Arc;
use std::time::Duration;

/// The two primaries of the class.
const HERE: usize = 1;
const THERE: usize = 2;

fn host(cluster: &Cluster, node: usize) -> Arc<dyn RepairHost> {
    cluster.kv(node).repair_host()
}

fn alone() -> PutOptions {
    PutOptions { w: count(1), ..PutOptions::default() }
}

/// Removes a key from the store of a node, as a round of reaping does, and syncs the removal.
fn remove(cluster: &Cluster, node: usize, bucket: &Bucket, key: &str) {
    let digest = cluster.stored(node, bucket, key).unwrap();
    let partition = host(cluster, node).partitions().find(cluster.home_of(bucket, key)).unwrap();
    let mut storage_key = Vec::new();
    encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
    assert!(partition.lock(&storage_key, Access::Blocking).unwrap().remove_proven(digest).unwrap());
    partition.store().sync(partition.store().last_seq()).unwrap();
}

/// The record of a removal becomes unreadable. After that the store alone has an acknowledged
/// write. It was made after the removal, so it is none that came back: a put is merged with it, and
/// the other replica gets it. If everything were in doubt, the put would take its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_after_the_damage_is_not_in_doubt() {
    let world = World::new().await;
    let cluster = &world.cluster;
    let bucket = cluster.create_type("two", 2);
    let mut keys =
        (0..).map(|number| format!("d{number}")).filter(|key| cluster.owners(&bucket, key, 2) == [HERE, THERE]);
    let gone = keys.next().unwrap();
    let home = cluster.home_of(&bucket, &gone);
    let mut keys = keys.filter(|key| cluster.home_of(&bucket, key) == home);
    let [before, after] = [(); 2].map(|()| keys.next().unwrap());
    for key in [&gone, &before] {
        cluster.put(HERE, &bucket, key, "old", w(2)).await.unwrap();
    }
    cluster.wait_until_settled().await;
    [HERE, THERE].into_iter().for_each(|node| remove(cluster, node, &bucket, &gone));
    cluster.wait_until_saved(HERE).await;
    [0, THERE].into_iter().for_each(|node| cluster.set_down(node, true));
    cluster.put(HERE, &bucket, &after, "acknowledged", alone()).await.unwrap();
    cluster.stop(HERE, Loss::Nothing).await;
    cluster.damage_key(HERE, &bucket, &gone);
    cluster.start(HERE);
    world.start_exchanges(HERE);

    let doubt = host(cluster, HERE).transfers().doubt.up_to(home);
    let seq = |key| cluster.stored_seq(HERE, &bucket, key).unwrap();
    assert!(seq(&gone) <= doubt && seq(&before) <= doubt, "what may have come back");
    assert!(doubt < seq(&after), "up to {doubt}, and this write has {}", seq(&after));
    for key in [&before, &after] {
        cluster.put(HERE, &bucket, key, "newer", alone()).await.unwrap();
    }
    assert_eq!(values_of(cluster, HERE, &bucket, &before), ["newer"]);
    assert_eq!(values_of(cluster, HERE, &bucket, &after), ["acknowledged", "newer"]);

    [0, THERE].into_iter().for_each(|node| cluster.set_down(node, false));
    cluster.wait_until_settled().await;
    cluster
        .wait_until("the doubt has ended", |c| {
            c.repair(HERE).start_exchange_round();
            host(c, HERE).transfers().doubt.up_to(home) == 0
        })
        .await;
    assert_eq!(cluster.holders(&bucket, &gone), [0; 0], "what was removed is gone again");
    assert_eq!(values_of(cluster, THERE, &bucket, &after), ["acknowledged", "newer"]);
}

/// A member that starts has a ring of its own until it knows that of its cluster. By its own ring
/// it has no other primaries. If it forgot its marks and its doubt then, it would bring others what
/// was removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_starts_keeps_its_marks_and_its_doubt() {
    let (world, key) = with_a_dead_copy().await;
    let (cluster, bucket) = (&world.cluster, bucket());
    let ClassId { partition, n } = class_of(cluster, &key);
    let seq = cluster.stored_seq(THERE, &bucket, &key).unwrap();
    let there = host(cluster, THERE);
    assert!(there.transfers().found_damage(there.partitions(), partition, Some(seq)));
    drop(there);
    (0..cluster.count()).for_each(|node| cluster.repair(node).set_exchanges_suspended(true).unwrap());
    cluster.stop(THERE, Loss::Nothing).await;
    cluster.start_alone(THERE);
    world.start_exchanges_with(THERE, |config| config.begins = false);
    // Its work on exchanges looks at the ring five times a second. If it looks later, this shows
    // nothing, and fails neither.
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.learn_ring(THERE);

    let transfers = host(cluster, THERE).transfers().clone();
    assert!(transfers.doubt.is_in_doubt(partition, seq));
    for node in [0, HERE] {
        assert!(transfers.marks.covers(ClassId { partition, n }, cluster.id(node), seq), "node {node}");
    }
    cluster.wait_until_settled().await;
    assert_eq!(cluster.holders(&bucket, &key), [THERE], "who fills brings it to nobody");
}

/// The seq of the second node's store up to which another node has noted everything.
fn marked_at(cluster: &Cluster, node: usize, class: ClassId) -> u64 {
    let there = host(cluster, node);
    let own = there.transfers().own_store(there.partitions(), class, &[class.n].into()).unwrap().unwrap();
    let store = host(cluster, HERE).partitions().find(class.partition).unwrap().store().identity().store_id;
    there.transfers().marks.known(class, cluster.id(HERE), store, own).unwrap().seq
}

/// The peers of a store that was set back have marks up to seqs that it does not have any more.
/// It knows that once it was told, and exchanges again. Its copies are equal to those of the others
/// by then, so its first exchange brings another mark: this does not show what the old one counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_was_set_back_knows_it_and_exchanges_again() {
    let world = World::new().await;
    let cluster = &world.cluster;
    cluster.wait_until_saved(HERE).await;
    let disk = cluster.snapshot(HERE);
    for key in 0..80 {
        cluster.put(0, &bucket(), &format!("later{key}"), "v", w(3)).await.unwrap();
    }
    cluster.wait_until_settled().await;
    world.round().await;
    let later = (0..80).map(|key| format!("later{key}")).find(|key| world.has_all_primaries(key)).unwrap();
    cluster.stop(HERE, Loss::Nothing).await;
    cluster.set_disk(HERE, &disk);
    cluster.start(HERE);
    let here = host(cluster, HERE);
    let class = ClassId { partition: cluster.home_of(&bucket(), &later), n: 3 };
    let partition = here.partitions().find(class.partition).unwrap();
    let marked = marked_at(cluster, 0, class);
    let is_known = || here.transfers().knows_set_back(cluster.id(HERE), &partition, marked);
    assert!(!is_known(), "nobody has told it");
    for by in [0, THERE] {
        let told = host(cluster, by).transfers().told.of_node(cluster.id(HERE));
        let found = here.transfers().find_set_back(here.partitions(), (cluster.id(HERE), cluster.id(by)), &told);
        here.transfers().save_set_back(here.partitions(), cluster.id(HERE), &found).unwrap();
    }
    assert!(is_known(), "it was found out");
    assert!(!here.transfers().knows_set_back(cluster.id(HERE), &partition, 1), "what it still has");
    world.start_exchanges(HERE);
    cluster.wait_until_settled().await;
    assert_eq!(marked_at(cluster, 0, class), marked, "until the next mark takes its place");
    let round_ended_at = |c: &Cluster| c.repair(HERE).exchange_figures().unwrap().round_ended_at;
    assert!(round_ended_at(cluster).is_none());
    cluster.repair(HERE).start_exchange_round();
    cluster.wait_until("each of its exchanges has ended in full", |c| round_ended_at(c).is_some()).await;
}
