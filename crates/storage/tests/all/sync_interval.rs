//! Appends are synced at their interval, even if the store is busy with other work.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MergeConfig,
    NoTerms, SyncStrategy, Write,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far longer than the test takes, so a sync is due only when the test passes a later time.
const INTERVAL: Duration = Duration::from_secs(3600);

fn config() -> JournalConfig {
    let merge = MergeConfig { check_interval_secs: 1, io_bytes_per_sec: 1 << 40, ..MergeConfig::default() };
    let sync = SyncStrategy::Interval(INTERVAL);
    JournalConfig { sync, merge, opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn open(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    open_in(Path::new("/data"), "bitcask", fs)
}

/// A ledger has little memory, so that it soon has to be caught up with.
fn open_in(root: &Path, backend: &str, fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    let ledger = LedgerConfig { memory_bytes_max: 16 << 10, ..LedgerConfig::default() };
    let (fs, terms) = (fs.clone(), Arc::new(NoTerms));
    let factory: Box<dyn BackendFactory> = match backend {
        "bitcask" => Box::new(BitcaskFactory::with_terms(fs, root, config(), &ledger, terms).unwrap()),
        "leveled" => Box::new(LeveledFactory::new(fs, root, config(), ledger, terms).unwrap()),
        _ => Box::new(LeveldbFactory::new(fs, root, config(), ledger, terms).unwrap()),
    };
    factory.open(0).unwrap()
}

/// Puts, and passes times: there is one sync for each interval that is over, and none before.
fn check_intervals(store: &dyn Backend, fs: &FaultyFs, begin: Instant, when: &str) {
    for intervals in 1..4 {
        let over = begin + INTERVAL * intervals;
        let appended = put(store, b"a key", &[intervals as u8; 100]).unwrap();
        store.sync_if_due(over - Duration::from_secs(1)).unwrap();
        assert!(!store.is_synced(appended.seq), "{when}: before interval {intervals} is over");
        let syncs = fs.calls_of(Call::SyncData);
        store.sync_if_due(over).unwrap();
        store.sync_if_due(over).unwrap();
        assert!(store.is_synced(appended.seq), "{when}: after interval {intervals}");
        assert_eq!(fs.calls_of(Call::SyncData), syncs + 1, "{when}: one sync for each interval");
    }
}

#[test]
fn appends_are_synced_at_their_interval_while_a_merge_waits_for_the_disk() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    for round in 0..4u8 {
        for n in 0..20 {
            put(&*store, format!("key {n}").as_bytes(), &[round; 300]).unwrap();
        }
    }
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
    store.maintain(NOW_SECS).unwrap();
    // `begin` is after the last sync, so the first interval is over one hour after it.
    let begin = Instant::now();
    fs.hold(Call::Read);
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| store.maintain(NOW_SECS + 2));
        fs.wait_for_held(Call::Read);
        check_intervals(&*store, &fs, begin, "while a merge reads");
        assert!(!merge.is_finished());
        fs.release(Call::Read);
        merge.join().unwrap().unwrap();
    });
    assert_eq!(store.status().merges, 1);
}

#[test]
fn appends_are_synced_at_their_interval_while_a_backup_is_taken() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    put(&*store, b"first", b"value").unwrap();
    store.sync(store.last_seq()).unwrap();
    let begin = Instant::now();
    // A backup holds the lock that `catch_up` and merges hold, too.
    let backup = store.begin_backup().unwrap().unwrap();
    check_intervals(&*store, &fs, begin, "during a backup");
    drop(backup);
}

/// A ledger that is behind makes writers wait for `catch_up`, which has a slow disk to write to.
#[test]
fn appends_are_synced_at_their_interval_while_a_ledger_is_caught_up_with() {
    // The call comes late in the work, and a sync of the file that is appended to does not make it.
    for (backend, held) in [("leveled", Call::SyncDir), ("leveldb", Call::Remove)] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open_in(dir.path(), backend, &fs);
        for n in 0..100_000 {
            if store.is_behind() {
                break;
            }
            put(&*store, format!("key {n}").as_bytes(), &[1; 300]).unwrap();
        }
        assert!(store.is_behind(), "{backend}");
        store.sync(store.last_seq()).unwrap();
        fs.hold(held);
        std::thread::scope(|scope| {
            let catching_up = scope.spawn(|| store.catch_up());
            fs.wait_for_held(held);
            check_intervals(&*store, &fs, Instant::now(), &format!("while {backend} catches up"));
            assert!(!catching_up.is_finished(), "{backend}");
            fs.release(held);
            catching_up.join().unwrap().unwrap();
        });
        assert!(!store.is_behind(), "{backend}");
    }
}

/// The first ordered query over a bitcask store makes an order of its keys, and reads every head
/// that has index entries.
#[test]
fn appends_are_synced_at_their_interval_while_an_order_of_keys_is_made() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let store = open_in(dir.path(), "bitcask", &fs);
    for n in 0..100 {
        let key = format!("key {n}").into_bytes();
        let write = Write {
            key: &key,
            head: b"head",
            body: &[b"body"],
            digest: 1,
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: true,
        };
        store.put(&write).unwrap();
    }
    // A store that has just started has no head in memory.
    store.close().unwrap();
    drop(store);
    let store = open_in(dir.path(), "bitcask", &fs);
    let appended = put(&*store, b"a key", b"value").unwrap();
    fs.hold(Call::Read);
    std::thread::scope(|scope| {
        let querying = scope.spawn(|| store.ordered_snapshot(b"key").map(drop));
        fs.wait_for_held(Call::Read);
        let over = Instant::now() + INTERVAL;
        store.sync_if_due(over - Duration::from_secs(60)).unwrap();
        assert!(!store.is_synced(appended.seq), "before the interval is over");
        let syncs = fs.calls_of(Call::SyncData);
        store.sync_if_due(over).unwrap();
        assert!(store.is_synced(appended.seq), "after the interval");
        assert_eq!(fs.calls_of(Call::SyncData), syncs + 1);
        assert!(!querying.is_finished());
        fs.release(Call::Read);
        querying.join().unwrap().unwrap();
    });
}
