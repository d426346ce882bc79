//! Measures how fast a consumer reads the change feed of a store: keys alone and whole objects, and
//! the walk over the index that stores without a lasting journal do. Usage: `cargo run --release -p
//! ombak-storage --example change_feed [CHANGES] [VALUE_BYTES]`

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, ChangesQuery, ChangesSince, Detail, FeedCursor, FeedStep, JournalConfig,
    KeyState, LedgerConfig, LeveldbFactory, LeveledFactory, NoTerms, Reach, Write,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const CHANGES_AT_ONCE: usize = 10_000;
const BYTES_AT_ONCE: u64 = 16 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let (changes, value_bytes) = (arguments.next().unwrap_or(1_000_000), arguments.next().unwrap_or(100));
    for name in ["bitcask", "leveled", "leveldb"] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(name, dir.path());
        let from = store.feed_cursor();
        let body = vec![7; value_bytes as usize];
        for number in 0..changes {
            put(&*store, number, &body);
            while store.is_behind() {
                store.catch_up().unwrap();
            }
        }
        store.sync(store.last_seq()).unwrap();
        for detail in [Detail::Keys, Detail::Objects] {
            let begun = Instant::now();
            let (count, bytes, end) = read(&*store, &from, detail);
            let secs = begun.elapsed().as_secs_f64();
            assert_eq!(count, changes);
            println!(
                "{name}, {detail:?}: {:.0} changes a second, {:.0} MB a second",
                count as f64 / secs,
                bytes as f64 / secs / 1e6
            );
            let begun = Instant::now();
            assert_eq!(read(&*store, &end, detail).0, 0);
            println!(
                "{name}, {detail:?}: {:.2} ms for a consumer that has everything",
                begun.elapsed().as_secs_f64() * 1e3
            );
        }
    }
}

fn open(name: &str, dir: &Path) -> Arc<dyn Backend> {
    let (fs, journal, ledger) = (Arc::new(RealFs), JournalConfig::default(), LedgerConfig::default());
    match name {
        "bitcask" => BitcaskFactory::new(fs, dir, journal).unwrap().open(0).unwrap(),
        "leveled" => LeveledFactory::new(fs, dir, journal, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap(),
        _ => LeveldbFactory::new(fs, dir, journal, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap(),
    }
}

fn put(store: &dyn Backend, number: u64, body: &[u8]) {
    let key = format!("key {number:012}");
    let write = Write {
        key: key.as_bytes(),
        head: b"head",
        body: &[body],
        digest: number << 1,
        tstamp_secs: 1,
        expires_secs: 0,
        has_terms: false,
    };
    store.put(&write).unwrap();
}

/// Reads all changes after a cursor: how many there are, their bytes, and the cursor behind them.
fn read(store: &dyn Backend, from: &FeedCursor, detail: Detail) -> (u64, u64, FeedCursor) {
    let query = ChangesQuery { from, detail, reach: Reach::Durable, with_removals: false };
    let ChangesSince::Found(mut walk) = store.changes_since(&query).unwrap() else { panic!("the cursor is new") };
    let (mut count, mut bytes) = (0, 0);
    while let FeedStep::Some(changes) = walk.next(CHANGES_AT_ONCE, BYTES_AT_ONCE).unwrap() {
        count += changes.len() as u64;
        for change in &changes {
            let KeyState::Stored(entry) = &change.state else { continue };
            let body = entry.stored.as_ref().and_then(|stored| stored.body.as_ref());
            bytes += (entry.key.len() + body.map_or(0, |body| body.len())) as u64;
        }
    }
    (count, bytes, walk.cursor())
}
