//! Measures what the sums of classes cost a put: nanoseconds of one in-process put of 100 bytes
//! with and without them, in turns, and of a cut and a walk. Run it with
//! `cargo run --release -p ombak-kv --example sums_cost [KEYS] [ROUNDS]`.
//!
//! `sums_cost puts with|without KEYS` makes puts alone, for `benches/sums_instructions.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use bytes::Bytes;
use ombak_kv::{ClassId, DeleteMode, Kv, KvConfig, PutOptions, PutRequest, SumsStep};
use ombak_storage::fs::RealFs;
use ombak_storage::{BackendFactory, BitcaskFactory, JournalConfig, MemoryConfig, MemoryFactory};
use ombak_types::{Bucket, Object, Sibling, VectorClock};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

const RING_SIZE: u32 = 64;
const N: u32 = 3;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("puts") {
        return puts_alone();
    }
    let mut args = std::env::args().skip(1).map(|n| n.parse::<usize>().expect("a number"));
    let (keys, rounds) = (args.next().unwrap_or(20_000), args.next().unwrap_or(9));
    measure("memory", keys, rounds, |_| Arc::new(MemoryFactory::new(MemoryConfig::default())));
    measure("bitcask", keys, rounds, |dir| {
        Arc::new(BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), JournalConfig::default()).unwrap())
    });
}

/// Puts keys once, with exact sums or without any, and ends.
fn puts_alone() {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let [kind, count] = &args[..] else { panic!("puts with|without KEYS") };
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
    let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores);
    (config.delete_mode, config.keeps_sums) = (DeleteMode::Keep, kind == "with");
    let kv = Kv::open(config).unwrap();
    if kind == "with" {
        (0..RING_SIZE).for_each(|partition| {
            walk(&kv, ClassId { partition, n: N });
        });
    }
    let keys: usize = count.parse().expect("a number");
    let keys: Vec<Bytes> = (0..keys).map(|number| Bytes::from(format!("key{number:08}"))).collect();
    ns_of_a_put(&kv, &keys);
    kv.close();
}

fn measure(name: &str, keys: usize, rounds: usize, stores: impl Fn(&Path) -> Arc<dyn BackendFactory>) {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = |keeps_sums: bool| {
        let dir = dirs[usize::from(keeps_sums)].path();
        let mut config = KvConfig::new("riak@127.0.0.1", dir, stores(dir));
        (config.delete_mode, config.keeps_sums) = (DeleteMode::Keep, keeps_sums);
        Kv::open(config).unwrap()
    };
    let (without, with) = (open(false), open(true));
    let keys: Vec<Bytes> = (0..keys).map(|number| Bytes::from(format!("key{number:08}"))).collect();
    for kv in [&without, &with] {
        ns_of_a_put(kv, &keys);
    }
    let began = Instant::now();
    let versions: u64 = (0..RING_SIZE).map(|partition| walk(&with, ClassId { partition, n: N })).sum();
    println!(
        "{name:8} walk                {:7} ns a version",
        began.elapsed().as_nanos() / u128::from(versions.max(1))
    );
    let began = Instant::now();
    let cuts = (0..RING_SIZE).filter_map(|partition| with.cut_of_class(ClassId { partition, n: N })).count();
    println!("{name:8} cut                 {:7} ns", began.elapsed().as_nanos() / cuts.max(1) as u128);
    let mut differences: Vec<i128> = Vec::new();
    for _ in 0..rounds {
        let (plain, summed) = (ns_of_a_put(&without, &keys), ns_of_a_put(&with, &keys));
        println!("{name:8} put without / with  {plain:7} / {summed} ns");
        differences.push(summed as i128 - plain as i128);
    }
    differences.sort_unstable();
    println!("{name:8} median difference   {:7} ns a put", differences[differences.len() / 2]);
    without.close();
    with.close();
}

fn ns_of_a_put(kv: &Kv, keys: &[Bytes]) -> u128 {
    let (value, began) = (Bytes::from(vec![b'x'; 100]), Instant::now());
    for key in keys {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value.clone())] };
        let (bucket, options) = (Bucket::untyped("bench"), PutOptions::default());
        now(kv.put(PutRequest { bucket, key: Some(key.clone()), object, options })).unwrap();
    }
    began.elapsed().as_nanos() / keys.len().max(1) as u128
}

fn walk(kv: &Kv, class: ClassId) -> u64 {
    let mut walk = kv.begin_sums_walk(class).unwrap().expect("the only walk");
    loop {
        if let SumsStep::Ended(end) = walk.step(1_000).unwrap() {
            return end.versions;
        }
    }
}

/// Polls a future once: an engine whose data is cached never suspends.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(out) => out,
        Poll::Pending => panic!("suspended"),
    }
}
