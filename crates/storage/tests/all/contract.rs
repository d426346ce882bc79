//! What every backend must do: one suite that runs on each.

use crate::common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{
    BackendFactory, BitcaskFactory, Detail, IndexedVersion, JournalConfig, LedgerConfig, LeveldbFactory,
    LeveledFactory, MemoryConfig, MemoryFactory, MultiFactory, NoTerms, Previous, ReadMode, Scope, Selector,
    StorageError, SyncStrategy,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A factory, and the directory that it needs while it lives.
struct BackendUnderTest {
    factory: Box<dyn BackendFactory>,
    _dir: Option<tempfile::TempDir>,
}

fn memory() -> BackendUnderTest {
    let config = MemoryConfig { opened_at_secs: NOW_SECS, ..MemoryConfig::default() };
    BackendUnderTest { factory: Box::new(MemoryFactory::new(config)), _dir: None }
}

fn memory_with_ttl() -> BackendUnderTest {
    let config = MemoryConfig { ttl_secs: Some(100), opened_at_secs: NOW_SECS, ..MemoryConfig::default() };
    BackendUnderTest { factory: Box::new(MemoryFactory::new(config)), _dir: None }
}

/// Small files and eager merges, so that a short test covers everything.
fn busy_config() -> JournalConfig {
    JournalConfig {
        sync: SyncStrategy::None,
        file_bytes_max: 4096,
        merge: eager_merges(),
        opened_at_secs: NOW_SECS,
        open_files_max: 4,
        ..JournalConfig::default()
    }
}

fn bitcask_on(fs: Arc<dyn FileSystem>, config: JournalConfig) -> BackendUnderTest {
    let dir = scratch_dir();
    let factory = BitcaskFactory::new(fs, dir.path().join("bitcask"), config).unwrap();
    BackendUnderTest { factory: Box::new(factory), _dir: Some(dir) }
}

/// Real syncs take real time, so files are larger and there are fewer of them.
fn bitcask() -> BackendUnderTest {
    bitcask_on(Arc::new(RealFs), JournalConfig { file_bytes_max: 64 << 10, ..busy_config() })
}

fn bitcask_simulated() -> BackendUnderTest {
    bitcask_on(FaultyFs::new(1), busy_config())
}

/// Little data gathers in memory, so that ledgers are written and compacted all the time.
fn busy_ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 16 << 10, table_bytes: 16 << 10, ..LedgerConfig::default() }
}

fn leveled_on(fs: Arc<dyn FileSystem>, config: JournalConfig) -> BackendUnderTest {
    let dir = scratch_dir();
    let root = dir.path().join("leveled");
    let factory = LeveledFactory::new(fs, root, config, busy_ledger(), Arc::new(NoTerms)).unwrap();
    BackendUnderTest { factory: Box::new(factory), _dir: Some(dir) }
}

fn leveldb_on(fs: Arc<dyn FileSystem>, config: JournalConfig) -> BackendUnderTest {
    let dir = scratch_dir();
    let root = dir.path().join("leveldb");
    let factory = LeveldbFactory::new(fs, root, config, busy_ledger(), Arc::new(NoTerms)).unwrap();
    BackendUnderTest { factory: Box::new(factory), _dir: Some(dir) }
}

fn leveled() -> BackendUnderTest {
    leveled_on(FaultyFs::new(1), busy_config())
}

fn leveldb() -> BackendUnderTest {
    leveldb_on(FaultyFs::new(1), busy_config())
}

/// The length of the key selects the backend.
struct ByLength;

impl Selector for ByLength {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(key.len() % 2)
    }
}

fn multi() -> BackendUnderTest {
    let dir = tempfile::tempdir().unwrap();
    let bitcask = BitcaskFactory::new(FaultyFs::new(1), dir.path().join("bitcask"), busy_config()).unwrap();
    let root = dir.path().join("leveldb");
    let leveldb = LeveldbFactory::new(FaultyFs::new(1), root, busy_config(), busy_ledger(), Arc::new(NoTerms)).unwrap();
    let backends: Vec<(String, Arc<dyn BackendFactory>)> =
        vec![("bitcask".into(), Arc::new(bitcask)), ("leveldb".into(), Arc::new(leveldb))];
    let factory = MultiFactory::new(backends, Arc::new(ByLength));
    BackendUnderTest { factory: Box::new(factory), _dir: Some(dir) }
}

fn bitcask_with_expiry() -> BackendUnderTest {
    bitcask_on(FaultyFs::new(1), JournalConfig { expiry_secs: Some(100), ..busy_config() })
}

macro_rules! on_all {
    ($($test:ident)*) => {
        mod on_memory { $(#[test] fn $test() { super::$test(super::memory()); })* }
        mod on_bitcask { $(#[test] fn $test() { super::$test(super::bitcask()); })* }
        mod on_bitcask_simulated { $(#[test] fn $test() { super::$test(super::bitcask_simulated()); })* }
        mod on_leveled { $(#[test] fn $test() { super::$test(super::leveled()); })* }
        mod on_leveldb { $(#[test] fn $test() { super::$test(super::leveldb()); })* }
        mod on_multi { $(#[test] fn $test() { super::$test(super::multi()); })* }
    };
}

on_all! {
    versions_are_found_replaced_and_removed
    sizes_from_nothing_to_long
    snapshots_do_not_move
    snapshots_batch_by_prefix
    partitions_are_apart
    dropped_and_closed_stores_refuse
    limits_are_named
    status_counts
    losses_are_noted
    histories_agree_with_a_model
    closed_to_writes_means_reads_only
    what_is_synced_is_said
    what_is_read_says_its_place
    a_store_knows_itself
}

#[test]
fn memory_versions_expire() {
    versions_expire(memory_with_ttl());
}

#[test]
fn bitcask_versions_expire() {
    versions_expire(bitcask_with_expiry());
}

#[test]
fn leveled_versions_expire() {
    versions_expire(leveled_on(FaultyFs::new(1), JournalConfig { expiry_secs: Some(100), ..busy_config() }));
}

#[test]
fn leveldb_versions_expire() {
    versions_expire(leveldb_on(FaultyFs::new(1), JournalConfig { expiry_secs: Some(100), ..busy_config() }));
}

fn versions_are_found_replaced_and_removed(subject: BackendUnderTest) {
    let store = subject.factory.open(3).unwrap();
    assert!(store.get(b"k", ReadMode::Blocking).unwrap().is_none());
    assert!(store.delete(b"k").unwrap().is_none());
    let first = put(&*store, b"k", b"one").unwrap();
    assert_eq!(first.previous, Previous::Nothing);
    let second = put(&*store, b"k", b"two").unwrap();
    let replaced = IndexedVersion { digest: digest_of(b"one"), seq: first.seq, expires_secs: 0 };
    assert_eq!(second.previous, Previous::Version(replaced));
    assert!(second.seq > first.seq);
    assert_eq!(get(&*store, b"k").unwrap().unwrap(), b"two");
    // The value was just written, so it is in the page cache, unless the system cannot tell.
    match store.get(b"k", ReadMode::Cached) {
        Ok(stored) => assert_eq!(value_of(stored).unwrap(), b"two"),
        Err(error) => assert!(matches!(error, StorageError::WouldBlock), "{error}"),
    }
    let head = store.head(b"k", ReadMode::Blocking).unwrap().unwrap();
    assert_eq!((head.head.to_vec(), head.body, head.digest), (head_of(b"two"), None, digest_of(b"two")));
    let gone = store.delete(b"k").unwrap().unwrap();
    assert_eq!(gone.previous.digest(), Some(digest_of(b"two")));
    assert!(gone.seq > second.seq);
    assert!(store.get(b"k", ReadMode::Cached).unwrap().is_none());
    assert!(store.delete(b"k").unwrap().is_none());
    store.sync(gone.seq).unwrap();
    assert!(store.is_synced(gone.seq));
    assert!(store.complete());
}

fn sizes_from_nothing_to_long(subject: BackendUnderTest) {
    let store = subject.factory.open(0).unwrap();
    for (key_len, body_len) in [(0, 0), (1, 0), (0, 1), (70_000, 10), (10, 300_000), (16_350, 5000), (196_615, 4096)] {
        let (key, value) = (vec![b'k'; key_len], vec![b'v'; body_len]);
        put(&*store, &key, &value).unwrap();
        assert_eq!(get(&*store, &key).unwrap().unwrap(), value);
    }
    for head_len in [0usize, 1, 31, 32, 33, 8000, 8159, 8160, 8161, 100_000] {
        let (key, head) = (format!("head {head_len}"), vec![b'h'; head_len]);
        let write = ombak_storage::Write {
            key: key.as_bytes(),
            head: &head,
            body: &[b"b"],
            digest: 1,
            tstamp_secs: 1,
            expires_secs: 0,
            has_terms: false,
        };
        store.put(&write).unwrap();
        assert_eq!(store.head(key.as_bytes(), ReadMode::Blocking).unwrap().unwrap().head, head);
        assert_eq!(store.get(key.as_bytes(), ReadMode::Blocking).unwrap().unwrap().body.unwrap(), b"b".as_slice());
    }
    assert_eq!(get(&*store, b"").unwrap().unwrap(), b"v", "the last put of the empty key");
}

fn snapshots_do_not_move(subject: BackendUnderTest) {
    let store = subject.factory.open(0).unwrap();
    for n in 0..500 {
        put(&*store, format!("key {n}").as_bytes(), format!("old {n}").as_bytes()).unwrap();
    }
    let mut snapshot = store.snapshot().unwrap();
    let mut later = store.snapshot().unwrap();
    let mut found = snapshot.next(&Scope::ALL, Detail::Keys, 100).unwrap();
    for n in 0..1000 {
        match n % 3 {
            0 => drop(store.delete(format!("key {n}").as_bytes()).unwrap()),
            _ => drop(put(&*store, format!("key {n}").as_bytes(), format!("new {n}").as_bytes()).unwrap()),
        }
        // Merges move versions and remove files that the snapshot uses.
        store.maintain(NOW_SECS).unwrap();
    }
    loop {
        let batch = snapshot.next(&Scope::ALL, Detail::Keys, 70).unwrap();
        if batch.is_empty() {
            break;
        }
        found.extend(batch);
    }
    let mut keys: Vec<String> = found.iter().map(|entry| String::from_utf8(entry.key.to_vec()).unwrap()).collect();
    keys.sort();
    let mut expected: Vec<String> = (0..500).map(|n| format!("key {n}")).collect();
    expected.sort();
    assert_eq!(keys, expected);
    for (n, key) in (0..1000).map(|n| (n, format!("key {n}"))) {
        let seen = value_of(snapshot.read(key.as_bytes()).unwrap());
        assert_eq!(seen, (n < 500).then(|| format!("old {n}").into_bytes()), "{key}");
    }
    drop(snapshot);
    assert_eq!(fold(&mut *later, b"", 1000).len(), 500);
    drop(later);
    store.maintain(NOW_SECS).unwrap();
    let now = fold(&mut *store.snapshot().unwrap(), b"", 64);
    assert_eq!(now.len(), 666);
    assert!(now.iter().all(|(_, value)| value.starts_with(b"new")));
}

fn snapshots_batch_by_prefix(subject: BackendUnderTest) {
    let store = subject.factory.open(0).unwrap();
    for n in 0..300 {
        put(&*store, format!("{}/{n}", ["a", "b", "bb"][n % 3]).as_bytes(), b"v").unwrap();
    }
    for (prefix, expected) in [("a/", 100), ("b", 200), ("bb", 100), ("", 300), ("c", 0)] {
        for count_max in [1, 7, 1000] {
            let found = fold(&mut *store.snapshot().unwrap(), prefix.as_bytes(), count_max);
            assert_eq!(found.len(), expected, "{prefix} in batches of {count_max}");
            assert!(found.iter().all(|(key, _)| key.starts_with(prefix.as_bytes())));
        }
    }
}

fn partitions_are_apart(subject: BackendUnderTest) {
    let stores: Vec<_> = (0..64).map(|partition| subject.factory.open(partition).unwrap()).collect();
    for (n, store) in stores.iter().enumerate().step_by(7) {
        put(&**store, b"k", format!("{n}").as_bytes()).unwrap();
    }
    for (n, store) in stores.iter().enumerate() {
        assert_eq!(get(&**store, b"k").unwrap().is_some(), n % 7 == 0);
    }
}

fn dropped_and_closed_stores_refuse(subject: BackendUnderTest) {
    let store = subject.factory.open(1).unwrap();
    put(&*store, b"k", b"v").unwrap();
    store.drop_partition().unwrap();
    assert!(matches!(put(&*store, b"k", b"v"), Err(StorageError::Closed)));
    assert!(matches!(store.get(b"k", ReadMode::Blocking), Err(StorageError::Closed)));
    assert!(matches!(store.delete(b"k"), Err(StorageError::Closed)));
    assert!(matches!(store.snapshot().err(), Some(StorageError::Closed)));
    store.maintain(NOW_SECS).unwrap();
    store.close().unwrap();
    drop(store);
    let store = subject.factory.open(1).unwrap();
    assert!(get(&*store, b"k").unwrap().is_none());
    put(&*store, b"k", b"v").unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert!(matches!(put(&*store, b"k", b"v"), Err(StorageError::Closed)));
}

fn limits_are_named(subject: BackendUnderTest) {
    let store = subject.factory.open(1).unwrap();
    let error = put(&*store, &vec![0; 200_001], b"v").unwrap_err();
    assert!(matches!(&error, StorageError::TooLarge(text) if text.contains("200001")), "{error}");
    put(&*store, &vec![0; 200_000], b"v").unwrap();
}

fn status_counts(subject: BackendUnderTest) {
    let store = subject.factory.open(1).unwrap();
    for n in 0..100 {
        put(&*store, format!("key{n:03}").as_bytes(), &[1; 100]).unwrap();
        put(&*store, b"key000", &[2; 100]).unwrap();
    }
    let status = store.status();
    assert_eq!((status.keys, status.key_bytes), (100, 600));
    assert!(status.live_bytes >= 100 * 106 && status.live_bytes < 100 * 500, "{status:?}");
    assert!(status.put_bytes >= 200 * 106);
    assert!(status.backend == "memory" || status.bytes_written >= status.put_bytes, "{status:?}");
    assert!(status.index_bytes >= 600);
    assert_eq!((status.read_errors, status.lost_ranges, status.poisoned), (0, 0, None));
}

fn histories_agree_with_a_model(subject: BackendUnderTest) {
    for seed in 1..6 {
        let store = subject.factory.open(seed as u32).unwrap();
        let mut random = Random::new(seed);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut snapshots = Vec::new();
        for step in 0..2500u64 {
            let key = format!("key {}", random.below(60)).into_bytes();
            match random.below(100) {
                0..60 => {
                    let value = format!("{step}{}", "x".repeat(random.below(200) as usize)).into_bytes();
                    let appended = put(&*store, &key, &value).unwrap();
                    assert_eq!(appended.previous.digest(), model.insert(key, value).map(|old| digest_of(&old)));
                }
                60..75 => {
                    let previous = store.delete(&key).unwrap().map(|appended| appended.previous.digest().unwrap());
                    assert_eq!(previous, model.remove(&key).map(|old| digest_of(&old)));
                }
                75..85 => store.maintain(NOW_SECS).unwrap(),
                85 if snapshots.len() < 4 => snapshots.push((store.snapshot().unwrap(), model.clone())),
                86 if !snapshots.is_empty() => {
                    let (mut snapshot, seen) = snapshots.remove(0);
                    let expected: Vec<_> = seen.into_iter().collect();
                    assert_eq!(fold(&mut *snapshot, b"", 13), expected);
                }
                _ => assert_eq!(get(&*store, &key).unwrap(), model.get(&key).cloned(), "seed {seed} step {step}"),
            }
        }
        drop(snapshots);
        let expected: Vec<_> = model.into_iter().collect();
        assert_eq!(fold(&mut *store.snapshot().unwrap(), b"", 100), expected);
    }
}

fn versions_expire(subject: BackendUnderTest) {
    let store = subject.factory.open(0).unwrap();
    let written = NOW_SECS as u32;
    put_at(&*store, b"older", b"v", written - 50).unwrap();
    put_at(&*store, b"newer", b"v", written).unwrap();
    put_at(&*store, b"twice", b"stamped later", written + 1000).unwrap();
    put_at(&*store, b"twice", b"stamped earlier", written - 50).unwrap();
    store.maintain(NOW_SECS + 50).unwrap();
    assert!(get(&*store, b"older").unwrap().is_some());
    store.maintain(NOW_SECS + 51).unwrap();
    assert!(get(&*store, b"older").unwrap().is_none());
    assert!(get(&*store, b"newer").unwrap().is_some());
    assert!(store.head(b"older", ReadMode::Cached).unwrap().is_none());
    assert_eq!(fold(&mut *store.snapshot().unwrap(), b"", 10).len(), 1);
    for round in 0..200 {
        store.maintain(NOW_SECS + 60 + round).unwrap();
        put_at(&*store, b"filler", &[0; 500], written + 60 + round as u32).unwrap();
    }
    assert!(get(&*store, b"twice").unwrap().is_none(), "an older version came back in place of an expired one");
    put_at(&*store, b"older", b"again", written + 300).unwrap();
    assert_eq!(get(&*store, b"older").unwrap().unwrap(), b"again");
}

#[test]
fn a_full_memory_store_forgets_the_oldest() {
    let config = MemoryConfig { bytes_max: Some(100_000), ..MemoryConfig::default() };
    let store = MemoryFactory::new(config).open(0).unwrap();
    for n in 0..500 {
        put(&*store, format!("{n}").as_bytes(), &[7; 1000]).unwrap();
        assert!(store.status().live_bytes <= 100_000);
    }
    assert!(get(&*store, b"499").unwrap().is_some());
    assert!(get(&*store, b"0").unwrap().is_none());
    assert!(store.status().keys > 70);
    assert!(matches!(put(&*store, b"k", &[0; 100_000]), Err(StorageError::TooLarge(_))));
}

fn losses_are_noted(subject: BackendUnderTest) {
    let store = subject.factory.open(3).unwrap();
    assert!(store.complete());
    store.note_loss(2).unwrap();
    put(&*store, b"key", b"value").unwrap();
    store.note_loss(1).unwrap();
    assert_eq!((store.complete(), store.status().lost_ranges), (false, 3));
    store.close().unwrap();
    drop(store);
    if subject.factory.name() != "memory" {
        let store = subject.factory.open(3).unwrap();
        assert_eq!((store.complete(), store.status().lost_ranges), (false, 3));
        assert_eq!(get(&*store, b"key").unwrap().unwrap(), b"value");
    }
}

#[test]
fn a_leveldb_tree_that_does_not_open_is_not_thrown_away() {
    let dir = tempfile::tempdir().unwrap();
    let fs = FaultyFs::new(1);
    let open = || LeveldbFactory::new(fs.clone(), dir.path(), busy_config(), busy_ledger(), Arc::new(NoTerms)).unwrap();
    let factory = open();
    let store = factory.open(0).unwrap();
    put(&*store, b"key", b"value").unwrap();
    store.close().unwrap();
    drop((store, factory));
    let current = dir.path().join("0.ledger/current");
    let bytes = std::fs::read(&current).unwrap();
    std::fs::remove_file(&current).unwrap();
    let error = open().open(0).err().unwrap().to_string();
    assert!(error.contains("ombak admin backend verify"), "{error}");
    std::fs::write(&current, &bytes).unwrap();
    assert_eq!(get(&*open().open(0).unwrap(), b"key").unwrap().unwrap(), b"value");
}

fn closed_to_writes_means_reads_only(subject: BackendUnderTest) {
    let store = subject.factory.open(1).unwrap();
    for key in [&b"k"[..], b"kk"] {
        put(&*store, key, b"v").unwrap();
    }
    store.close_to_writes(true);
    for key in [&b"k"[..], b"kk"] {
        assert!(matches!(put(&*store, key, b"w"), Err(StorageError::ClosedToWrites)));
        assert!(matches!(store.delete(key), Err(StorageError::ClosedToWrites)));
        assert!(matches!(store.delete_if(key, digest_of(b"v")), Err(StorageError::ClosedToWrites)));
        assert_eq!(get(&*store, key).unwrap().unwrap(), b"v");
    }
    assert_eq!(fold(&mut *store.snapshot().unwrap(), b"", 10).len(), 2);
    let last = store.last_seq();
    store.maintain(NOW_SECS).unwrap();
    store.sync(last).unwrap();
    assert_eq!((store.last_seq(), store.synced_seq()), (last, last), "nothing was written");
    store.close_to_writes(false);
    assert!(put(&*store, b"k", b"w").unwrap().seq > last);
}

/// Threads write while the store is closed to writes. The store has exactly the writes that were
/// acknowledged before the call returned.
#[test]
fn closing_to_writes_waits_for_those_under_way() {
    for subject in [memory(), bitcask_simulated(), leveled(), leveldb(), multi()] {
        let store = subject.factory.open(1).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let store = &store;
                scope.spawn(move || {
                    for n in 0u64.. {
                        match put(&**store, format!("{writer} {n}").as_bytes(), b"v") {
                            Ok(_) => {}
                            Err(StorageError::ClosedToWrites) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
            while store.last_seq() < 100 {
                std::thread::yield_now();
            }
            store.close_to_writes(true);
            let last = store.last_seq();
            assert_eq!(store.status().keys, last, "{}", subject.factory.name());
        });
    }
}

fn what_is_synced_is_said(subject: BackendUnderTest) {
    let store = subject.factory.open(1).unwrap();
    assert_eq!((store.last_seq(), store.synced_seq()), (0, 0));
    for n in 1..50 {
        let key = format!("key {n}");
        let appended = put(&*store, key.as_bytes(), b"v").unwrap();
        assert_eq!((appended.seq, store.last_seq()), (n, n));
        assert!(store.synced_seq() <= n);
        assert!((0..=n).all(|seq| store.is_synced(seq) == (seq <= store.synced_seq())), "{n}");
        if n % 7 == 0 {
            store.sync(n).unwrap();
            assert_eq!(store.synced_seq(), n);
        }
    }
    assert!(store.delete(b"key 1").unwrap().is_some());
    store.sync(50).unwrap();
    assert_eq!((store.last_seq(), store.synced_seq()), (50, 50));
}

/// A caller that finds a version already stored must know which `seq` has to be synced before the
/// version is durable.
fn what_is_read_says_its_place(subject: BackendUnderTest) {
    let store = subject.factory.open(1).unwrap();
    let mut places: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for n in 0..120 {
        let key = format!("key {}", n % 13).into_bytes();
        let appended = put(&*store, &key, &vec![b'v'; 40 * n]).unwrap();
        places.insert(key, appended.seq);
    }
    let check = |store: &dyn ombak_storage::Backend| {
        for (key, seq) in &places {
            let (whole, head) = (store.get(key, ReadMode::Blocking), store.head(key, ReadMode::Blocking));
            assert_eq!((whole.unwrap().unwrap().seq, head.unwrap().unwrap().seq), (*seq, *seq));
        }
        let mut snapshot = store.snapshot().unwrap();
        for detail in [Detail::Heads, Detail::Objects] {
            for entry in snapshot.next(&Scope::ALL, detail, 1000).unwrap() {
                let stored = entry.stored.expect("asked for");
                assert_eq!((Some(&stored.seq), entry.seq), (places.get(&entry.key[..]), stored.seq));
            }
        }
    };
    check(&*store);
    // Merges move versions and keep their sequence numbers.
    for _ in 0..40 {
        store.maintain(NOW_SECS).unwrap();
    }
    check(&*store);
    store.close().unwrap();
    drop(store);
    if subject.factory.name() != "memory" {
        check(&*subject.factory.open(1).unwrap());
    }
}

fn a_store_knows_itself(subject: BackendUnderTest) {
    let is_on_disk = subject.factory.name() != "memory";
    let fill = |boot: u64| {
        let store = subject.factory.open(1).unwrap();
        for key in [&b"k"[..], b"kk"] {
            put(&*store, key, format!("{boot}").as_bytes()).unwrap();
        }
        store
    };
    assert!(subject.factory.open(1).unwrap().identity().is_new());
    let store = fill(1);
    let first = store.identity();
    assert!(first.is_new() && !first.was_clean && !first.is_restored && first.boot == 1, "{first:?}");
    store.close().unwrap();
    drop(store);
    let closed = fill(2).identity();
    if !is_on_disk {
        assert!(closed.is_new() && closed.store_id != first.store_id && !closed.was_clean);
        return;
    }
    assert_eq!((closed.store_id, closed.boot, closed.was_clean), (first.store_id, 2, true));
    let store = fill(3);
    let killed = store.identity();
    assert_eq!((killed.store_id, killed.boot, killed.was_clean), (first.store_id, 3, false));
    assert_eq!((killed.lost_writes_boot, killed.is_restored), (None, false), "the machine ran on");
    store.drop_partition().unwrap();
    drop(store);
    let anew = fill(1).identity();
    assert!(anew.is_new() && anew.store_id != first.store_id, "{anew:?}");
}
