//! Measures what kept trees cost a put, and what they save a root: nanoseconds of one in-process
//! put of 100 bytes with and without them, in turns, and the time of the root of an n_val from kept
//! trees and by a walk. Run it with
//! `cargo run --release -p ombak-kv --example trees_cost [KEYS] [ROUNDS]`.
//!
//! `trees_cost puts with|without KEYS` makes puts alone, for `benches/sums_instructions.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use bytes::Bytes;
use ombak_kv::folds::{FoldRange, FoldWants};
use ombak_kv::{DeleteMode, KeepTrees, Kv, KvConfig, MemoryReservation, PutOptions, PutRequest, TreesConfig};
use ombak_storage::{MemoryConfig, MemoryFactory};
use ombak_tictac::{ClockHash, TreeSize};
use ombak_types::{Bucket, Error, Object, Sibling, VectorClock};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RING_SIZE: u64 = 64;
const N: u32 = 3;

/// Memory without a limit.
struct Room;

impl MemoryReservation for Room {
    fn reserve(&mut self, _bytes: u64) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + '_>> {
        Box::pin(ready(Ok(())))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, kind, count] = &args[..]
        && mode == "puts"
    {
        return runtime.block_on(puts_alone(kind == "with", count.parse().expect("a number")));
    }
    let mut args = args.iter().map(|n| n.parse::<usize>().expect("a number"));
    let (keys, rounds) = (args.next().unwrap_or(1_000_000), args.next().unwrap_or(5));
    runtime.block_on(measure(keys, rounds));
}

async fn open(keeps: bool) -> (tempfile::TempDir, Kv) {
    let dir = tempfile::tempdir().unwrap();
    let stores = Arc::new(MemoryFactory::new(MemoryConfig::default()));
    let mut config = KvConfig::new("riak@127.0.0.1", dir.path(), stores);
    let keep = if keeps { KeepTrees::Always } else { KeepTrees::Never };
    config.trees = TreesConfig { keep, versions_per_second: u64::MAX >> 12, ..TreesConfig::default() };
    config.delete_mode = DeleteMode::Keep;
    let kv = Kv::open(config).unwrap();
    if keeps {
        while figure(&kv, "ombak_kept_trees") < RING_SIZE {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    (dir, kv)
}

fn figure(kv: &Kv, name: &str) -> u64 {
    kv.stats().numbers().into_iter().find(|(found, _)| found == name).expect("a figure").1
}

fn names(count: usize) -> Vec<Bytes> {
    (0..count).map(|number| Bytes::from(format!("key{number:08}"))).collect()
}

async fn puts_alone(keeps: bool, count: usize) {
    let (_dir, kv) = open(keeps).await;
    ns_of_a_put(&kv, &names(count)).await;
    kv.close();
}

async fn measure(count: usize, rounds: usize) {
    let ((_first, without), (_second, with), keys) = (open(false).await, open(true).await, names(count));
    let mut differences = Vec::new();
    for round in 0..rounds {
        let (plain, kept) = (ns_of_a_put(&without, &keys).await, ns_of_a_put(&with, &keys).await);
        let what = if round == 0 { "of a new key" } else { "over a key" };
        println!("put {what:12} without / with  {plain:7} / {kept} ns");
        differences.push(kept as i128 - plain as i128);
    }
    differences.sort_unstable();
    println!("median difference              {:7} ns a put", differences[differences.len() / 2]);
    println!(
        "memory of {} trees             {} bytes",
        figure(&with, "ombak_kept_trees"),
        figure(&with, "ombak_kept_trees_bytes")
    );
    for round in 0..rounds {
        let (walked, walked_us) = root(&without).await;
        let (kept, kept_us) = root(&with).await;
        assert_eq!((walked.len(), kept.len()), (16_384, 16_384));
        println!("root {round} walked / kept           {walked_us:9} / {kept_us} us");
    }
    without.close();
    with.close();
}

async fn root(kv: &Kv) -> (Vec<u8>, u128) {
    let began = Instant::now();
    let wants = FoldWants::Root(TreeSize::Large, ClockHash::Plain);
    let found = kv.fold(FoldRange::of_classes([N]), wants, &mut Room).await.unwrap();
    (found.root, began.elapsed().as_micros())
}

async fn ns_of_a_put(kv: &Kv, keys: &[Bytes]) -> u128 {
    let (value, began) = (Bytes::from(vec![b'x'; 100]), Instant::now());
    for key in keys {
        let object = Object { clock: VectorClock::new(), siblings: vec![Sibling::new(value.clone())] };
        let (bucket, options) = (Bucket::untyped("bench"), PutOptions::default());
        kv.put(PutRequest { bucket, key: Some(key.clone()), object, options }).await.unwrap();
    }
    began.elapsed().as_nanos() / keys.len().max(1) as u128
}
