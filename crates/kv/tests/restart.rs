//! What a node knows after a restart, on bitcask stores.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use ombak_kv::{DeleteMode, GetReply, Kv, KvConfig, OpenError};
use ombak_storage::fs::RealFs;
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::VectorClock;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::{Node, found, map, values};

fn config(dir: &Path) -> KvConfig {
    let stores = BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default()).unwrap();
    let mut config = KvConfig::new("ombak@127.0.0.1", dir, Arc::new(stores));
    config.ring_size = 8;
    config.delete_mode = DeleteMode::Keep;
    config.default_props = map(json!({"allow_mult": true, "dvv_enabled": true}));
    config
}

fn start(dir: &Path) -> Node {
    Node::over(Kv::open(config(dir)).unwrap())
}

async fn actor_of_a_put(node: &Node, key: &str) -> Vec<u8> {
    let object = node.put_back(key, "v", VectorClock::new()).await;
    object.clock.entries()[0].actor.as_bytes()[..8].to_vec()
}

#[tokio::test]
async fn an_actor_outlives_a_clean_end_only() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path());
    let first = actor_of_a_put(&node, "k").await;
    node.close().await;
    drop(node);
    let node = start(dir.path());
    assert_eq!(actor_of_a_put(&node, "k").await, first, "closed cleanly");
    assert_eq!(actor_of_a_put(&node, "other").await, first);
    let epochs: BTreeSet<Vec<u8>> = ["k", "other"]
        .map(|k| found_now(&node, k))
        .iter()
        .flat_map(|o| o.clock.entries())
        .map(|e| e.actor.as_bytes()[8..].to_vec())
        .collect();
    assert_eq!(epochs.len(), 2, "epochs go on where they ended");
    drop(node);
    let node = start(dir.path());
    assert_ne!(actor_of_a_put(&node, "third").await, first, "not closed");
    assert_eq!(values(&found(node.get("k").await.unwrap())), ["v", "v"]);
}

/// Whoever puts back, copies or removes a store of a node that was closed takes back what its actor has issued.
#[tokio::test]
async fn an_actor_goes_on_only_over_the_stores_that_it_left() {
    type Change = fn(&Path);
    let changes: [(Change, bool); 4] = [
        (|_| (), true),
        (|store| std::fs::remove_dir_all(store).unwrap(), false),
        (|store| put_back(store, &store.with_extension("copy")), false),
        (|store| std::fs::remove_file(store.join("identity")).unwrap(), false),
    ];
    for (change, goes_on) in changes {
        let dir = tempfile::tempdir().unwrap();
        let node = start(dir.path());
        let first = actor_of_a_put(&node, "k").await;
        node.close().await;
        drop(node);
        let stores = std::fs::read_dir(dir.path().join("bitcask")).unwrap();
        let store = stores.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
        change(&store);
        let node = start(dir.path());
        assert_eq!(actor_of_a_put(&node, "other").await == first, goes_on);
    }
}

/// As an operator does it who has only copies.
fn put_back(dir: &Path, copy: &Path) {
    std::fs::create_dir(copy).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::rename(copy, dir).unwrap();
}

#[tokio::test]
async fn memory_stores_keep_no_actor() {
    let dir = tempfile::tempdir().unwrap();
    let mut actors = BTreeSet::new();
    for _ in 0..2 {
        let stores = Arc::new(ombak_storage::MemoryFactory::default());
        let node = Node::over(Kv::open(KvConfig::new("ombak@127.0.0.1", dir.path(), stores)).unwrap());
        actors.insert(actor_of_a_put(&node, "k").await);
        node.close().await;
    }
    assert_eq!(actors.len(), 2);
}

fn found_now(node: &Node, key: &str) -> ombak_types::Object {
    let kv = node.kv.clone();
    let request = node.get_request(key);
    let runtime = std::thread::spawn(move || support::runtime().block_on(kv.get(request)).unwrap());
    found(runtime.join().unwrap())
}

#[tokio::test]
async fn tombstones_stay_hidden_and_are_reaped_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path());
    for key in ["dead", "alive"] {
        node.put(key, "v", VectorClock::new()).await.unwrap();
    }
    node.delete("dead").await.unwrap();
    node.close().await;
    drop(node);
    let node = start(dir.path());
    assert_eq!(node.list_keys().await, BTreeSet::from(["alive".into()]));
    assert!(matches!(node.get("dead").await, Ok(GetReply::NotFound { tombstone: Some(_) })));
    drop(node);
    let mut reaping = config(dir.path());
    reaping.delete_mode = DeleteMode::After(Duration::from_millis(10));
    let node = Node::over(Kv::open(reaping).unwrap());
    node.wait_for_keys_stored(1).await;
    assert_eq!(node.get("dead").await, Ok(GetReply::NotFound { tombstone: None }));
}

#[test]
fn a_second_process_and_another_ring_size_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let node = start(dir.path());
    let memory = Arc::new(ombak_storage::MemoryFactory::new(Default::default()));
    let second = KvConfig::new("ombak@127.0.0.1", dir.path(), memory.clone());
    assert!(matches!(Kv::open(second), Err(OpenError::InUse(_))));
    drop(node);
    let mut larger = KvConfig::new("ombak@127.0.0.1", dir.path(), memory.clone());
    larger.ring_size = 16;
    let text = Kv::open(larger).err().unwrap().to_string();
    assert!(text.contains("set ring_size = 8"), "{text}");
    let mut odd = KvConfig::new("ombak@127.0.0.1", dir.path(), memory);
    odd.ring_size = 12;
    let text = Kv::open(odd).err().unwrap().to_string();
    assert!(text.contains("ring_size") && text.contains("12"), "{text}");
}
