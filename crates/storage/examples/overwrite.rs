//! Measures how much disk space bitcask takes while the same keys are overwritten again and again,
//! with default settings, in the stores of one node. Usage: `cargo run --release -p ombak-storage
//! --example overwrite [MB_LIVE] [TIMES]`

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use ombak_storage::fs::RealFs;
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PARTITIONS: u32 = 64;
const VALUE_BYTES: usize = 1000;
/// The interval of a node's background work.
const MAINTAIN_INTERVAL: Duration = Duration::from_millis(200);
const MB: u64 = 1_000_000;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let (mb_live, times) = (arguments.next().unwrap_or(100), arguments.next().unwrap_or(20));
    let dir = tempfile::tempdir().unwrap();
    let factory = BitcaskFactory::new(Arc::new(RealFs), dir.path(), JournalConfig::default()).unwrap();
    let stores: Vec<Arc<dyn Backend>> = (0..PARTITIONS).map(|number| factory.open(number).unwrap()).collect();
    let keys = mb_live * MB / VALUE_BYTES as u64;
    let is_over = AtomicBool::new(false);
    let most_bytes = std::thread::scope(|scope| {
        let background = scope.spawn(|| maintain(&stores, dir.path(), &is_over));
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for n in 0..keys * (1 + times) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // All keys once, then random ones.
            put(&stores, if n < keys { n } else { (random >> 33) % keys }, n as u8);
        }
        is_over.store(true, Ordering::Release);
        background.join().unwrap()
    });
    let end_bytes = bytes_under(dir.path());
    println!(
        "{mb_live} MB live, written over {times} times: at most {} MB on disk, {} MB at the end",
        most_bytes / MB,
        end_bytes / MB
    );
}

fn put(stores: &[Arc<dyn Backend>], number: u64, value: u8) {
    let key = format!("key {number:012}");
    let (body, store) = ([value; VALUE_BYTES], &stores[(number % u64::from(PARTITIONS)) as usize]);
    let write = Write {
        key: key.as_bytes(),
        head: b"head",
        body: &[&body],
        digest: number << 1,
        tstamp_secs: 1,
        expires_secs: 0,
        has_terms: false,
    };
    store.put(&write).unwrap();
}

/// Does background work until the end, and returns the most bytes that were on disk after any
/// round.
fn maintain(stores: &[Arc<dyn Backend>], dir: &Path, is_over: &AtomicBool) -> u64 {
    let (mut most_bytes, mut rounds) = (0, 0);
    while !is_over.load(Ordering::Acquire) {
        std::thread::park_timeout(MAINTAIN_INTERVAL);
        most_bytes = most_bytes.max(bytes_under(dir));
        rounds += 1;
        stores.iter().for_each(|store| store.maintain(rounds * MAINTAIN_INTERVAL.as_millis() as u64 / 1000).unwrap());
    }
    most_bytes.max(bytes_under(dir))
}

/// Bytes of all files. A file that is removed meanwhile counts as 0.
fn bytes_under(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_under(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
