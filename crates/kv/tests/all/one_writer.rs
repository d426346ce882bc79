//! One writer per key, also across waits for disks (docs/design/replication.md §18), on every
//! backend. Nothing can be read without waiting, so all work of a write, and then its sync, runs on
//! I/O threads.

use crate::support;

use crate::support::Node;
use crate::support::faulty::FaultyFactory;
use bytes::Bytes;
use ombak_kv::{DeleteMode, GetReply, Kv, KvConfig, PutCondition, head_terms};
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{
    BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MemoryFactory,
    MultiFactory, Selector, StorageError, SyncStrategy,
};
use ombak_types::{Error, VectorClock};
use std::path::Path;
use std::sync::Arc;

const WRITERS: u64 = 6;
const INCREMENTS: u64 = 25;
const KEYS: [&str; 2] = ["one", "two"];

fn uncached() -> Arc<FaultyFs> {
    let fs = FaultyFs::new(1);
    fs.set_nothing_is_cached(true);
    fs
}

fn journal() -> JournalConfig {
    JournalConfig { sync: SyncStrategy::OSync, ..JournalConfig::default() }
}

/// No part of the ledger counts as cached.
fn ledger() -> LedgerConfig {
    LedgerConfig { cached_bytes_max: 0, memory_bytes_max: 4 << 10, ..LedgerConfig::default() }
}

fn bitcask(_: &Path) -> Arc<dyn BackendFactory> {
    Arc::new(BitcaskFactory::new(uncached(), "/bitcask", journal()).unwrap())
}

fn leveled(dir: &Path) -> Arc<dyn BackendFactory> {
    let root = dir.join("leveled");
    Arc::new(LeveledFactory::new(uncached(), root, journal(), ledger(), head_terms()).unwrap())
}

fn leveldb(dir: &Path) -> Arc<dyn BackendFactory> {
    let root = dir.join("leveldb");
    Arc::new(LeveldbFactory::new(uncached(), root, journal(), ledger(), head_terms()).unwrap())
}

fn memory(_: &Path) -> Arc<dyn BackendFactory> {
    let stores = FaultyFactory::new();
    stores.faults.set(&stores.faults.nothing_cached, true);
    Arc::new(stores)
}

struct ByLength;

impl Selector for ByLength {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(key.len() % 3)
    }
}

fn multi(dir: &Path) -> Arc<dyn BackendFactory> {
    let names = ["bitcask", "leveldb", "memory"].map(String::from);
    let backends = [bitcask(dir), leveldb(dir), Arc::new(MemoryFactory::default())];
    let backends = names.into_iter().zip(backends).collect();
    Arc::new(MultiFactory::new(backends, Arc::new(ByLength)))
}

/// Increments a counter: reads it and writes it back on condition that it has not changed.
async fn increment(node: &Node, key: &str) {
    loop {
        let (count, condition) = match node.get(key).await.unwrap() {
            GetReply::Found(object) => {
                assert_eq!(object.siblings.len(), 1, "{key}");
                let count: u64 = std::str::from_utf8(&object.siblings[0].value).unwrap().parse().unwrap();
                (count, PutCondition::IfNotModified(object.clock))
            }
            GetReply::NotFound { .. } => (0, PutCondition::IfNoneMatch),
        };
        let clock = match &condition {
            PutCondition::IfNotModified(clock) => clock.clone(),
            _ => VectorClock::new(),
        };
        let mut request = node.put_request(key, "", clock);
        request.object.siblings[0].value = Bytes::from((count + 1).to_string());
        request.options.condition = condition;
        match node.kv.put(request).await {
            Ok(_) => return,
            Err(Error::Modified | Error::MatchFound) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn writers_exclude_each_other(stores: impl Fn(&Path) -> Arc<dyn BackendFactory>) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores(dir.path()));
    config.ring_size = 8;
    config.io_threads = 4;
    config.delete_mode = DeleteMode::Keep;
    let node = Arc::new(Node::over(Kv::open(config).unwrap()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let node = node.clone();
                tokio::spawn(async move {
                    for n in 0..INCREMENTS {
                        increment(&node, KEYS[n as usize % KEYS.len()]).await;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let mut sum = 0;
        for key in KEYS {
            let object = support::found(node.get(key).await.unwrap());
            sum += std::str::from_utf8(&object.siblings[0].value).unwrap().parse::<u64>().unwrap();
        }
        assert_eq!(sum, WRITERS * INCREMENTS, "an acknowledged increment is lost");
    });
}

#[test]
fn on_bitcask() {
    writers_exclude_each_other(bitcask);
}

#[test]
fn on_leveled() {
    writers_exclude_each_other(leveled);
}

#[test]
fn on_leveldb() {
    writers_exclude_each_other(leveldb);
}

#[test]
fn on_memory() {
    writers_exclude_each_other(memory);
}

#[test]
fn on_multi() {
    writers_exclude_each_other(multi);
}
