//! A node for tests.

#![allow(dead_code, reason = "the tests of each crate use a part of it")]

pub mod faulty;
pub mod random;
pub mod stores;

use bytes::Bytes;
use ombak_kv::{
    DeleteMode, DeleteReply, DeleteRequest, GetOptions, GetReply, GetRequest, Kv, KvConfig, Listing, PutOptions,
    PutReply, PutRequest,
};
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, Error, Object, PropMap, Sibling, VectorClock};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub struct Node {
    pub kv: Kv,
    _dir: Option<TempDir>,
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

pub fn bucket() -> Bucket {
    Bucket::untyped("b")
}

pub fn map(value: Value) -> PropMap {
    value.as_object().unwrap().clone()
}

pub fn found(reply: GetReply) -> Object {
    match reply {
        GetReply::Found(object) => object,
        other => panic!("not found: {other:?}"),
    }
}

/// The values of an object in the order of the answer.
pub fn values(object: &Object) -> Vec<String> {
    object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect()
}

/// All names of a listing; checks that each appears once.
pub async fn all(mut listing: Listing) -> Result<BTreeSet<String>, Error> {
    let mut out = BTreeSet::new();
    while let Some(batch) = listing.next().await {
        let batch = batch?;
        assert!(!batch.is_empty());
        for name in batch {
            assert!(out.insert(String::from_utf8(name.to_vec()).unwrap()), "{name:?} came twice");
        }
    }
    Ok(out)
}

impl Node {
    pub fn start() -> Self {
        Self::configured(|_| ())
    }

    pub fn with_siblings() -> Self {
        Self::configured(|c| c.default_props = map(json!({"allow_mult": true, "dvv_enabled": true})))
    }

    /// A node on memory stores that keeps tombstones, unless `change` sets something else.
    pub fn configured(change: impl FnOnce(&mut KvConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
        let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores);
        config.delete_mode = DeleteMode::Keep;
        config.io_threads = 2;
        change(&mut config);
        Self { kv: Kv::open(config).unwrap(), _dir: Some(dir) }
    }

    /// A node that the caller opened.
    pub fn over(kv: Kv) -> Self {
        Self { kv, _dir: None }
    }

    /// A number of `/stats`.
    pub fn stat(&self, name: &str) -> u64 {
        self.kv.stats().numbers().into_iter().find(|(is, _)| is == name).unwrap().1
    }

    pub async fn close(&self) {
        let kv = self.kv.clone();
        tokio::task::spawn_blocking(move || kv.close()).await.unwrap();
    }

    pub fn get_request(&self, key: &str) -> GetRequest {
        GetRequest { bucket: bucket(), key: key.to_owned().into(), options: GetOptions::default() }
    }

    pub fn put_request(&self, key: &str, value: &str, clock: VectorClock) -> PutRequest {
        let object = Object { clock, siblings: vec![Sibling::new(Bytes::from(value.to_owned()))] };
        PutRequest { bucket: bucket(), key: Some(key.to_owned().into()), object, options: PutOptions::default() }
    }

    pub fn delete_request(&self, key: &str) -> DeleteRequest {
        DeleteRequest {
            bucket: bucket(),
            key: key.to_owned().into(),
            clock: None,
            get: GetOptions::default(),
            put: PutOptions::default(),
            rw: None,
        }
    }

    pub async fn get(&self, key: &str) -> Result<GetReply, Error> {
        self.kv.get(self.get_request(key)).await
    }

    pub async fn put(&self, key: &str, value: &str, clock: VectorClock) -> Result<PutReply, Error> {
        self.kv.put(self.put_request(key, value, clock)).await
    }

    /// Puts a value and returns the stored object.
    pub async fn put_back(&self, key: &str, value: &str, clock: VectorClock) -> Object {
        let mut request = self.put_request(key, value, clock);
        request.options.return_body = true;
        self.kv.put(request).await.unwrap().object.unwrap()
    }

    pub async fn delete(&self, key: &str) -> Result<DeleteReply, Error> {
        self.kv.delete(self.delete_request(key)).await
    }

    pub async fn list_keys(&self) -> BTreeSet<String> {
        all(self.kv.list_keys(&bucket(), None).unwrap()).await.unwrap()
    }

    pub async fn list_buckets(&self) -> BTreeSet<String> {
        all(self.kv.list_buckets(&"default".into(), None).unwrap()).await.unwrap()
    }

    /// Waits until the stores hold this many keys, tombstones included.
    pub async fn wait_for_keys_stored(&self, keys: u64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let stored: u64 = self.kv.vnode_status().iter().map(|(_, s)| s.keys).sum();
            if stored == keys {
                return;
            }
            assert!(Instant::now() < deadline, "{stored} keys are stored, not {keys}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
