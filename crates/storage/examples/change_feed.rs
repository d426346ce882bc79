//! Measures how fast a consumer reads the change feed of a store: keys alone and whole objects, and
//! the walk over the index that stores without a lasting journal do. Then measures folds over the
//! same store. The keys are written in order or scattered. Usage: `cargo run --release -p
//! ombak-storage --example change_feed [CHANGES] [VALUE_BYTES] [ordered|scattered] [STORE]`

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement: it may stop at the first surprise")]

use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, ChangesQuery, ChangesSince, Detail, FeedCursor, FeedStep, FoldEntry,
    JournalConfig, KeyState, LedgerConfig, LeveldbFactory, LeveledFactory, NoTerms, Reach, Scope, Write,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const CHANGES_AT_ONCE: usize = 10_000;
const BYTES_AT_ONCE: u64 = 16 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, otherwise: u64| arguments.get(place).map_or(otherwise, |n| n.parse().expect("a number"));
    let (changes, value_bytes) = (number(0, 1_000_000), number(1, 100));
    let is_scattered = arguments.get(2).is_some_and(|order| order == "scattered");
    let is_wanted = |name: &&str| arguments.get(3).is_none_or(|wanted| wanted == name);
    for name in ["bitcask", "leveled", "leveldb"].into_iter().filter(is_wanted) {
        let dir = tempfile::tempdir().unwrap();
        let store = open(name, dir.path());
        let from = store.feed_cursor();
        let body = vec![7; value_bytes as usize];
        for number in 0..changes {
            // An odd factor gives each number another place.
            let place = if is_scattered { number.wrapping_mul(0x9E37_79B9_7F4A_7C15) } else { number };
            put(&*store, place, &body);
            while store.is_behind() {
                store.catch_up().unwrap();
            }
        }
        store.sync(store.last_seq()).unwrap();
        for detail in [Detail::Keys, Detail::Objects] {
            let end = timed(&format!("{name}, {detail:?}"), changes, || read(&*store, &from, detail));
            let begun = Instant::now();
            assert_eq!(read(&*store, &end, detail).0, 0);
            println!(
                "{name}, {detail:?}: {:.2} ms for a consumer that has everything",
                begun.elapsed().as_secs_f64() * 1e3
            );
        }
        for detail in [Detail::Keys, Detail::Heads, Detail::Objects] {
            timed(&format!("{name}, a fold, {detail:?}"), changes, || fold(&*store, detail));
        }
    }
}

/// Reads all entries, and says how fast that was. `read` returns how many there were and their
/// bytes.
fn timed<T>(name: &str, expected: u64, read: impl FnOnce() -> (u64, u64, T)) -> T {
    let (begun, used) = (Instant::now(), processor_time());
    let (count, bytes, rest) = read();
    let (secs, used) = (begun.elapsed().as_secs_f64(), processor_time() - used);
    assert_eq!(count, expected);
    println!(
        "{name}: {:.0} changes a second, {:.0} MB a second, {:.2} µs of processor time a change",
        count as f64 / secs,
        bytes as f64 / secs / 1e6,
        used.as_secs_f64() * 1e6 / count as f64
    );
    rest
}

fn open(name: &str, dir: &Path) -> Arc<dyn Backend> {
    let (fs, journal, ledger) = (Arc::new(RealFs), JournalConfig::default(), LedgerConfig::default());
    match name {
        "bitcask" => BitcaskFactory::new(fs, dir, journal).unwrap().open(0).unwrap(),
        "leveled" => LeveledFactory::new(fs, dir, journal, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap(),
        _ => LeveldbFactory::new(fs, dir, journal, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap(),
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

fn put(store: &dyn Backend, number: u64, body: &[u8]) {
    let key = format!("key {number:012}");
    let write = Write {
        key: key.as_bytes(),
        head: b"head",
        body: &[body],
        digest: number.wrapping_mul(2),
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
            bytes += bytes_of(entry);
        }
    }
    (count, bytes, walk.cursor())
}

/// Reads everything that a store has, as a consumer that begins anew does.
fn fold(store: &dyn Backend, detail: Detail) -> (u64, u64, ()) {
    let (mut snapshot, mut count, mut bytes) = (store.snapshot().unwrap(), 0, 0);
    loop {
        let entries = snapshot.next(&Scope::EVERYTHING, detail, CHANGES_AT_ONCE).unwrap();
        if entries.is_empty() {
            return (count, bytes, ());
        }
        count += entries.len() as u64;
        bytes += entries.iter().map(bytes_of).sum::<u64>();
    }
}

fn bytes_of(entry: &FoldEntry) -> u64 {
    let body = entry.stored.as_ref().and_then(|stored| stored.body.as_ref());
    (entry.key.len() + body.map_or(0, |body| body.len())) as u64
}
