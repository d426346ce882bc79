//! Scenarios of Riak's own tests that concern one node's storage, under Riak's names
//! (docs/riak/riak-test.md §12).

use crate::support::stores::{self, Opener};
use crate::support::{Node, map};
use ombak_kv::{GetReply, KvConfig};
use ombak_runtime::OtherClocks;
use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, MemoryConfig, MemoryFactory, MultiFactory, ReadMode,
    Selector, StorageError, Write,
};
use ombak_types::VectorClock;
use ombak_types::time::UnixMicros;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NOW_SECS: u64 = 1_800_000_000;

/// In a bucket with last_write_wins, reads write nothing.
#[tokio::test]
async fn verify_no_writes_on_read() {
    for opener in [stores::memory as Opener, stores::bitcask, stores::leveled, stores::leveldb] {
        let dir = stores::scratch_dir();
        let factory = opener(dir.path());
        let name = factory.name();
        let node = Node::configured(|config| {
            (config.backend, config.ring_size) = (factory, 8);
            config.default_props = map(json!({"last_write_wins": true}));
        });
        for n in 0..50 {
            node.put(&format!("key {n}"), "v", VectorClock::new()).await.unwrap();
        }
        let written = || node.kv.vnode_status().iter().map(|(_, status)| status.put_bytes).sum::<u64>();
        let before = written();
        assert!(before > 0, "{name}");
        for n in (0..60).chain(0..60) {
            let found = node.get(&format!("key {n}")).await.unwrap();
            assert_eq!(matches!(found, GetReply::Found(_)), n < 50, "{name}");
        }
        assert_eq!(written(), before, "{name}");
        node.close().await;
    }
}

/// An expired key no longer counts in the statistics of its partition.
#[tokio::test]
async fn verify_bitcask_expiry_stats() {
    let dir = stores::scratch_dir();
    let secs = Arc::new(AtomicU64::new(NOW_SECS));
    let clock = secs.clone();
    let journal = JournalConfig {
        expiry_secs: Some(10),
        sweep_interval_secs: 0,
        opened_at_secs: NOW_SECS,
        ..JournalConfig::default()
    };
    let node = Node::configured(|config: &mut KvConfig| {
        config.backend = Arc::new(BitcaskFactory::new(Arc::new(RealFs), dir.path().join("stores"), journal).unwrap());
        config.ring_size = 8;
        config.maintain_interval = Duration::from_millis(5);
        let clock = move || UnixMicros::from_secs(clock.load(Ordering::SeqCst));
        config.runtime = Arc::new(OtherClocks::of(config.runtime.clone()).with_wall_clock(clock));
    });
    node.put("key", "v", VectorClock::new()).await.unwrap();
    node.wait_for_keys_stored(1).await;
    secs.fetch_add(11, Ordering::SeqCst);
    node.wait_for_keys_stored(0).await;
    assert_eq!(node.get("key").await.unwrap(), GetReply::NotFound { tombstone: None });
    node.close().await;
}

/// Selects the first backend for every key.
struct First;

impl Selector for First {
    fn select(&self, _key: &[u8]) -> Result<usize, StorageError> {
        Ok(0)
    }
}

/// The memory store of a partition, on its own and as one of several backends.
fn single_and_multi(config: MemoryConfig) -> [Arc<dyn Backend>; 2] {
    let single: Arc<dyn BackendFactory> = Arc::new(MemoryFactory::new(config));
    let multi = MultiFactory::new(vec![("memory".to_owned(), single.clone())], Arc::new(First));
    [single.open(0).unwrap(), multi.open(1).unwrap()]
}

fn put(store: &dyn Backend, key: &str, len: usize) {
    let (head, body) = (b"head", vec![7; len]);
    let tstamp_secs = NOW_SECS as u32;
    let body = &[&body[..]];
    let write = Write { key: key.as_bytes(), head, body, digest: 1, tstamp_secs, expires_secs: 0, has_terms: false };
    store.put(&write).unwrap();
}

fn used_bytes(store: &dyn Backend) -> u64 {
    store.status().live_bytes
}

fn is_there(store: &dyn Backend, key: &str) -> bool {
    store.get(key.as_bytes(), ReadMode::Blocking).unwrap().is_some()
}

#[test]
fn verify_membackend_ttl_frees_memory() {
    let config = MemoryConfig { ttl_secs: Some(10), opened_at_secs: NOW_SECS, ..MemoryConfig::default() };
    for store in single_and_multi(config) {
        put(&*store, "key", 1000);
        assert!(used_bytes(&*store) > 1000);
        store.maintain(NOW_SECS + 11).unwrap();
        assert!(!is_there(&*store, "key"));
        assert_eq!(used_bytes(&*store), 0);
    }
}

#[test]
fn verify_membackend_max_memory_evicts_the_oldest() {
    const BYTES_MAX: u64 = 100_000;
    let config = MemoryConfig { bytes_max: Some(BYTES_MAX), opened_at_secs: NOW_SECS, ..MemoryConfig::default() };
    for store in single_and_multi(config) {
        for n in 0..200 {
            put(&*store, &format!("key {n}"), 1000);
            assert!(used_bytes(&*store) <= BYTES_MAX);
        }
        let kept: Vec<u32> = (0..200).filter(|n| is_there(&*store, &format!("key {n}"))).collect();
        assert!(kept.len() > 50 && kept.len() < 100, "{} keys", kept.len());
        assert_eq!(kept, (200 - kept.len() as u32..200).collect::<Vec<_>>(), "the newest stay");
    }
}

#[test]
fn verify_membackend_delete_and_put_again_keep_the_size() {
    let config = MemoryConfig { bytes_max: Some(100_000), opened_at_secs: NOW_SECS, ..MemoryConfig::default() };
    for store in single_and_multi(config) {
        put(&*store, "key", 1000);
        let used = used_bytes(&*store);
        store.delete(b"key").unwrap().unwrap();
        assert_eq!(used_bytes(&*store), 0);
        for _ in 0..10 {
            put(&*store, "key", 1000);
            assert_eq!(used_bytes(&*store), used);
        }
    }
}
