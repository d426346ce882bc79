//! Disks of which reads fail with EIO, over several engines in one process: a version that the disk
//! does not give back is one that cannot be read, which the others repair
//! (docs/design/replication.md §13).

use crate::engines::cluster::{Cluster, bucket, count};
use bytes::Bytes;
use ombak_kv::{DeleteMode, GetOptions, GetReply, PutOptions};
use ombak_repair::KeyChoice;
use ombak_ring::placement::Step;
use ombak_storage::fs::sim::Loss;
use ombak_storage::{Backend, ReadMode};
use ombak_types::names::encode_storage_key;
use ombak_types::{Bucket, Error, Object, StoreFailureKind};
use std::sync::Arc;
use std::time::Duration;

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

fn all() -> GetOptions {
    GetOptions { r: count(3), ..GetOptions::default() }
}

fn values(reply: Result<GetReply, Error>) -> Vec<String> {
    match reply.unwrap() {
        GetReply::NotFound { .. } => Vec::new(),
        GetReply::Found(Object { siblings, .. }) => {
            let mut values: Vec<_> = siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect();
            values.sort();
            values
        }
    }
}

/// A node that has just stored a version has its head in memory. After a start it has not.
async fn forget_heads(cluster: &Cluster, node: usize) {
    cluster.close(node).await;
    cluster.start(node);
    cluster.wait_until_settled().await;
}

/// The keys that a node has found to be unreadable.
fn unreadable(cluster: &Cluster, node: usize) -> Vec<(Bucket, Bytes)> {
    let report = cluster.repair(node).unreadable_report(1_000);
    report.versions.into_iter().map(|version| (version.bucket, version.key)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_repairs_the_replica_with_a_bad_sector_and_the_next_one_reads_all() {
    for through in [0, 1] {
        let (cluster, bucket) = (Cluster::of(3), bucket());
        cluster.put(0, &bucket, "k", "v", w(3)).await.unwrap();
        forget_heads(&cluster, 1).await;
        cluster.lose_sector(1, &bucket, "k");
        assert_eq!(values(cluster.get(through, &bucket, "k", GetOptions::default()).await), ["v"]);
        cluster.wait_until("it is repaired", |c| c.kv(1).unreadable_keys() == (0, 1)).await;
        cluster.wait_until_settled().await;
        cluster.assert_only_owners_hold(&bucket, "k", 3);
        assert_eq!(values(cluster.get(1, &bucket, "k", all()).await), ["v"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_coordinates_what_meets_a_bad_sector() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "k", "old", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    forget_heads(&cluster, 0).await;
    cluster.lose_sector(0, &bucket, "k");
    cluster.put(0, &bucket, "k", "new", w(2)).await.unwrap();
    cluster.wait_until_settled().await;
    assert_eq!(values(cluster.get(1, &bucket, "k", all()).await), ["new", "old"], "there is one event for the put");
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

/// The file of the version cannot be opened, which is no matter of one version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_coordinates_what_meets_a_file_that_does_not_open() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "k", "old", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    forget_heads(&cluster, 0).await;
    cluster.disk(0).fail_at(ombak_storage::fs::sim::Call::Open, 1);
    cluster.put(0, &bucket, "k", "new", w(2)).await.unwrap();
    assert_eq!(values(cluster.get(1, &bucket, "k", all()).await), ["new", "old"]);
    assert_eq!(unreadable(&cluster, 0), []);
}

/// The replica that cannot read its copy refuses what others push. It notices that, and gets the
/// version from the others without a read of a client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_sector_does_not_hold_up_owed_marks() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.put(0, &bucket, "k", "one", w(3)).await.unwrap();
    cluster.wait_until_settled().await;
    forget_heads(&cluster, 2).await;
    cluster.lose_sector(2, &bucket, "k");
    cluster.put(0, &bucket, "k", "other", w(2)).await.unwrap();
    cluster
        .wait_until("the miss is known or repaired", |c| {
            c.repair(0).settled().owed_marks > 0 || c.kv(2).unreadable_keys().1 > 0
        })
        .await;
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    assert_eq!(cluster.kv(2).unreadable_keys(), (0, 1));
    assert_eq!(values(cluster.get(2, &bucket, "k", all()).await), ["one", "other"]);
}

/// Whether all stores can say that they have nothing of a key.
fn is_gone(cluster: &Cluster, bucket: &Bucket, key: &str) -> bool {
    let mut storage_key = Vec::new();
    encode_storage_key(bucket, key.as_bytes(), &mut storage_key);
    let has_nothing = |(_, store): (u32, Arc<dyn Backend>)| {
        matches!(store.get_with_expired(&storage_key, ReadMode::Blocking), Ok(None))
    };
    (0..cluster.count()).all(|node| cluster.kv(node).stores().all(has_nothing))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_sector_does_not_keep_a_tombstone_from_being_reaped() {
    let cluster = Cluster::configured(3, |config| config.delete_mode = DeleteMode::After(Duration::from_millis(50)));
    let bucket = bucket();
    cluster.put(0, &bucket, "k", "v", w(3)).await.unwrap();
    forget_heads(&cluster, 1).await;
    cluster.lose_sector(1, &bucket, "k");
    cluster.delete(0, &bucket, "k", 2).await.unwrap();
    cluster.wait_until("the tombstone is reaped", |c| is_gone(c, &bucket, "k")).await;
    cluster.wait_until_settled().await;
}

/// The owner of the only replica cannot read it, and a fallback has the same version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_repairs_the_version_that_cannot_be_read_and_goes() {
    let cluster = Cluster::of(3);
    let bucket = cluster.create_type("one", 1);
    let owner = cluster.owners(&bucket, "k", 1)[0];
    let others: Vec<usize> = (0..3).filter(|node| *node != owner).collect();
    let partition = cluster.home_of(&bucket, "k");
    cluster.set_down(owner, true);
    cluster.put(others[0], &bucket, "k", "v", w(1)).await.unwrap();
    let holder = cluster.holders(&bucket, "k")[0];
    assert_ne!(holder, owner);
    // The owner gets the version, and the fallback keeps its own.
    let stored = cluster.kv(holder).stores().find(|(number, _)| *number == partition).unwrap().1;
    let mut storage_key = Vec::new();
    encode_storage_key(&bucket, b"k", &mut storage_key);
    let found = stored.get(&storage_key, ReadMode::Blocking).unwrap().unwrap();
    cluster.store_version(owner, &bucket, "k", 1, &found).await;
    assert_eq!(cluster.stored(owner, &bucket, "k"), cluster.stored(holder, &bucket, "k"));
    cluster.repair(holder).set_handoff(false, false);
    cluster.close(owner).await;
    cluster.start(owner);
    cluster.lose_sector(owner, &bucket, "k");
    cluster.repair(holder).set_handoff(true, true);
    cluster.wait_until("the hint is gone", |c| c.stored(holder, &bucket, "k").is_none()).await;
    cluster.wait_until_settled().await;
    let one = GetOptions { r: count(1), ..GetOptions::default() };
    assert_eq!(values(cluster.get(owner, &bucket, "k", one).await), ["v"]);
}

/// A version that one primary holds in a bad sector, and no other node has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_only_a_bad_sector_has_is_listed_until_it_is_given_up() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let cut = |is_cut| (1..3).for_each(|node| cluster.set_cut(node, is_cut));
    cut(true);
    cluster.put(0, &bucket, "k", "v", PutOptions { dw: count(1), ..w(1) }).await.unwrap();
    cluster.wait_until("the misses are noted", |c| c.repair(0).settled().owed_marks == 2).await;
    cluster.lose_sector(0, &bucket, "k");
    cut(false);
    cluster.wait_until("it is listed", |c| !unreadable(c, 0).is_empty()).await;
    assert_eq!(unreadable(&cluster, 0), [(bucket.clone(), "k".into())]);
    assert!(cluster.repair(0).settled().owed_marks > 0, "it may be the only copy of a write");
    let read = cluster.get(1, &bucket, "k", all()).await;
    assert!(read.is_err(), "{read:?}");
    assert_eq!(cluster.repair(0).drop_unreadable(&KeyChoice::All), Ok(1));
    cluster.wait_until_settled().await;
    assert_eq!(values(cluster.get(1, &bucket, "k", all()).await), [""; 0]);
}

/// A disk that gives the sector back again gives back what it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sector_that_comes_back_is_not_given_up() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    (1..3).for_each(|node| cluster.set_cut(node, true));
    cluster.put(0, &bucket, "k", "v", PutOptions { dw: count(1), ..w(1) }).await.unwrap();
    cluster.lose_sector(0, &bucket, "k");
    cluster.get(0, &bucket, "k", GetOptions::default()).await.unwrap_err();
    cluster.wait_until("it is listed", |c| !unreadable(c, 0).is_empty()).await;
    cluster.regain_sectors(0);
    assert_eq!(cluster.repair(0).drop_unreadable(&KeyChoice::All), Ok(0));
    (1..3).for_each(|node| cluster.set_cut(node, false));
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
}

const KEYS: usize = 60;

fn key(number: usize) -> String {
    format!("k{number}")
}

/// A member that leaves has some copies in bad sectors. Its change ends, and so does what it has
/// left to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaver_with_a_bad_sector_leaves() {
    for found_before in [true, false] {
        let cluster = Cluster::with_owners(4, 3, |_| ());
        let bucket = bucket();
        for number in 0..KEYS {
            cluster.put(number % 3, &bucket, &key(number), "value", w(3)).await.unwrap();
        }
        cluster.wait_until_settled().await;
        forget_heads(&cluster, 2).await;
        if found_before {
            cluster.lose_sector(2, &bucket, &key(7));
        }
        cluster.set_goal(&[0, 1, 3]).await;
        cluster.step(Step::Begin).await;
        if !found_before {
            cluster.lose_sector(2, &bucket, &key(7));
        }
        cluster.prove_all().await;
        cluster.step(Step::Flip).await;
        cluster.step(Step::Finish).await;
        cluster.wait_until_settled().await;
        (0..KEYS).for_each(|number| cluster.assert_only_owners_hold(&bucket, &key(number), 3));
    }
}

/// A volume that is gone for a while: a few versions seem lost, and then the store fails as a
/// whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_is_gone_is_no_matter_of_single_versions() {
    let cluster = Cluster::of(3);
    let bucket = bucket();
    let large = "v".repeat(5_000);
    for number in 0..KEYS {
        cluster.put(0, &bucket, &key(number), &large, w(3)).await.unwrap();
    }
    cluster.wait_until_settled().await;
    forget_heads(&cluster, 0).await;
    // Nothing repairs what seems to be lost.
    (1..3).for_each(|node| cluster.set_cut(node, true));
    cluster.disk(0).set_media_errors(u64::MAX);
    for number in 0..KEYS {
        cluster.get(0, &bucket, &key(number), GetOptions { r: count(1), ..GetOptions::default() }).await.unwrap_err();
    }
    let listed = unreadable(&cluster, 0).len();
    assert!((1..=33).contains(&listed), "{listed} of {KEYS} versions seem to be lost");
    let health = cluster.kv(0).health();
    assert!(!health.ready && !health.poisoned.is_empty(), "{health:?}");
    assert!(health.poisoned[0].1.contains("could not be read within a minute"), "{health:?}");
    let refused = cluster.repair(0).drop_unreadable(&KeyChoice::All);
    assert!(
        matches!(&refused, Ok(dropped) if *dropped < 33)
            || matches!(&refused, Err(Error::Storage(why)) if why.kind == StoreFailureKind::Poisoned),
        "{refused:?}"
    );
    (1..3).for_each(|node| cluster.set_cut(node, false));
    // Others coordinate, and answer, meanwhile.
    cluster.put(0, &bucket, &key(0), "new", w(2)).await.unwrap();
    let two = GetOptions { r: count(2), ..GetOptions::default() };
    assert_eq!(values(cluster.get(0, &bucket, &key(1), two).await), std::slice::from_ref(&large));
    cluster.regain_sectors(0);
    cluster.stop(0, Loss::Nothing).await;
    cluster.start(0);
    cluster.wait_until_settled().await;
    assert_eq!(unreadable(&cluster, 0), []);
    (0..KEYS).for_each(|number| cluster.assert_only_owners_hold(&bucket, &key(number), 3));
}
