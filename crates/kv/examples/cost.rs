//! Measures the engine's cost beyond its store: nanoseconds of one in-process get and put of 1 KiB,
//! and of the store's own calls for comparison. Run it with
//! `cargo run --release -p ombak-kv --example cost [KEYS]`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use bytes::Bytes;
use ombak_kv::{DeleteMode, GetOptions, GetReply, GetRequest, Kv, KvConfig, PutOptions, PutRequest};
use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, MemoryConfig, MemoryFactory, ReadMode, Write,
};
use ombak_types::{Bucket, Object, Sibling, VectorClock};
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const VALUE_BYTES: usize = 1024;

fn main() {
    let keys: usize = std::env::args().nth(1).map_or(20_000, |n| n.parse().expect("a number of keys"));
    let dir = tempfile::tempdir().unwrap();
    measure("memory", keys, Arc::new(MemoryFactory::new(MemoryConfig::default())));
    let bitcask = |name: &str| {
        Arc::new(BitcaskFactory::new(Arc::new(RealFs), dir.path().join(name), JournalConfig::default()).unwrap())
    };
    measure("bitcask", keys, bitcask("engine"));
    store_alone("memory", keys, &*MemoryFactory::new(MemoryConfig::default()).open(0).unwrap());
    store_alone("bitcask", keys, &*bitcask("alone").open(0).unwrap());
}

fn measure(name: &str, keys: usize, stores: Arc<dyn BackendFactory>) {
    let dir = tempfile::tempdir().unwrap();
    let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores);
    config.delete_mode = DeleteMode::Keep;
    let kv = Kv::open(config).unwrap();
    let keys: Vec<Bytes> = (0..keys).map(|i| Bytes::from(format!("key{i:08}"))).collect();
    let value = Bytes::from(vec![b'x'; VALUE_BYTES]);
    let put = |key: &Bytes, clock: VectorClock| {
        let object = Object { clock, siblings: vec![Sibling::new(value.clone())] };
        let options = PutOptions::default();
        let request = PutRequest { bucket: Bucket::untyped("bench"), key: Some(key.clone()), object, options };
        now(kv.put(request)).unwrap();
    };
    let get = |key: &Bytes| {
        let (bucket, options) = (Bucket::untyped("bench"), GetOptions::default());
        match now(kv.get(GetRequest { bucket, key: key.clone(), options })).unwrap() {
            GetReply::Found(object) => object,
            GetReply::NotFound { .. } => panic!("not found"),
        }
    };
    timed(name, "first put", &keys, |k| put(k, VectorClock::new()));
    timed(name, "put over it, blind", &keys, |k| put(k, VectorClock::new()));
    timed(name, "get", &keys, |k| drop(black_box(get(k))));
    timed(name, "get and put with its clock", &keys, |k| put(k, get(k).clock));
    kv.close();
}

/// The calls of the store that a get and a put make, without an engine.
fn store_alone(name: &str, keys: usize, store: &dyn Backend) {
    let keys: Vec<Bytes> = (0..keys).map(|i| Bytes::from(format!("\x02\0\x05benchkey{i:08}"))).collect();
    let (head, body) = (vec![0; 90], vec![b'x'; VALUE_BYTES]);
    let put = |key: &Bytes| {
        let write =
            Write { key, head: &head, body: &[&body], digest: 2, tstamp_secs: 1, expires_secs: 0, has_terms: false };
        store.put(&write).unwrap();
    };
    timed(name, "store: put", &keys, put);
    timed(name, "store: head, put", &keys, |k| {
        drop(black_box(store.head(k, ReadMode::Cached)));
        put(k);
    });
    timed(name, "store: get", &keys, |k| drop(black_box(store.get(k, ReadMode::Cached).unwrap())));
    timed(name, "store: head", &keys, |k| drop(black_box(store.head(k, ReadMode::Cached).unwrap())));
}

fn timed(store: &str, what: &str, keys: &[Bytes], mut once: impl FnMut(&Bytes)) {
    let begin = Instant::now();
    keys.iter().for_each(&mut once);
    let ns = begin.elapsed().as_nanos() / keys.len().max(1) as u128;
    println!("{store:8} {what:28} {ns:6} ns");
}

/// Polls a future once: an engine whose data is cached never suspends.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => out,
        Poll::Pending => panic!("suspended"),
    }
}
