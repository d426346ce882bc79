//! Full disks: merges wait for room, deletes and merges make room, and puts resume when there is
//! room.

use crate::common::*;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MergeConfig,
    NoTerms, StorageError, Write,
};
use std::path::Path;
use std::sync::Arc;

const RESERVE_BYTES: u64 = 1 << 20;
const DISK_BYTES: u64 = 4 << 20;
/// The bytes appended between two checks of the free space, plus one version.
const OVERSHOOT_BYTES_MAX: u64 = (256 << 10) + 2000;
const BACKENDS: [&str; 3] = ["bitcask", "leveled", "leveldb"];

fn open(backend: &str, fs: &Arc<FaultyFs>, dir: &Path, config: JournalConfig) -> Arc<dyn Backend> {
    fs.create_dir_all(dir).unwrap();
    // The directory itself is durable.
    dir.ancestors().skip(1).for_each(|parent| fs.sync_dir(parent).unwrap());
    let (root, ledger) = (dir.join(backend), LedgerConfig::default());
    let factory: Box<dyn BackendFactory> = match backend {
        "bitcask" => Box::new(BitcaskFactory::new(fs.clone(), root, config).unwrap()),
        "leveled" => Box::new(LeveledFactory::new(fs.clone(), root, config, ledger, Arc::new(NoTerms)).unwrap()),
        _ => Box::new(LeveldbFactory::new(fs.clone(), root, config, ledger, Arc::new(NoTerms)).unwrap()),
    };
    factory.open(0).unwrap()
}

/// The files of the store, without those of the ledger's library, which are not in the simulated
/// file system.
fn names(fs: &FaultyFs, dir: &Path, backend: &str) -> Vec<String> {
    let mut names = fs.list(&dir.join(backend).join("0")).unwrap();
    names.sort();
    names
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

/// Closes the active file, as a backup does, and completes its hint file.
fn close_file(store: &dyn Backend) {
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
}

/// Makes one file of which three quarters are dead, and one that is all live.
fn with_a_file_without_live_records(store: &dyn Backend) {
    for round in 0..4u8 {
        for n in 0..20 {
            put(store, &key(n), &[round; 300]).unwrap();
        }
    }
    close_file(store);
    for n in 20..30 {
        put(store, &key(n), &[3; 300]).unwrap();
    }
    close_file(store);
    // The first check only notes the time.
    store.maintain(NOW_SECS).unwrap();
}

fn check_dead_file(store: &dyn Backend, when: &str) {
    for n in 0..30 {
        assert_eq!(get(store, &key(n)).unwrap(), Some(vec![3; 300]), "{when}: key {n}");
    }
}

fn merging() -> JournalConfig {
    let merge = MergeConfig {
        check_interval_secs: 1,
        threshold_small_file_bytes: 0,
        io_bytes_per_sec: 1 << 40,
        ..MergeConfig::default()
    };
    JournalConfig { merge, opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

/// Lets a merge begin, and fills the disk when the merge makes its first call of a class.
fn fill_disk_amid_merge(store: &dyn Backend, fs: &FaultyFs, call: Call, free_bytes: u64) {
    fs.hold(call);
    std::thread::scope(|scope| {
        let merge = scope.spawn(|| store.maintain(NOW_SECS + 2));
        fs.wait_for_held(call);
        fs.set_free_bytes(Some(free_bytes));
        fs.release(call);
        merge.join().unwrap().unwrap();
    });
}

#[test]
fn a_merge_that_has_no_room_for_its_commit_is_committed_when_there_is_some() {
    for backend in ["bitcask", "leveled"] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), merging());
        with_a_file_without_live_records(&*store);
        let before = names(&fs, dir.path(), backend);
        // The copies are written; next, they get their names.
        fill_disk_amid_merge(&*store, &fs, Call::Rename, 0);
        for secs in 3..20 {
            store.maintain(NOW_SECS + secs).unwrap();
        }
        assert_eq!(store.status().merges, 0, "{backend}: committed on a full disk");
        let amid = names(&fs, dir.path(), backend);
        assert!(before.iter().all(|name| amid.contains(name)), "{backend}: {before:?} became {amid:?}");
        // The active file has an unfinished hint file.
        let is_left = |name: &&String| [".tmp", ".new", ".merging"].iter().any(|end| name.ends_with(end));
        let left: Vec<&String> = amid.iter().filter(is_left).filter(|name| !before.contains(name)).collect();
        assert!(left.is_empty(), "{backend}: {left:?}");
        check_dead_file(&*store, backend);
        fs.set_free_bytes(None);
        store.maintain(NOW_SECS + 30).unwrap();
        let status = store.status();
        assert!(status.merges == 1 && status.files == 2, "{backend}: {status:?}");
        assert!(status.dead_bytes < 1000, "{backend}: {status:?}");
        check_dead_file(&*store, backend);
        drop(store);
        let store = open(backend, &fs.restart(Loss::Everything), dir.path(), merging());
        check_dead_file(&*store, backend);
        assert!(store.complete());
    }
}

#[test]
fn a_merge_that_has_no_room_for_its_copies_removes_them_and_begins_again() {
    for backend in ["bitcask", "leveled"] {
        let mut given_up = 0;
        for free_bytes in (0..8000).step_by(250) {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = open(backend, &fs, dir.path(), merging());
            with_a_file_without_live_records(&*store);
            let before = names(&fs, dir.path(), backend);
            fill_disk_amid_merge(&*store, &fs, Call::Write, free_bytes);
            let when = format!("{backend}, {free_bytes} bytes free");
            if store.status().merged_or_copied() {
                continue;
            }
            given_up += 1;
            assert_eq!(names(&fs, dir.path(), backend), before, "{when}");
            check_dead_file(&*store, &when);
            fs.set_free_bytes(None);
            store.maintain(NOW_SECS + 10).unwrap();
            assert_eq!(store.status().merges, 1, "{when}");
            check_dead_file(&*store, &when);
        }
        assert!(given_up > 10, "{backend}: {given_up} merges were given up");
    }
}

trait MergedOrCopied {
    fn merged_or_copied(&self) -> bool;
}

impl MergedOrCopied for ombak_storage::Status {
    /// Whether a merge has ended, or has written all its copies and waits for its commit.
    fn merged_or_copied(&self) -> bool {
        self.merges > 0 || self.files > 2
    }
}

fn small_disk() -> JournalConfig {
    let merge = MergeConfig { io_bytes_per_sec: 1 << 40, ..MergeConfig::default() };
    JournalConfig {
        file_bytes_max: 64 << 10,
        merge,
        disk_reserve_bytes: RESERVE_BYTES,
        is_tombstone: |digest| digest & 1 == 1,
        opened_at_secs: NOW_SECS,
        ..JournalConfig::default()
    }
}

/// Puts until the disk is full. With `overwrites`, every fifth put replaces an earlier version.
fn put_until_full(store: &dyn Backend, model: &mut Vec<u8>, overwrites: bool) {
    let mut count = 0u32;
    loop {
        assert!(count < 50_000, "nothing refuses the puts");
        count += 1;
        let is_new = !overwrites || !count.is_multiple_of(5);
        let number = if is_new { model.len() } else { model.len() - 1 - count as usize % 4 };
        let value = count as u8;
        match put_even(store, &key(number as u32), value) {
            Ok(()) if is_new => model.push(value),
            Ok(()) => model[number] = value,
            Err(StorageError::DiskFull { .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Puts a version whose digest does not mark it as a tombstone.
fn put_even(store: &dyn Backend, key: &[u8], value: u8) -> Result<(), StorageError> {
    let (body, tstamp_secs) = ([value; 1000], NOW_SECS as u32);
    let digest = u64::from(value) << 1;
    let write = Write { key, head: b"head", body: &[&body], digest, tstamp_secs, expires_secs: 0, has_terms: false };
    store.put(&write).map(drop)
}

fn put_tombstone(store: &dyn Backend, key: &[u8]) -> Result<(), StorageError> {
    let tstamp_secs = NOW_SECS as u32;
    let write = Write { key, head: b"tombstone", body: &[], digest: 1, tstamp_secs, expires_secs: 0, has_terms: false };
    store.put(&write).map(drop)
}

/// Does background work, second by second, until the store takes puts again. False if it does not.
fn wait_for_room(store: &dyn Backend, now_secs: &mut u64) -> bool {
    (0..400).any(|_| {
        *now_secs += 1;
        store.maintain(*now_secs).unwrap();
        !store.status().disk_full
    })
}

fn check_values(store: &dyn Backend, model: &[u8], is_deleted: impl Fn(u32) -> bool, when: &str) {
    for (n, value) in (0..).zip(model) {
        let found = store.get(&key(n), ombak_storage::ReadMode::Blocking).unwrap();
        let found = found.and_then(|stored| stored.body).map(|body| body[0]);
        assert_eq!(found, (!is_deleted(n)).then_some(*value), "{when}: key {n}");
    }
}

#[test]
fn a_full_disk_merges_what_no_trigger_asks_for() {
    for backend in ["bitcask", "leveled"] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), small_disk());
        fs.set_free_bytes(Some(DISK_BYTES));
        let (mut model, mut now_secs) = (Vec::new(), NOW_SECS);
        put_until_full(&*store, &mut model, true);
        let free_bytes = fs.free_bytes(dir.path()).unwrap();
        assert!(free_bytes + OVERSHOOT_BYTES_MAX >= RESERVE_BYTES, "{backend}: {free_bytes} bytes are left");
        assert!(store.status().disk_full);
        // A fifth of each file is dead, which is too little to trigger a merge.
        assert!(wait_for_room(&*store, &mut now_secs), "{backend}: {:?}", store.status());
        assert!(store.status().merges > 0, "{backend}: {:?}", store.status());
        put_even(&*store, b"another key", 1).unwrap();
        check_values(&*store, &model, |_| false, backend);
        drop(store);
        let store = open(backend, &fs.restart(Loss::Nothing), dir.path(), small_disk());
        check_values(&*store, &model, |_| false, backend);
    }
}

#[test]
fn a_full_disk_takes_deletes_until_puts_go_on() {
    for backend in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), small_disk());
        fs.set_free_bytes(Some(DISK_BYTES));
        let (mut model, mut now_secs) = (Vec::new(), NOW_SECS);
        put_until_full(&*store, &mut model, false);
        if backend != "leveldb" {
            // Nothing is dead. (The log of leveldb is removed when its tree has the content.)
            assert!(!wait_for_room(&*store, &mut now_secs), "{backend}: {:?}", store.status());
        }
        drop(store);
        let free_bytes = fs.free_bytes(dir.path()).unwrap();
        let fs = fs.restart(Loss::Nothing);
        fs.set_free_bytes(Some(free_bytes));
        let store = open(backend, &fs, dir.path(), small_disk());
        let is_refused = matches!(put_even(&*store, b"another key", 1), Err(StorageError::DiskFull { .. }));
        assert!(is_refused, "{backend}: a start forgot the reserve");
        put_tombstone(&*store, b"another key").unwrap();
        let is_deleted = |n: u32| n.is_multiple_of(3);
        for n in (0..model.len() as u32).filter(|n| is_deleted(*n)) {
            store.delete(&key(n)).unwrap();
        }
        assert!(wait_for_room(&*store, &mut now_secs), "{backend}: {:?}", store.status());
        put_even(&*store, b"another key", 1).unwrap();
        check_values(&*store, &model, is_deleted, backend);
        drop(store);
        let store = open(backend, &fs.restart(Loss::Nothing), dir.path(), small_disk());
        check_values(&*store, &model, is_deleted, backend);
    }
}

#[test]
fn the_last_room_belongs_to_merges() {
    for backend in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), small_disk());
        put_even(&*store, &key(1), 1).unwrap();
        fs.set_free_bytes(Some(RESERVE_BYTES / 4));
        store.maintain(NOW_SECS + 1).unwrap();
        for refused in [put_even(&*store, &key(2), 1), put_tombstone(&*store, &key(1)), store.delete(&key(1)).map(drop)]
        {
            assert!(matches!(refused, Err(StorageError::DiskFull { .. })), "{backend}: {refused:?}");
        }
        assert!(store.status().disk_full);
        fs.set_free_bytes(Some(RESERVE_BYTES / 2));
        store.delete(&key(1)).unwrap();
        assert!(store.status().disk_full, "puts still wait");
    }
}

#[test]
fn a_store_finds_out_by_itself_that_there_is_room_again() {
    for (backend, disk_reserve_bytes) in BACKENDS.iter().flat_map(|backend| [(backend, 0), (backend, RESERVE_BYTES)]) {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), JournalConfig { disk_reserve_bytes, ..small_disk() });
        put_even(&*store, &key(1), 1).unwrap();
        fs.set_free_bytes(Some(0));
        put_until_full(&*store, &mut vec![1, 1], false);
        assert!(store.status().disk_full, "{backend}");
        store.maintain(NOW_SECS + 1).unwrap();
        assert!(store.status().disk_full, "{backend}");
        fs.set_free_bytes(None);
        store.maintain(NOW_SECS + 2).unwrap();
        assert!(!store.status().disk_full, "{backend}, {disk_reserve_bytes} bytes in reserve");
    }
}
