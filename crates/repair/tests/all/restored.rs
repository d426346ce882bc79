//! Nodes whose directory is an older copy (docs/design/replication.md §5, §8): keys that were
//! deleted and reaped since the copy was made do not come back, and nothing acknowledged is lost.

use crate::engines::cluster::{Cluster, bucket, copied, count};
use crate::support::random::Random;
use ombak_kv::{DeleteMode, FillReason, GetOptions, GetReply, PutOptions, is_tombstone};
use ombak_repair::KeyChoice;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_types::{Bucket, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How a directory came to be older than what the cluster knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    /// Its files were copied back: the stores notice it.
    Copied,
    /// The whole disk was set back: only the other members notice it.
    SetBack,
}

fn w(n: u32) -> PutOptions {
    PutOptions { w: count(n), ..PutOptions::default() }
}

fn r(n: u32) -> GetOptions {
    GetOptions { r: count(n), ..GetOptions::default() }
}

/// A cluster that reaps at once.
fn reaping(nodes: usize) -> Cluster {
    Cluster::configured(nodes, |config| config.delete_mode = DeleteMode::Immediate)
}

async fn set_back(cluster: &Cluster, node: usize, disk: &FaultyFs, age: Age) {
    cluster.stop(node, Loss::Nothing).await;
    match age {
        Age::Copied => {
            cluster.set_disk(node, &copied(disk));
            cluster.start(node);
        }
        Age::SetBack => {
            cluster.set_disk(node, disk);
            cluster.start_knowing(node, Some(FillReason::Restored));
        }
    }
}

fn is_found(answer: &Result<GetReply, Error>) -> bool {
    matches!(answer, Ok(GetReply::Found(_)))
}

/// Deletes a key, and waits until no store has a trace of it.
async fn delete_and_reap(cluster: &Cluster, bucket: &Bucket, key: &str) {
    cluster.delete(0, bucket, key, 3).await.unwrap();
    cluster.wait_until("the tombstone is reaped", |c| c.holders(bucket, key).is_empty()).await;
}

/// No node reads or lists the key, and no other node holds it.
async fn assert_gone(cluster: &Cluster, bucket: &Bucket, key: &str, restored: usize) {
    for node in 0..cluster.count() {
        for quorum in 1..=3 {
            let answer = cluster.get(node, bucket, key, r(quorum)).await;
            assert!(matches!(answer, Ok(GetReply::NotFound { .. })), "{key}, r={quorum}: {answer:?}");
        }
        assert!(!cluster.list(node, bucket).await.unwrap().contains(key), "node {node} lists {key}");
    }
    assert!(cluster.holders(bucket, key).iter().all(|node| *node == restored), "{key} was pushed");
}

async fn deleted_since_the_copy(age: Age) {
    let cluster = reaping(3);
    let bucket = bucket();
    for key in ["gone", "kept", "changed"] {
        cluster.put(0, &bucket, key, "old", w(3)).await.unwrap();
    }
    cluster.wait_until_saved(2).await;
    cluster.wait_until_settled().await;
    let disk = cluster.snapshot(2);
    delete_and_reap(&cluster, &bucket, "gone").await;
    cluster.put(0, &bucket, "changed", "new", w(3)).await.unwrap();
    cluster.put(0, &bucket, "later", "new", w(3)).await.unwrap();
    // Nobody can tell the restored node what it lacks: its own copies are all it could answer with.
    (0..2).for_each(|node| cluster.set_cut(node, true));
    set_back(&cluster, 2, &disk, age).await;
    assert!(cluster.stored(2, &bucket, "gone").is_some(), "{age:?}: the disk is older");
    for key in ["gone", "kept", "changed", "later"] {
        let answer = cluster.get(2, &bucket, key, r(1)).await;
        assert!(!is_found(&answer), "{age:?}: {key} may have been deleted since: {answer:?}");
        assert!(!matches!(answer, Ok(GetReply::NotFound { .. })), "{age:?}: {key} may exist: {answer:?}");
    }
    (0..2).for_each(|node| cluster.set_cut(node, false));
    for key in ["kept", "changed", "later"] {
        assert!(is_found(&cluster.get(2, &bucket, key, r(2)).await), "{age:?}: {key} was acknowledged");
    }
    assert!(!is_found(&cluster.get(2, &bucket, "gone", r(2)).await));
    cluster.wait_until_settled().await;
    assert!(cluster.kv(2).filling_classes().is_empty());
    for key in ["kept", "changed", "later"] {
        cluster.assert_only_owners_hold(&bucket, key, 3);
    }
    assert_gone(&cluster, &bucket, "gone", 2).await;
    let kept: BTreeSet<String> = ["kept", "changed", "later"].map(String::from).into();
    assert_eq!(cluster.list(2, &bucket).await.unwrap(), kept);
    // The operator sees what only the restored store has.
    let report = cluster.repair(2).set_aside_report(10).unwrap();
    assert_eq!((report.versions.len(), report.more, report.compared), (1, 0, 1), "{age:?}: {report:?}");
    assert_eq!((&report.versions[0].bucket, &*report.versions[0].key), (&bucket, &b"gone"[..]));
    assert!(report.versions[0].is_compared && report.versions[0].last_modified.is_some());
    let short = cluster.repair(2).set_aside_report(0).unwrap();
    assert_eq!((short.versions.len(), short.more), (0, 1));
    // It survives another start, and a loss of the newest writes changes nothing.
    cluster.stop(2, Loss::Everything).await;
    cluster.start(2);
    cluster.wait_until_settled().await;
    assert_gone(&cluster, &bucket, "gone", 2).await;
    assert_eq!(cluster.repair(2).set_aside_report(10).unwrap().versions.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_reaped_since_the_files_were_copied_does_not_come_back() {
    deleted_since_the_copy(Age::Copied).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_reaped_since_the_disk_was_set_back_does_not_come_back() {
    deleted_since_the_copy(Age::SetBack).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_pushes_or_drops_what_only_a_restored_store_has() {
    let cluster = reaping(3);
    let bucket = bucket();
    for key in ["pushed", "dropped", "replaced"] {
        cluster.put(0, &bucket, key, "old", w(3)).await.unwrap();
    }
    cluster.wait_until_saved(2).await;
    cluster.wait_until_settled().await;
    let disk = cluster.snapshot(2);
    for key in ["pushed", "dropped", "replaced"] {
        delete_and_reap(&cluster, &bucket, key).await;
    }
    set_back(&cluster, 2, &disk, Age::Copied).await;
    cluster.wait_until_settled().await;
    let node = cluster.repair(2);
    let choice = |key: &'static str| KeyChoice::Key(bucket.clone(), key.into());
    assert_eq!(node.push_set_aside(&choice("pushed")), Ok(1));
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "pushed", 3);
    assert!(is_found(&cluster.get(0, &bucket, "pushed", r(3)).await));
    cluster.put(0, &bucket, "replaced", "new", w(3)).await.unwrap();
    let report = node.set_aside_report(10).unwrap();
    assert_eq!(report.versions.iter().map(|version| &*version.key).collect::<Vec<_>>(), [b"dropped"]);
    assert!(node.kv().may_have_set_aside());
    assert_eq!(node.drop_set_aside(&KeyChoice::All), Ok(1));
    assert!(!node.kv().may_have_set_aside());
    assert_eq!(cluster.holders(&bucket, "dropped"), [] as [usize; 0]);
    let GetReply::Found(object) = cluster.get(2, &bucket, "replaced", r(3)).await.unwrap() else { panic!() };
    assert_eq!(object.siblings.len(), 1, "the old value is no sibling of the new one");
}

/// §5: neither an owed mark nor a hint of the older copy brings a reaped key back, and neither does
/// a replica that orders what it lacks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_pays_nothing_and_hands_nothing_back() {
    let cluster = reaping(4);
    let bucket = bucket();
    cluster.wait_until_settled().await;
    let owners = cluster.owners(&bucket, "k", 3);
    let stand_in = (0..4).find(|node| !owners.contains(node)).unwrap();
    // One owner is down: the stand-in has a hint for it, and one who is cut off is owed the write.
    cluster.set_down(owners[2], true);
    cluster.set_cut(owners[1], true);
    cluster.put(owners[0], &bucket, "k", "v", w(2)).await.unwrap();
    let (giver, holder) = (owners[0], stand_in);
    cluster.wait_until("it has a hint", |c| c.stored(holder, &bucket, "k").is_some()).await;
    cluster.wait_until("the miss is noted", |c| c.repair(giver).settled().owed_marks > 0).await;
    cluster.wait_until_saved(giver).await;
    cluster.wait_until_saved(holder).await;
    let disks = [(giver, cluster.snapshot(giver)), (holder, cluster.snapshot(holder))];
    cluster.set_down(owners[2], false);
    cluster.set_cut(owners[1], false);
    cluster.wait_until_settled().await;
    cluster.assert_only_owners_hold(&bucket, "k", 3);
    cluster.delete(owners[0], &bucket, "k", 3).await.unwrap();
    cluster.wait_until("the tombstone is reaped", |c| c.holders(&bucket, "k").is_empty()).await;
    // Another owner may have lost its newest writes, and orders what it lacks from all others.
    cluster.stop(owners[1], Loss::Nothing).await;
    for (node, disk) in &disks {
        set_back(&cluster, *node, disk, Age::Copied).await;
    }
    cluster.start_knowing(owners[1], Some(FillReason::LostWrites));
    cluster.wait_until_settled().await;
    // A removal is not synced: the tombstone may be back, and is reaped again.
    let live = |node: usize| cluster.stored(node, &bucket, "k").is_some_and(|digest| !is_tombstone(digest));
    let holders: BTreeSet<usize> = (0..4).filter(|node| live(*node)).collect();
    assert!(holders.is_subset(&[giver, holder].into()), "{holders:?}: it was pushed");
    for node in 0..4 {
        assert!(!is_found(&cluster.get(node, &bucket, "k", r(1)).await), "node {node}");
    }
}

/// Random histories: one node is set back now and then to a copy of its disk. At each moment a read
/// of two replicas finds exactly what was acknowledged last, and so does a listing.
async fn history(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let cluster = reaping(3);
    let bucket = bucket();
    let mut model: BTreeMap<String, String> = BTreeMap::new();
    let mut disk: Option<(usize, Arc<FaultyFs>)> = None;
    for node in 0..3 {
        cluster.wait_until_saved(node).await;
    }
    for number in 0..40 {
        let (key, through) = (format!("k{}", random.below(6)), random.below(3) as usize);
        match random.below(10) {
            0..=3 => {
                let value = format!("v{number}");
                // Each put replaces what it has read.
                let clock = match cluster.get(through, &bucket, &key, r(2)).await.unwrap() {
                    GetReply::Found(object) => object.clock,
                    GetReply::NotFound { tombstone } => tombstone.unwrap_or_default(),
                };
                let sibling = ombak_types::Sibling::new(bytes::Bytes::from(value.clone()));
                let object = ombak_types::Object { clock, siblings: vec![sibling] };
                cluster.put_object(through, &bucket, &key, object, w(2)).await.unwrap();
                model.insert(key, value);
            }
            4 | 5 => {
                let deleted = cluster.delete(through, &bucket, &key, 2).await;
                assert!(deleted.is_ok(), "seed {seed}: {deleted:?}");
                model.remove(&key);
            }
            6 => disk = Some((through, cluster.snapshot(through))),
            7 => {
                if let Some((node, disk)) = disk.take() {
                    // Until the node is full again, what two nodes acknowledged may lie on one.
                    cluster.wait_until_settled().await;
                    let age = if random.one_in(2) { Age::Copied } else { Age::SetBack };
                    set_back(&cluster, node, &disk, age).await;
                }
            }
            8 => cluster.wait_until_settled().await,
            _ => {}
        }
        for key in (0..6).map(|key| format!("k{key}")) {
            let found = match cluster.get(random.below(3) as usize, &bucket, &key, r(2)).await.unwrap() {
                GetReply::Found(object) => Some(object.siblings.iter().map(|s| s.value.clone()).collect::<Vec<_>>()),
                GetReply::NotFound { .. } => None,
            };
            let expected = model.get(&key).map(|value| vec![bytes::Bytes::from(value.clone())]);
            assert_eq!(found, expected, "seed {seed}, step {number}: {key}");
        }
    }
    cluster.wait_until_settled().await;
    for node in 0..3 {
        assert_eq!(cluster.list(node, &bucket).await.unwrap(), model.keys().cloned().collect(), "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_copy_a_node_is_set_back_to_reads_find_what_was_acknowledged_last() {
    for seed in 0..8 {
        println!("seed {seed}");
        history(seed).await;
    }
}
