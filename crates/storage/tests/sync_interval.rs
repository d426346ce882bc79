//! Appends are synced at their interval, even if the store is busy with other work.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use ombak_storage::fs::sim::{Call, FaultyFs};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, MergeConfig, SyncStrategy};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far longer than the test takes, so a sync is due only when the test passes a later time.
const INTERVAL: Duration = Duration::from_secs(3600);

fn open(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    let merge = MergeConfig { check_interval_secs: 1, io_bytes_per_sec: 1 << 40, ..MergeConfig::default() };
    let sync = SyncStrategy::Interval(INTERVAL);
    let config = JournalConfig { sync, merge, opened_at_secs: NOW_SECS, ..JournalConfig::default() };
    BitcaskFactory::new(fs.clone(), "/data", config).unwrap().open(0).unwrap()
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
