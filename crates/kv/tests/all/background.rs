//! Background work: a part that fails or waits does not delay the other parts.

use crate::support::Node;
use crate::support::faulty::{Faults, FaultyFactory};
use ombak_kv::{DeleteMode, KvConfig};
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::VectorClock;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const RING_SIZE: u32 = 8;
const KEYS: u64 = 60;

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A node on bitcask, over the simulated file system.
fn node_on(fs: &Arc<FaultyFs>, delete_mode: DeleteMode, break_partition: Option<u32>) -> (Node, Arc<Faults>) {
    let journal = JournalConfig::default();
    let stores = FaultyFactory::over(BitcaskFactory::new(fs.clone(), Path::new("/node/bitcask"), journal).unwrap());
    let faults = stores.faults.clone();
    *faults.broken_partition.lock().unwrap() = break_partition;
    let change = |config: &mut KvConfig| {
        config.ring_size = RING_SIZE;
        config.delete_mode = delete_mode;
        config.backend = Arc::new(stores);
    };
    (Node::configured(change), faults)
}

fn keys_of(node: &Node) -> Vec<u64> {
    node.kv.vnode_status().iter().map(|(_, status)| status.keys).collect()
}

async fn put_and_delete_keys(node: &Node) {
    for n in 0..KEYS {
        node.put(&format!("key {n}"), "value", VectorClock::new()).await.unwrap();
        node.delete(&format!("key {n}")).await.unwrap();
    }
}

/// All tombstones are reaped, except in the partition `broken`, from which none can be removed.
fn is_all_reaped_but(node: &Node, broken: usize) -> bool {
    keys_of(node).iter().enumerate().all(|(partition, keys)| (partition == broken) == (*keys > 0))
}

#[tokio::test]
async fn a_sweep_goes_on_behind_a_partition_that_cannot_be_read_and_comes_back_to_it() {
    const BROKEN: usize = 2;
    let fs = FaultyFs::new(1);
    let (node, _) = node_on(&fs, DeleteMode::Keep, None);
    put_and_delete_keys(&node).await;
    assert!(keys_of(&node).iter().all(|keys| *keys > 0), "{:?}", keys_of(&node));
    node.close().await;
    drop(node);
    // The sweep at the start finds the tombstones of an earlier run.
    let (node, faults) = node_on(&fs, DeleteMode::After(Duration::from_millis(1)), Some(BROKEN as u32));
    wait_until("the other partitions are reaped", || is_all_reaped_but(&node, BROKEN)).await;
    let failures = faults.failures.load(Ordering::SeqCst);
    assert!(failures > 0);
    wait_until("the sweep comes back", || faults.failures.load(Ordering::SeqCst) > failures).await;
    *faults.broken_partition.lock().unwrap() = None;
    node.wait_for_keys_stored(0).await;
}

#[tokio::test]
async fn a_tombstone_that_cannot_be_removed_is_tried_again_and_the_others_go() {
    const BROKEN: usize = 5;
    let fs = FaultyFs::new(1);
    let (node, faults) = node_on(&fs, DeleteMode::Immediate, Some(BROKEN as u32));
    put_and_delete_keys(&node).await;
    wait_until("the other partitions are reaped", || is_all_reaped_but(&node, BROKEN)).await;
    *faults.broken_partition.lock().unwrap() = None;
    node.wait_for_keys_stored(0).await;
}

#[tokio::test]
async fn syncs_at_an_interval_do_not_wait_for_other_background_work() {
    let stores = FaultyFactory::new();
    let faults = stores.faults.clone();
    *faults.sync_interval.lock().unwrap() = Some(Duration::from_millis(20));
    faults.hold_maintenance(true);
    let node = Node::configured(|config| config.backend = Arc::new(stores));
    wait_until("background work waits", || faults.maintenance_waiting.load(Ordering::SeqCst) > 0).await;
    let syncs = faults.syncs.load(Ordering::SeqCst);
    wait_until("stores are synced", || faults.syncs.load(Ordering::SeqCst) > syncs + 200).await;
    faults.hold_maintenance(false);
    node.close().await;
}
