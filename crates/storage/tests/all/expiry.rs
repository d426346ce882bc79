//! Expiry of versions: by the age that the store is configured with, or by the time that the writer
//! asked for. Only a store with a limit of age removes expired versions by itself.

use crate::common::*;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Detail, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    MergeConfig, NoTerms, ReadMode, Scope, StorageError, Write,
};
use std::path::Path;
use std::sync::Arc;

fn config() -> JournalConfig {
    let merge = MergeConfig {
        check_interval_secs: 0,
        io_bytes_per_sec: 1 << 40,
        threshold_small_file_bytes: 0,
        ..MergeConfig::default()
    };
    JournalConfig { file_bytes_max: 3000, merge, opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn open(fs: &Arc<FaultyFs>, config: JournalConfig) -> Arc<dyn Backend> {
    BitcaskFactory::new(fs.clone(), Path::new("/data"), config).unwrap().open(0).unwrap()
}

fn put_until(store: &dyn Backend, key: &str, value: &[u8], expires_secs: u64) {
    let (head, digest) = (head_of(value), digest_of(value));
    let (tstamp_secs, expires_secs) = (NOW_SECS as u32, expires_secs as u32);
    let body = &[value];
    store
        .put(&Write { key: key.as_bytes(), head: &head, body, digest, tstamp_secs, expires_secs, has_terms: false })
        .unwrap();
}

fn maintain(store: &dyn Backend, now_secs: u64) {
    for _ in 0..20 {
        store.maintain(now_secs).unwrap();
    }
}

/// The clock goes back while a merge waits, after the index has removed an expired version. The
/// record of that version no longer looks expired, and must still hide the older version.
#[test]
fn a_clock_that_goes_back_brings_no_older_version_back() {
    let fs = FaultyFs::new(1);
    let mut config = config();
    config.expiry_secs = Some(1000);
    // The budget comes only from appends, and a merge waits until it is 64 KiB.
    (config.merge.io_bytes_per_sec, config.sweep_interval_secs) = (1, 0);
    (config.merge.trigger_dead_bytes, config.merge.threshold_dead_bytes) = (500, 500);
    let store = open(&fs, config);
    put(&*store, b"k", b"older").unwrap();
    for n in 0..15 {
        put(&*store, format!("stays {n}").as_bytes(), &[1; 200]).unwrap();
    }
    put_until(&*store, "k", b"newer", NOW_SECS + 10);
    for _ in 0..20 {
        put(&*store, b"overwritten", &[2; 300]).unwrap();
    }
    maintain(&*store, NOW_SECS);
    store.maintain(NOW_SECS + 11).unwrap();
    let swept = store.status();
    assert_eq!((swept.keys, swept.merges), (16, 0), "forgotten, and not merged yet");
    put(&*store, b"allows merging", &[3; 40_000]).unwrap();
    maintain(&*store, NOW_SECS);
    let merged = store.status();
    assert!(merged.merges > 0, "{merged:?}");
    drop(store);
    let store = open(&fs.restart(Loss::Nothing), config);
    assert_eq!(get(&*store, b"k").unwrap(), None, "an older version is back, or a forgotten one");
}

/// A merge copies an expired version like any other. Once it is removed, merges give its space
/// back.
#[test]
fn merges_keep_expired_versions_until_they_are_removed() {
    let fs = FaultyFs::new(1);
    let mut config = config();
    config.merge = eager_merges();
    let store = open(&fs, config);
    put(&*store, b"k", b"older").unwrap();
    for n in 0..20 {
        put_until(&*store, &format!("ends {n}"), &[1; 400], NOW_SECS + 10);
    }
    put_until(&*store, "k", b"newer", NOW_SECS + 10);
    let churn = |times| {
        for n in 0..times {
            put(&*store, b"overwritten", &[n as u8; 700]).unwrap();
            store.maintain(NOW_SECS + 11).unwrap();
        }
        maintain(&*store, NOW_SECS + 11);
    };
    churn(60);
    let merged = store.status();
    assert!(merged.merges > 0 && merged.keys == 22, "{merged:?}");
    assert_eq!(value_of(store.get_with_expired(b"k", ReadMode::Blocking).unwrap()).unwrap(), b"newer");
    let mut fold = store.snapshot().unwrap();
    for entry in fold.next(&Scope::EVERYTHING, Detail::Keys, 100).unwrap().iter().filter(|entry| entry.is_expired) {
        assert!(store.delete_if(&entry.key, entry.digest).unwrap().is_some());
    }
    drop(fold);
    churn(60);
    let status = store.status();
    let bytes = status.live_bytes + status.dead_bytes;
    assert!(status.keys == 1 && bytes < 20 * 400, "{status:?}");
    drop(store);
    let store = open(&fs.restart(Loss::Nothing), config);
    assert!(store.get_with_expired(b"k", ReadMode::Blocking).unwrap().is_none());
    assert_eq!(store.status().keys, 1);
}

/// `bitcask.expiry.grace_time`: how long a file with only expired versions may wait for its merge.
#[test]
fn grace_puts_the_merge_of_expired_files_off() {
    let fs = FaultyFs::new(1);
    let mut config = JournalConfig { expiry_secs: Some(100), expiry_grace_secs: 50, ..config() };
    config.sweep_interval_secs = u32::MAX;
    // Only the age of files triggers a merge.
    config.merge.trigger_fragmentation_percent = 101;
    config.merge.threshold_fragmentation_percent = 101;
    config.merge.dead_percent_max = None;
    let store = open(&fs, config);
    for n in 0..60 {
        put(&*store, format!("key {n}").as_bytes(), &[1; 200]).unwrap();
    }
    maintain(&*store, NOW_SECS);
    let files = store.status().files;
    maintain(&*store, NOW_SECS + 150);
    assert!(get(&*store, b"key 0").unwrap().is_none(), "expired, grace or not");
    assert_eq!((store.status().merges, store.status().files), (0, files));
    maintain(&*store, NOW_SECS + 151);
    let status = store.status();
    assert!(status.merges > 0 && status.files < files, "{status:?}");
}

/// The earlier of two expiry times counts.
#[test]
fn a_version_ends_by_its_age_or_by_its_own_time() {
    let fs = FaultyFs::new(1);
    let store = open(&fs, JournalConfig { expiry_secs: Some(100), ..config() });
    put_until(&*store, "soon", b"v", NOW_SECS + 10);
    put_until(&*store, "late", b"v", NOW_SECS + 1000);
    let there = |now_secs| {
        store.maintain(now_secs).unwrap();
        ["soon", "late"].map(|key| get(&*store, key.as_bytes()).unwrap().is_some())
    };
    assert_eq!(there(NOW_SECS + 10), [true, true]);
    assert_eq!(there(NOW_SECS + 11), [false, true]);
    assert_eq!(there(NOW_SECS + 100), [false, true]);
    assert_eq!(there(NOW_SECS + 101), [false, false]);
}

type Opened = Result<Arc<dyn Backend>, StorageError>;

/// An expired version is hidden and stays, with its clock, until it is removed like a tombstone. A
/// store in which nothing expires reports that.
fn expired_versions_stay_until_they_are_removed(open: &dyn Fn() -> Opened) {
    let store = open().unwrap();
    put(&*store, b"stays", b"v").unwrap();
    store.close().unwrap();
    drop(store);
    let store = open().unwrap();
    assert!(!store.snapshot().unwrap().may_expire());
    put_until(&*store, "ends", b"v", NOW_SECS + 10);
    assert!(store.snapshot().unwrap().may_expire());
    store.close().unwrap();
    drop(store);
    let store = open().unwrap();
    assert!(store.snapshot().unwrap().may_expire());
    assert_eq!(store.status().keys, 2);
    maintain(&*store, NOW_SECS + 11);
    assert_eq!((store.status().keys, get(&*store, b"ends").unwrap()), (2, None));
    store.close().unwrap();
    drop(store);
    let store = open().unwrap();
    maintain(&*store, NOW_SECS + 11);
    assert_eq!(get(&*store, b"ends").unwrap(), None);
    assert_eq!(value_of(store.get_with_expired(b"ends", ReadMode::Blocking).unwrap()).unwrap(), b"v");
    assert_eq!(store.snapshot().unwrap().next(&Scope::ALL, Detail::Keys, 10).unwrap().len(), 1);
    let all = store.snapshot().unwrap().next(&Scope::KEPT, Detail::Objects, 10).unwrap();
    let ended = all.iter().find(|entry| entry.is_expired).expect("the expired version");
    assert_eq!((&ended.key[..], u64::from(ended.expires_secs), all.len()), (&b"ends"[..], NOW_SECS + 10, 2));
    assert_eq!(value_of(ended.stored.clone()).unwrap(), b"v");
    let removed = store.delete_if(b"ends", ended.digest).unwrap().expect("it is there");
    assert_eq!((removed.previous.digest(), store.status().keys), (Some(ended.digest), 1));
    store.close().unwrap();
    drop(store);
    let store = open().unwrap();
    assert_eq!(store.status().keys, 1);
    assert!(store.get_with_expired(b"ends", ReadMode::Blocking).unwrap().is_none());
    assert!(get(&*store, b"stays").unwrap().is_some());
}

#[test]
fn expired_versions_stay_in_bitcask() {
    let fs = FaultyFs::new(1);
    expired_versions_stay_until_they_are_removed(&|| BitcaskFactory::new(fs.clone(), "/data", config())?.open(0));
}

#[test]
fn expired_versions_stay_in_leveled() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    expired_versions_stay_until_they_are_removed(&|| {
        let ledger = LedgerConfig::default();
        LeveledFactory::new(fs.clone(), dir.path(), config(), ledger, Arc::new(NoTerms))?.open(0)
    });
}

#[test]
fn expired_versions_stay_in_leveldb() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    expired_versions_stay_until_they_are_removed(&|| {
        let ledger = LedgerConfig::default();
        LeveldbFactory::new(fs.clone(), dir.path(), config(), ledger, Arc::new(NoTerms))?.open(0)
    });
}
