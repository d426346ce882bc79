//! The status of stores with a journal, the size of their files, and how long their snapshots may
//! be open.

use crate::common::*;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Detail, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    MergeConfig, MergePolicy, NoTerms, Scope, StorageError, SyncStrategy,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct BackendUnderTest {
    store: Arc<dyn Backend>,
    _dir: tempfile::TempDir,
}

fn config() -> JournalConfig {
    JournalConfig {
        file_bytes_max: 4096,
        merge: MergeConfig { check_interval_secs: 0, io_bytes_per_sec: 1 << 40, ..MergeConfig::default() },
        snapshot_secs_max: Some(100),
        ordered_snapshot_secs_max: Some(10),
        opened_at_secs: NOW_SECS,
        ..JournalConfig::default()
    }
}

fn open(
    config: JournalConfig,
    make: impl FnOnce(tempfile::TempDir, JournalConfig) -> BackendUnderTest,
) -> BackendUnderTest {
    make(scratch_dir(), config)
}

fn bitcask(dir: tempfile::TempDir, config: JournalConfig) -> BackendUnderTest {
    let factory = BitcaskFactory::new(FaultyFs::new(1), dir.path().join("bitcask"), config).unwrap();
    BackendUnderTest { store: factory.open(1).unwrap(), _dir: dir }
}

fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 8 << 10, table_bytes: 16 << 10, ..LedgerConfig::default() }
}

fn leveled(dir: tempfile::TempDir, config: JournalConfig) -> BackendUnderTest {
    let root = dir.path().join("leveled");
    let factory = LeveledFactory::new(FaultyFs::new(1), root, config, ledger(), Arc::new(NoTerms)).unwrap();
    BackendUnderTest { store: factory.open(1).unwrap(), _dir: dir }
}

fn leveldb(dir: tempfile::TempDir, config: JournalConfig) -> BackendUnderTest {
    let root = dir.path().join("leveldb");
    let factory = LeveldbFactory::new(FaultyFs::new(1), root, config, ledger(), Arc::new(NoTerms)).unwrap();
    BackendUnderTest { store: factory.open(1).unwrap(), _dir: dir }
}

/// Overwrites a hundred keys again and again.
fn overwrite(store: &dyn Backend, rounds: u8) {
    for round in 0..rounds {
        for key in 0..100 {
            put(store, format!("key {key:03}").as_bytes(), &[round; 100]).unwrap();
        }
    }
}

/// Does background work until nothing is left to do.
fn settle(store: &dyn Backend, now_secs: u64) {
    for _ in 0..200 {
        store.maintain(now_secs).unwrap();
    }
}

fn a_view_that_is_open_for_too_long_lets_go(subject: &BackendUnderTest) {
    let store = &*subject.store;
    overwrite(store, 1);
    let (mut fold, query) = (store.snapshot().unwrap(), store.ordered_snapshot(b"").unwrap());
    overwrite(store, 10);
    settle(store, NOW_SECS + 10);
    assert_eq!(value_of(query.read(b"key 001").unwrap()), Some(vec![0; 100]), "not yet");
    settle(store, NOW_SECS + 11);
    let error = query.read(b"key 001").unwrap_err();
    assert!(matches!(error, StorageError::SnapshotTimeout { secs_max: 10 }), "{error}");
    assert_eq!(value_of(fold.read(b"key 001").unwrap()), Some(vec![0; 100]), "folds have more time");
    assert_eq!(fold.next(&Scope::ALL, Detail::Keys, 10).unwrap().len(), 10);
    let held_back = store.status().files;
    settle(store, NOW_SECS + 101);
    let error = fold.next(&Scope::ALL, Detail::Keys, 10).unwrap_err();
    assert!(error.to_string().contains("after 100 s"), "{error}");
    assert!(store.status().files < held_back || store.status().backend == "leveldb", "{:?}", store.status());
    // A new snapshot sees the present state. Dropping the timed-out ones does not disturb it.
    let mut next = store.snapshot().unwrap();
    drop((fold, query));
    settle(store, NOW_SECS + 102);
    assert_eq!(next.next(&Scope::ALL, Detail::Keys, 1000).unwrap().len(), 100);
}

#[test]
fn a_view_of_bitcask_that_is_open_for_too_long_lets_go() {
    a_view_that_is_open_for_too_long_lets_go(&open(config(), bitcask));
}

#[test]
fn a_view_of_leveled_that_is_open_for_too_long_lets_go() {
    a_view_that_is_open_for_too_long_lets_go(&open(config(), leveled));
}

#[test]
fn a_view_of_leveldb_that_is_open_for_too_long_lets_go() {
    a_view_that_is_open_for_too_long_lets_go(&open(config(), leveldb));
}

#[test]
fn a_file_has_no_more_versions_than_it_may() {
    let config = JournalConfig { file_bytes_max: 1 << 30, file_records_max: 10, ..config() };
    let subject = open(config, leveled);
    let store = &*subject.store;
    overwrite(store, 1);
    assert_eq!(store.status().files, 10);
    for key in 0..100 {
        if key % 10 != 0 {
            put(store, format!("key {key:03}").as_bytes(), &[9; 100]).unwrap();
        }
    }
    settle(store, NOW_SECS);
    let status = store.status();
    assert!(status.merges > 0 && status.files == 10, "what is merged is dealt to files likewise: {status:?}");
}

#[test]
fn a_journal_tells_what_it_wrote_and_merged() {
    for make in [bitcask, leveled] {
        let subject = open(config(), make);
        let store = &*subject.store;
        assert_eq!(store.status().write_amplification(), None);
        overwrite(store, 1);
        let before = store.status();
        assert!(before.write_amplification().is_some_and(|factor| (1.0..2.0).contains(&factor)), "{before:?}");
        assert_eq!((before.last_merge, before.merge_pending_bytes), (None, 0));
        overwrite(store, 4);
        settle(store, NOW_SECS + 5);
        let status = store.status();
        let merge = status.last_merge.expect("merged");
        assert_eq!(merge.ended_at_secs, NOW_SECS + 5);
        assert!(merge.bytes_before > merge.bytes_after, "{merge:?}");
        assert_eq!(status.merge_pending_bytes, 0, "nothing is left to do");
        assert!(status.bytes_written > status.put_bytes && status.dead_bytes < before.live_bytes, "{status:?}");
        assert_eq!(status.ledger.is_some(), status.backend == "leveled");
    }
}

#[test]
fn leveldb_tells_what_its_tree_wrote() {
    let subject = open(config(), leveldb);
    let store = &*subject.store;
    for _ in 0..10 {
        overwrite(store, 1);
        settle(store, NOW_SECS);
    }
    let status = store.status();
    let ledger = status.ledger.expect("a tree");
    assert!(ledger.disk_bytes > 0 && ledger.written_bytes >= ledger.disk_bytes, "{status:?}");
    // At least the log and once the tables were written.
    assert!(status.write_amplification().is_some_and(|factor| factor > 1.0), "{status:?}");
    let merge = status.last_merge.expect("compacted");
    assert!(merge.ended_at_secs == NOW_SECS && merge.bytes_before > merge.bytes_after, "{merge:?}");
    assert_eq!(status.merge_pending_bytes, ledger.pending_bytes);
    assert!(status.merges > 0 && ledger.pending_bytes <= ledger.disk_bytes, "{status:?}");
    let record = |status: &ombak_storage::Status| status.live_bytes / 100;
    assert!((100..300).contains(&record(&status)), "{status:?}");
    for key in 0..50 {
        store.delete(format!("key {key:03}").as_bytes()).unwrap();
    }
    assert_eq!(store.status().live_bytes, status.live_bytes / 2);
}

/// docs/riak/backends.md §4.6: a journal is compacted during its hours only. Before, the status
/// shows what waits.
#[test]
fn outside_its_hours_a_journal_says_what_waits() {
    const HOUR_SECS: u64 = 3600;
    // The hour of the day of NOW_SECS, and the hours after it.
    let hour = |after: u64| u8::try_from((NOW_SECS / HOUR_SECS + after) % 24).unwrap();
    let policy = MergePolicy::Window { start_hour: hour(2), end_hour: hour(3) };
    for make in [bitcask, leveled] {
        let subject = open(JournalConfig { merge: MergeConfig { policy, ..config().merge }, ..config() }, make);
        let store = &*subject.store;
        overwrite(store, 5);
        settle(store, NOW_SECS);
        let status = store.status();
        assert!(status.merges == 0 && status.merge_pending_bytes > 0, "{status:?}");
        settle(store, NOW_SECS + 2 * HOUR_SECS);
        let status = store.status();
        assert!(status.merges > 0 && status.merge_pending_bytes == 0, "{status:?}");
        overwrite(store, 5);
        settle(store, NOW_SECS + 4 * HOUR_SECS);
        assert_eq!(store.status().merges, status.merges, "the hours are over");
    }
}

/// A store whose process is killed, which syncs nothing by itself: background work has synced and
/// listed its only data file.
fn a_new_file_is_missed_after_a_kill(
    name: &str,
    open: impl Fn(&Arc<FaultyFs>) -> Result<Arc<dyn Backend>, StorageError>,
) {
    let fs = FaultyFs::new(1);
    let store = open(&fs).unwrap();
    put(&*store, b"key", b"value").unwrap();
    store.maintain(NOW_SECS).unwrap();
    let syncs = fs.calls_of(Call::SyncData);
    for round in 0..10 {
        put(&*store, b"key", &[round; 10]).unwrap();
        store.maintain(NOW_SECS).unwrap();
    }
    assert_eq!(fs.calls_of(Call::SyncData), syncs, "{name}: one sync for a file, not for each write");
    let newest = put(&*store, b"key", b"the newest").unwrap();
    assert!(!store.is_synced(newest.seq), "{name}");
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    let dir = find_dir(&fs, Path::new("/"), "inventory").unwrap();
    let data = fs.list(&dir).unwrap().into_iter().find(|name| name.ends_with(".data")).expect("a name that lasts");
    fs.remove_file(&dir.join(&data)).unwrap();
    let refused = open(&fs).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains(&format!("{data} is missing")), "{name}: {refused}");
}

/// The directory that has a file of this name.
fn find_dir(fs: &FaultyFs, dir: &Path, wanted: &str) -> Option<PathBuf> {
    let names = fs.list(dir).ok()?;
    if names.iter().any(|name| name == wanted) {
        return Some(dir.to_owned());
    }
    names.iter().find_map(|name| find_dir(fs, &dir.join(name), wanted))
}

#[test]
fn a_file_that_nobody_asked_to_sync_is_missed_after_a_kill() {
    let dir = scratch_dir();
    let root = |name: &str| dir.path().join(name);
    let config = JournalConfig { sync: SyncStrategy::None, opened_at_secs: NOW_SECS, ..JournalConfig::default() };
    a_new_file_is_missed_after_a_kill("bitcask", |fs| {
        BitcaskFactory::new(fs.clone(), root("bitcask"), config)?.open(1)
    });
    a_new_file_is_missed_after_a_kill("leveled", |fs| {
        LeveledFactory::new(fs.clone(), root("leveled"), config, ledger(), Arc::new(NoTerms))?.open(1)
    });
    a_new_file_is_missed_after_a_kill("leveldb", |fs| {
        LeveldbFactory::new(fs.clone(), root("leveldb"), config, ledger(), Arc::new(NoTerms))?.open(1)
    });
}
