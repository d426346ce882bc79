//! A store that is set back within its run is found by what it has told others
//! (docs/design/anti-entropy.md §3), and nothing deleted comes back.

use crate::engines::cluster::{Cluster, bucket, count};
use crate::exchanges::World;
use ombak_kv::repair_host::SetBack;
use ombak_kv::{DeleteMode, GetOptions, GetReply, PutOptions};
use ombak_storage::fs::sim::Loss;
use std::time::Duration;

const NODES: usize = 3;

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

/// A cluster that reaps at once.
fn reaping() -> Cluster {
    Cluster::configured(NODES, |config| config.delete_mode = DeleteMode::Immediate)
}

/// Deletes a key, and waits until no store has a trace of it.
async fn delete_and_reap(cluster: &Cluster, key: &str) {
    cluster.delete(0, &bucket(), key, 3).await.unwrap();
    cluster.wait_until("the tombstone is reaped", |c| c.holders(&bucket(), key).is_empty()).await;
}

/// Lets a node hear what another one was told of its stores, as at the beginning of a connection.
/// Returns the partitions whose stores it takes for set back.
fn hears(cluster: &Cluster, node: usize, by: usize) -> SetBack {
    let (here, there) = (cluster.kv(node).repair_host(), cluster.kv(by).repair_host());
    let told = there.transfers().told.of_node(cluster.id(node));
    here.transfers().find_set_back(here.partitions(), (cluster.id(node), cluster.id(by)), &told)
}

fn told(cluster: &Cluster, node: usize, by: usize, partition: u32) -> Option<(u64, u64)> {
    cluster.kv(node).repair_host().transfers().told.of(cluster.id(by), partition)
}

fn others(node: usize) -> impl Iterator<Item = usize> {
    (0..NODES).filter(move |other| *other != node)
}

#[tokio::test]
async fn a_primary_that_has_removed_something_has_the_seqs_of_all_members_on_its_disk() {
    let cluster = reaping();
    cluster.put(0, &bucket(), "k", "v", w(3)).await.unwrap();
    let home = cluster.home_of(&bucket(), "k");
    let owners = cluster.owners(&bucket(), "k", 3);
    delete_and_reap(&cluster, "k").await;
    for node in owners.iter().copied() {
        cluster.stop(node, Loss::Everything).await;
        cluster.start(node);
        for other in owners.iter().copied().filter(|other| *other != node) {
            assert!(told(&cluster, node, other, home).is_some(), "node {node} does not know how far node {other} was");
        }
    }
}

#[tokio::test]
async fn what_was_deleted_does_not_come_back_from_a_store_that_was_set_back() {
    let cluster = reaping();
    for key in ["gone", "kept"] {
        cluster.put(0, &bucket(), key, "old", w(3)).await.unwrap();
    }
    cluster.wait_until_saved(2).await;
    cluster.wait_until_settled().await;
    let disk = cluster.snapshot(2);
    delete_and_reap(&cluster, "gone").await;
    cluster.put(0, &bucket(), "later", "new", w(3)).await.unwrap();
    cluster.stop(2, Loss::Nothing).await;
    cluster.set_disk(2, &disk);
    others(2).for_each(|node| cluster.set_cut(node, true));
    cluster.start(2);
    assert!(cluster.stored(2, &bucket(), "gone").is_some(), "the disk is older");
    let home = cluster.home_of(&bucket(), "gone");
    assert!(hears(&cluster, 2, 0).contains_key(&home), "its store has lost the seq that node 0 was told");
    assert!(!hears(&cluster, 2, 1).contains_key(&home), "it is known by now");
    others(2).for_each(|node| cluster.set_cut(node, false));
    cluster.wait_until_settled().await;
    cluster.wait_until("the store is full again", |c| c.kv(2).filling_classes().is_empty()).await;
    for node in 0..NODES {
        for quorum in 1..=3 {
            let r = GetOptions { r: count(quorum), ..GetOptions::default() };
            let gone = cluster.get(node, &bucket(), "gone", r.clone()).await.unwrap();
            assert!(matches!(gone, GetReply::NotFound { .. }), "node {node}: {gone:?}");
            for key in ["kept", "later"] {
                let kept = cluster.get(node, &bucket(), key, r.clone()).await.unwrap();
                assert!(matches!(kept, GetReply::Found(_)), "node {node}: {key}: {kept:?}");
            }
        }
    }
    assert!(cluster.holders(&bucket(), "gone").iter().all(|node| *node == 2), "it was pushed");
}

/// What was found once and saved is no news at the next start, although the other nodes still know
/// the lost seq.
#[tokio::test]
async fn a_set_back_store_is_accounted_for_once() {
    let cluster = reaping();
    cluster.put(0, &bucket(), "gone", "old", w(3)).await.unwrap();
    cluster.wait_until_saved(2).await;
    cluster.wait_until_settled().await;
    let disk = cluster.snapshot(2);
    delete_and_reap(&cluster, "gone").await;
    cluster.stop(2, Loss::Nothing).await;
    cluster.set_disk(2, &disk);
    cluster.start(2);
    // Nothing was appended since the start: each lost seq is also above the last one of its store.
    let found = hears(&cluster, 2, 0);
    assert!(!found.is_empty() && found.values().all(|note| *note > 0), "an opening has lost them: {found:?}");
    let (kv, id) = (cluster.kv(2), cluster.id(2));
    let host = kv.repair_host();
    host.transfers().save_set_back(host.partitions(), id, &found).unwrap();
    drop((kv, host));
    for loss in [Loss::Nothing, Loss::Everything] {
        cluster.stop(2, loss).await;
        cluster.start(2);
        assert!(hears(&cluster, 2, 0).is_empty() && hears(&cluster, 2, 1).is_empty(), "after {loss:?}");
    }
}

/// A node whose store was set back does not know it before it hears from others. What it stores
/// until then, and over a restart, cannot be a restored copy.
#[tokio::test]
async fn what_came_after_a_store_was_set_back_is_not_in_doubt() {
    let cluster = reaping();
    cluster.put(0, &bucket(), "k", "old", w(3)).await.unwrap();
    cluster.wait_until_saved(2).await;
    cluster.wait_until_settled().await;
    let disk = cluster.snapshot(2);
    delete_and_reap(&cluster, "k").await;
    cluster.stop(2, Loss::Nothing).await;
    cluster.set_disk(2, &disk);
    cluster.start(2);
    cluster.put(2, &bucket(), "k", "new", w(1)).await.unwrap();
    cluster.wait_until_saved(2).await;
    cluster.stop(2, Loss::Nothing).await;
    cluster.start(2);
    let home = cluster.home_of(&bucket(), "k");
    assert!(hears(&cluster, 2, 0).contains_key(&home), "its store has lost the seq that node 0 was told");
    let (kv, new) = (cluster.kv(2), cluster.stored_seq(2, &bucket(), "k").unwrap());
    let host = kv.repair_host();
    let doubt = host.transfers().doubt.up_to(home);
    assert!(0 < doubt && doubt < new, "up to {doubt}; the new copy has seq {new}");
}

/// The other nodes answer an exchange of the node with marks that its store has lost. Without the
/// rule each of its exchanges ends so, for as long as its connections last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_finds_a_store_that_was_set_back() {
    let world = World::new().await;
    let cluster = &world.cluster;
    cluster.wait_until_saved(2).await;
    let disk = cluster.snapshot(2);
    for key in world.keys() {
        cluster.put(0, &bucket(), &key, "newer", w(3)).await.unwrap();
    }
    world.round().await;
    cluster.stop(2, Loss::Nothing).await;
    cluster.set_disk(2, &disk);
    cluster.start(2);
    let doubt = |cluster: &Cluster| {
        let host = cluster.kv(2).repair_host();
        host.partitions().all_open().map(|partition| host.transfers().doubt.up_to(partition.number())).max()
    };
    assert_eq!(doubt(cluster), Some(0), "it knows nothing yet");
    world.start_exchanges_with(2, |config| config.interval = Duration::from_secs(1));
    cluster.wait_until("its copies are in doubt", |c| doubt(c) > Some(0)).await;
    cluster.wait_until_settled().await;
    world.round().await;
    cluster.wait_until("the doubt has ended", |c| doubt(c) == Some(0)).await;
}

#[tokio::test]
async fn a_restart_and_a_lost_tail_give_no_alarm() {
    let cluster = reaping();
    for round in 0..3 {
        for key in ["a", "b", "c", "d"] {
            cluster.put(0, &bucket(), key, "v", w(3)).await.unwrap();
            delete_and_reap(&cluster, key).await;
            // Nobody syncs this.
            cluster.put(1, &bucket(), &format!("{key}{round}"), "v", w(3)).await.unwrap();
        }
        for node in 0..NODES {
            match round {
                0 => cluster.close(node).await,
                1 => cluster.stop(node, Loss::Nothing).await,
                _ => cluster.stop(node, Loss::Everything).await,
            }
            cluster.start(node);
            for other in others(node) {
                assert!(hears(&cluster, node, other).is_empty(), "round {round}: node {node}");
            }
        }
    }
}

/// A primary that is filled knows what the others were told: it lacks what they have removed.
#[tokio::test]
async fn who_fills_takes_over_what_others_were_told() {
    let cluster = reaping();
    cluster.put(0, &bucket(), "k", "v", w(3)).await.unwrap();
    let home = cluster.home_of(&bucket(), "k");
    delete_and_reap(&cluster, "k").await;
    cluster.wait_until_saved(2).await;
    let before = told(&cluster, 1, 0, home).unwrap();
    cluster.close(2).await;
    cluster.remove_file(2, std::path::Path::new("/data/told-seqs"));
    cluster.start_knowing(2, Some(ombak_kv::FillReason::NewStore));
    cluster.wait_until("node 2 is full", |c| c.kv(2).filling_classes().is_empty()).await;
    assert_eq!(told(&cluster, 2, 0, home), Some(before));
    cluster.stop(2, Loss::Everything).await;
    cluster.start(2);
    assert_eq!(told(&cluster, 2, 0, home), Some(before), "it was on the disk before the class was full");
}
