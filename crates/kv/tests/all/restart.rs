//! A node's knowledge after a restart, on bitcask stores.

use crate::support::stores::copy_dir;
use crate::support::{Node, map, values};
use ombak_kv::{DeleteMode, GetReply, Kv, KvConfig, OpenError};
use ombak_node_files::NodeFileError;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{BitcaskFactory, JournalConfig};
use ombak_types::VectorClock;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn config(dir: &Path) -> KvConfig {
    let stores = BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default()).unwrap();
    let mut config = KvConfig::new("riak@127.0.0.1", dir, Arc::new(stores));
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

/// After a clean stop or a kill, with a store that was put back, copied or removed: no start
/// continues with an earlier actor.
#[tokio::test]
async fn each_start_has_an_actor_of_its_own() {
    type Change = fn(&Path);
    let changes: [Change; 4] = [
        |_| (),
        |store| std::fs::remove_dir_all(store).unwrap(),
        |store| put_back(store, &store.with_extension("copy")),
        |store| {
            std::fs::remove_file(store.join("identity")).unwrap();
            // Without the inventory, a start does not know that there was an identity. A node that
            // was killed may not have written an inventory yet.
            drop(std::fs::remove_file(store.join("inventory")));
        },
    ];
    for (change, is_closed) in changes.into_iter().flat_map(|change| [(change, true), (change, false)]) {
        let dir = tempfile::tempdir().unwrap();
        let node = start(dir.path());
        let first = actor_of_a_put(&node, "k").await;
        if is_closed {
            node.close().await;
        }
        drop(node);
        let stores = std::fs::read_dir(dir.path().join("bitcask")).unwrap();
        let store = stores.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
        change(&store);
        let node = start(dir.path());
        assert_ne!(actor_of_a_put(&node, "other").await, first);
    }
}

/// Two starts over the same bytes, in copies of the directory that were renamed to its path.
#[tokio::test]
async fn two_starts_over_the_same_bytes_never_share_an_actor() {
    let home = tempfile::tempdir().unwrap();
    let (dir, copy) = (home.path().join("node"), home.path().join("copy"));
    let node = start(&dir);
    let mut actors = BTreeSet::from([actor_of_a_put(&node, "k").await]);
    node.close().await;
    drop(node);
    copy_dir(&dir, &copy);
    for rounds in 1..=3 {
        let node = start(&dir);
        actors.insert(actor_of_a_put(&node, "other").await);
        node.close().await;
        drop(node);
        assert_eq!(actors.len(), 1 + rounds);
        std::fs::remove_dir_all(&dir).unwrap();
        copy_dir(&copy, &dir);
    }
}

/// A snapshot of the disk is taken after a clean stop, a value is written, and the disk is set
/// back. Inodes and creation times are those of the snapshot, so no file shows the difference. Both
/// histories keep their own events.
#[tokio::test]
async fn a_disk_that_was_set_back_never_repeats_an_event() {
    let home = tempfile::tempdir().unwrap();
    let open = |fs: &Arc<FaultyFs>| {
        let fs: Arc<dyn FileSystem> = fs.clone();
        let dir = home.path();
        let stores = BitcaskFactory::new(fs.clone(), dir.join("bitcask"), JournalConfig::default()).unwrap();
        Node::over(Kv::open(KvConfig { fs, backend: Arc::new(stores), ..config(dir) }).unwrap())
    };
    let disk = FaultyFs::new(1);
    let node = open(&disk);
    let base = node.put_back("k", "base", VectorClock::new()).await;
    node.close().await;
    drop(node);
    let snapshot = disk.snapshot();
    let node = open(&disk);
    let first = node.put_back("k", "first", base.clock.clone()).await;
    node.close().await;
    drop(node);

    let node = open(&snapshot);
    let second = node.put_back("k", "second", base.clock).await;
    assert!(!first.clock.descends(&second.clock), "{:?} hides {:?}", first.clock, second.clock);
    assert!(!second.clock.descends(&first.clock), "{:?} hides {:?}", second.clock, first.clock);
    let third = node.put_back("k", "third", first.clock).await;
    assert_eq!(values(&third), ["second", "third"], "whoever wrote third had not seen second");
    node.close().await;
}

/// Restores a directory from a copy, as an operator who has only copies does.
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
        let node = Node::over(Kv::open(KvConfig::new("riak@127.0.0.1", dir.path(), stores)).unwrap());
        actors.insert(actor_of_a_put(&node, "k").await);
        node.close().await;
    }
    assert_eq!(actors.len(), 2);
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
    let second = KvConfig::new("riak@127.0.0.1", dir.path(), memory.clone());
    assert!(matches!(Kv::open(second), Err(OpenError::Files(NodeFileError::InUse(_)))));
    drop(node);
    let mut larger = KvConfig::new("riak@127.0.0.1", dir.path(), memory.clone());
    larger.ring_size = 16;
    let text = Kv::open(larger).err().unwrap().to_string();
    assert!(text.contains("set ring_size = 8"), "{text}");
    let mut odd = KvConfig::new("riak@127.0.0.1", dir.path(), memory);
    odd.ring_size = 12;
    let text = Kv::open(odd).err().unwrap().to_string();
    assert!(text.contains("ring_size") && text.contains("12"), "{text}");
}
