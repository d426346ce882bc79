//! Random histories of nodes that are down, cut off, killed, or lose their power, over several
//! engines on simulated disks. When all faults have ended, each key lies exactly on its primaries,
//! with one version that has everything that was acknowledged.

use crate::engines::cluster::{Cluster, count};
use crate::support::random::Random;
use ombak_kv::{GetOptions, GetReply, PutOptions};
use ombak_storage::fs::sim::Loss;
use ombak_types::Bucket;
use ombak_types::props::SyncOnWrite;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NODES: usize = 5;
const STEPS: usize = 60;
const KEYS: u64 = 4;

/// Types with n = 1, 2 and 3, active on every node.
fn buckets(cluster: &Cluster) -> Vec<(Bucket, u32)> {
    (1..=3).map(|n| (cluster.create_type(&format!("n{n}"), n), n)).collect()
}

/// Puts a unique value without having seen others, so every acknowledged one must stay.
async fn put(
    cluster: &Cluster,
    random: &mut Random,
    (bucket, n): &(Bucket, u32),
    number: usize,
    acknowledged: &mut BTreeMap<(Bucket, String), BTreeSet<String>>,
) {
    let through = random.below(NODES as u64) as usize;
    if !cluster.is_running(through) {
        return;
    }
    let (key, value) = (format!("k{}", random.below(KEYS)), format!("v{number}"));
    let w = 1 + random.below(u64::from(*n)) as u32;
    let n_val = random.one_in(5).then_some(w);
    // An acknowledged copy is on a disk, so a loss of power is no excuse.
    let sync_on_write = Some(SyncOnWrite::All);
    let options = PutOptions { w: count(w), n_val, sync_on_write, ..PutOptions::default() };
    let put = cluster.put(through, bucket, &key, &value, options).await;
    println!("  {value} of {bucket:?}/{key} through node {through}, w={w}, n={n_val:?}: {put:?}");
    if put.is_ok() {
        acknowledged.entry((bucket.clone(), key)).or_default().insert(value);
    }
}

/// Makes or ends a fault.
async fn disturb(cluster: &Cluster, random: &mut Random, stopped: &mut BTreeSet<usize>) {
    let node = random.below(NODES as u64) as usize;
    let what = random.below(8);
    println!("  fault {what} of node {node}, {stopped:?} are stopped");
    match what {
        0 => cluster.set_down(node, true),
        1 | 2 if !stopped.contains(&node) => cluster.set_down(node, false),
        3 => cluster.set_cut(node, true),
        4 => cluster.set_cut(node, false),
        // At most two nodes are stopped at a time.
        5 if stopped.len() < 2 && stopped.insert(node) => {
            let loss = if random.one_in(2) { Loss::Everything } else { Loss::Nothing };
            println!("  node {node} stops and loses {loss:?}");
            cluster.stop(node, loss).await;
        }
        6 | 7 => {
            if let Some(node) = stopped.pop_first() {
                cluster.start(node);
            }
        }
        _ => {}
    }
}

/// Nodes that lost their power while they answered are stopped and started again.
async fn revive(cluster: &Cluster) {
    for node in cluster.powerless() {
        if cluster.is_running(node) {
            println!("  node {node} has lost its power, and starts");
            cluster.finish_power_loss(node).await;
            cluster.start(node);
        }
    }
}

async fn run(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let cluster = Arc::new(Cluster::of(NODES));
    let buckets = buckets(&cluster);
    // A node is a member only after the file about its replicas was written
    // (`know_replicas` in `cluster/src/member/following/placement.rs`). A node that starts without
    // the file knows neither that it may lack something nor that it may owe what no mark shows.
    for node in 0..NODES {
        cluster.wait_until_saved(node).await;
    }
    let (mut acknowledged, mut stopped) = (BTreeMap::new(), BTreeSet::new());
    // Now and then a node loses its power after it proved what it holds, and before the other node
    // hears of the proof.
    let (there, answers) = (Arc::downgrade(&cluster), AtomicU64::new(seed));
    cluster.on_answer(move |id| {
        let Some(cluster) = there.upgrade() else { return };
        if answers.fetch_add(1, Ordering::SeqCst) % 23 == 22 {
            cluster.lose_power(cluster.number_of(id));
        }
    });
    for number in 0..STEPS {
        put(&cluster, &mut random, &buckets[number % buckets.len()], number, &mut acknowledged).await;
        if random.one_in(2) {
            disturb(&cluster, &mut random, &mut stopped).await;
        }
        if random.one_in(10) {
            revive(&cluster).await;
        }
        if random.one_in(8) {
            tokio::task::yield_now().await;
        }
    }
    cluster.no_hook();
    revive(&cluster).await;
    stopped.iter().for_each(|&node| cluster.start(node));
    (0..NODES).for_each(|node| {
        cluster.set_cut(node, false);
        cluster.set_down(node, false);
    });
    cluster.wait_until_settled().await;
    // What one node still owed when another said that it was settled has arrived by now.
    revive(&cluster).await;
    cluster.wait_until_settled().await;
    for ((bucket, key), values) in &acknowledged {
        let n = buckets.iter().find(|(of, _)| of == bucket).unwrap().1;
        cluster.assert_only_owners_hold(bucket, key, n);
        let all = GetOptions { r: count(n), ..GetOptions::default() };
        let found = cluster.get(0, bucket, key, all).await;
        let GetReply::Found(object) = found.unwrap() else { panic!("seed {seed}: {bucket:?}/{key} is not found") };
        let held: BTreeSet<String> =
            object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect();
        let lost: Vec<_> = values.difference(&held).collect();
        assert!(lost.is_empty(), "seed {seed}: {lost:?} of {bucket:?}/{key} were acknowledged and are lost");
    }
    assert!(!acknowledged.is_empty());
}

#[test]
fn when_all_faults_have_ended_every_key_lies_where_it_belongs() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for seed in 0..12 {
        println!("seed {seed}");
        runtime.block_on(run(seed));
    }
}
