//! What a store answers at the limits of its range, and at a start that finds too little or too
//! much.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs};
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, HeadTerms, JournalConfig, KeyRange, LedgerConfig, LeveldbFactory,
    LeveledFactory, MultiFactory, NoTerms, Scope, Selector, StorageError, TermRange, Write,
};
use ombak_types::Bucket;
use ombak_types::names::{encode_bucket_prefix, encode_storage_key};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const PARTITION: u32 = 3;
const BACKENDS: [&str; 3] = ["bitcask", "leveled", "leveldb"];
const ANSWER_WAIT: Duration = Duration::from_secs(30);

fn open(backend: &str, root: &Path) -> Result<Arc<dyn Backend>, StorageError> {
    open_with(backend, root, LedgerConfig::default())
}

fn open_with(backend: &str, root: &Path, ledger: LedgerConfig) -> Result<Arc<dyn Backend>, StorageError> {
    let (fs, terms) = (Arc::new(RealFs), Arc::new(NoTerms));
    let journal = JournalConfig { file_bytes_max: 2000, ..JournalConfig::default() };
    let factory: Box<dyn BackendFactory> = match backend {
        "bitcask" => Box::new(BitcaskFactory::new(fs, root, journal)?),
        "leveled" => Box::new(LeveledFactory::new(fs, root, journal, ledger, terms)?),
        "leveldb" => Box::new(LeveldbFactory::new(fs, root, journal, ledger, terms)?),
        other => panic!("no backend {other}"),
    };
    factory.open(PARTITION)
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    vec![n as u8; 300]
}

fn data_files(root: &Path) -> Vec<PathBuf> {
    let dir = root.join(PARTITION.to_string());
    let names = RealFs.list(&dir).unwrap().into_iter().filter(|name| name.ends_with(".data"));
    let mut paths: Vec<_> = names.map(|name| dir.join(name)).collect();
    paths.sort();
    paths
}

/// Makes the store look like one of an earlier version: only hint files and ledgers say which files
/// there were.
fn forget_inventory(root: &Path) {
    std::fs::remove_file(root.join(PARTITION.to_string()).join("inventory")).unwrap();
}

#[test]
fn a_sync_of_what_was_not_appended_is_an_error_and_not_a_wait() {
    for backend in BACKENDS {
        let root = scratch_dir();
        let store = open(backend, root.path()).unwrap();
        let seq = put(&*store, b"key", b"value").unwrap().seq;
        let (answer, answered) = mpsc::sync_channel(1);
        let asked = store.clone();
        std::thread::spawn(move || answer.send(asked.sync(seq + 1)));
        let said = answered.recv_timeout(ANSWER_WAIT).expect("an answer").unwrap_err().to_string();
        assert!(said.contains(&format!("the last append is {seq}")), "{backend}: {said}");
        store.sync(seq).unwrap();
        assert!(store.is_synced(seq) && !store.is_synced(seq + 1));
        put(&*store, b"key", b"more").unwrap();
        store.close().unwrap();
    }
}

#[test]
fn a_store_without_a_number_for_its_next_file_says_so_and_reads() {
    for backend in BACKENDS {
        let root = scratch_dir();
        let store = open(backend, root.path()).unwrap();
        put(&*store, &key(1), &value(1)).unwrap();
        store.close().unwrap();
        drop(store);
        let last = root.path().join(PARTITION.to_string()).join("4294967294.data");
        std::fs::write(&last, "nothing of this store").unwrap();
        for _ in 0..2 {
            let store = open(backend, root.path()).unwrap();
            let said = put(&*store, &key(2), &value(2)).unwrap_err().to_string();
            assert!(said.contains("4294967294"), "{backend}: {said}");
            assert_eq!(get(&*store, &key(1)).unwrap(), Some(value(1)), "{backend}");
            assert_eq!(get(&*store, &key(2)).unwrap(), None, "{backend}");
            store.close().unwrap();
        }
    }
}

#[test]
fn a_damaged_commit_of_a_merge_is_a_loss_at_every_start() {
    let root = scratch_dir();
    let store = open("bitcask", root.path()).unwrap();
    put(&*store, &key(1), &value(1)).unwrap();
    store.close().unwrap();
    drop(store);
    let commit = root.path().join(PARTITION.to_string()).join("0000000009.merged");
    std::fs::write(&commit, "no list of files").unwrap();
    for _ in 0..3 {
        let store = open("bitcask", root.path()).unwrap();
        assert_eq!((store.status().lost_ranges, store.complete()), (1, false));
        assert!(!commit.exists());
        assert_eq!(get(&*store, &key(1)).unwrap(), Some(value(1)));
        store.close().unwrap();
    }
}

#[test]
fn data_files_that_are_gone_are_a_loss_at_every_start() {
    for backend in ["bitcask", "leveled"] {
        let root = scratch_dir();
        let store = open(backend, root.path()).unwrap();
        for n in 0..40 {
            put(&*store, &key(n), &value(n)).unwrap();
        }
        store.close().unwrap();
        assert!(store.complete());
        drop(store);
        let files = data_files(root.path());
        assert!(files.len() > 4, "{files:?}");
        std::fs::remove_file(&files[1]).unwrap();
        std::fs::remove_file(files.last().unwrap()).unwrap();
        forget_inventory(root.path());
        let mut found_first = None;
        for _ in 0..3 {
            let store = open(backend, root.path()).unwrap();
            assert_eq!((store.status().lost_ranges, store.complete()), (2, false), "{backend}");
            // Reads of keys that were in the missing files fail, because the hint files name these
            // keys.
            let found: Vec<bool> =
                (0..40).map(|n| get(&*store, &key(n)).is_ok_and(|found| found == Some(value(n)))).collect();
            let failing = (0..40).filter(|n| get(&*store, &key(*n)).is_err()).count();
            assert_eq!(failing, found.iter().filter(|found| !**found).count(), "{backend}");
            let there = found.iter().filter(|found| **found).count();
            assert!((20..38).contains(&there), "{backend}: {there} of 40");
            assert_eq!(*found_first.get_or_insert_with(|| found.clone()), found);
            // The store is not closed, as after a kill.
        }
        let store = open(backend, root.path()).unwrap();
        assert!(put(&*store, b"new", b"value").unwrap().seq > 40, "{backend}: a number was given twice");
    }
}

/// The state after a merge and a loss of power that brings back a removed hint file, but not its
/// data file.
#[test]
fn a_hint_of_what_is_superseded_is_no_loss() {
    for (backend, is_closed) in [("bitcask", true), ("bitcask", false), ("leveled", true), ("leveled", false)] {
        let root = scratch_dir();
        let store = open(backend, root.path()).unwrap();
        for round in 0..3 {
            for n in 0..20 {
                put(&*store, &key(n), &value(n + round)).unwrap();
            }
        }
        for n in 0..5 {
            store.delete(&key(n)).unwrap();
        }
        store.sync(store.last_seq()).unwrap();
        // One slice of background work gives each full file its hint file.
        store.maintain(NOW_SECS).unwrap();
        if is_closed {
            store.close().unwrap();
        }
        drop(store);
        forget_inventory(root.path());
        let files = data_files(root.path());
        for gone in &files[..2] {
            assert!(gone.with_extension("hint").exists(), "{backend}: {files:?}");
            std::fs::remove_file(gone).unwrap();
        }
        for _ in 0..2 {
            let store = open(backend, root.path()).unwrap();
            assert!(store.complete(), "{backend}, closed: {is_closed}");
            for n in 0..20 {
                let expected = (n >= 5).then(|| value(n + 2));
                assert_eq!(get(&*store, &key(n)).unwrap(), expected, "{backend}: key {n}");
            }
            assert!(!files[0].with_extension("hint").exists());
            store.close().unwrap();
        }
    }
}

#[test]
fn a_deletion_that_is_gone_is_a_loss_while_it_may_hide_something() {
    for (backend, is_written_again) in [("bitcask", false), ("bitcask", true), ("leveled", false), ("leveled", true)] {
        let root = scratch_dir();
        for n in 0..20 {
            let store = open(backend, root.path()).unwrap();
            let value = match n {
                10 => None,
                0 => Some((key(0), value(0))),
                15 if is_written_again => Some((key(0), value(15))),
                _ => Some((key(n), value(n))),
            };
            match value {
                Some((key, value)) => put(&*store, &key, &value).map(|_| ()).unwrap(),
                None => store.delete(&key(0)).map(|_| ()).unwrap(),
            }
            store.close().unwrap();
        }
        std::fs::remove_file(&data_files(root.path())[10]).unwrap();
        forget_inventory(root.path());
        let store = open(backend, root.path()).unwrap();
        assert_eq!(store.complete(), is_written_again, "{backend}");
        // The hint file or the ledger still has the deletion. What it hides would come back only if
        // that were lost as well.
        let found = is_written_again.then(|| value(15));
        assert_eq!(get(&*store, &key(0)).unwrap(), found, "{backend}");
    }
}

#[test]
fn a_missing_data_file_is_told_on_a_full_disk_too_and_noted_when_there_is_room() {
    let (fs, root) = (FaultyFs::new(1), Path::new("/root"));
    let open = || {
        let journal = JournalConfig { file_bytes_max: 2000, ..JournalConfig::default() };
        BitcaskFactory::new(fs.clone(), root, journal).unwrap().open(PARTITION).unwrap()
    };
    let store = open();
    for n in 0..20 {
        put(&*store, &key(n), &value(n)).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let dir = root.join(PARTITION.to_string());
    let names = fs.list(&dir).unwrap();
    let gone = names.iter().filter(|name| name.ends_with(".data")).min().unwrap();
    fs.remove_file(&dir.join(gone)).unwrap();
    fs.remove_file(&dir.join("inventory")).unwrap();
    let hint = dir.join(gone.replace(".data", ".hint"));
    for free_bytes in [Some(0), Some(0), None, None] {
        fs.set_free_bytes(free_bytes);
        let store = open();
        assert_eq!((store.status().lost_ranges, store.complete()), (1, false));
        assert!(fs.list(&dir).unwrap().iter().any(|name| hint.ends_with(name)), "it tells which keys are missing");
        fs.set_free_bytes(None);
        store.close().unwrap();
    }
}

/// The library writes the ledger's files itself. Here it cannot write a table.
#[test]
fn a_ledger_that_cannot_be_written_holds_writers_back_and_loses_nothing() {
    for backend in ["leveled", "leveldb"] {
        let root = scratch_dir();
        let ledger = LedgerConfig { memory_bytes_max: 16 << 10, ..LedgerConfig::default() };
        let open = || open_with(backend, root.path(), ledger).unwrap();
        let store = open();
        let tables = root.path().join(format!("{PARTITION}.ledger/tables"));
        let aside = root.path().join("aside");
        std::fs::rename(&tables, &aside).unwrap();
        std::fs::write(&tables, "not a directory").unwrap();
        let mut count = 0;
        let refused = loop {
            if store.is_behind()
                && let Err(error) = store.catch_up()
            {
                break error;
            }
            put(&*store, &key(count), &value(count)).unwrap();
            count += 1;
            let _ = store.maintain(NOW_SECS);
            assert!(count < 10_000, "{backend}: nothing holds the writer back");
        };
        assert!(matches!(refused, StorageError::Io { .. }), "{backend}: {refused}");
        let gathered = store.status().index_bytes;
        for _ in 0..1000 {
            store.catch_up().unwrap_err();
        }
        assert_eq!(store.status().index_bytes, gathered, "{backend}: every try takes memory");
        let check = |store: &dyn Backend| {
            for n in 0..count {
                assert_eq!(get(store, &key(n)).unwrap(), Some(value(n)), "{backend}: key {n} of {count}");
            }
        };
        check(&*store);
        std::fs::remove_file(&tables).unwrap();
        std::fs::rename(&aside, &tables).unwrap();
        store.catch_up().unwrap();
        assert!(!store.is_behind());
        check(&*store);
        drop(store);
        check(&*open());
    }
}

/// Keys that begin with `a` are in the first store.
struct ByFirstByte;

impl Selector for ByFirstByte {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(!key.starts_with(b"a")))
    }
}

/// A multi store over two bitcask stores, in `first` and `second` below `root`.
fn two_stores(fs: Arc<dyn FileSystem>, root: &Path, selector: Arc<dyn Selector>) -> Arc<dyn Backend> {
    let of = |name: &str| -> (String, Arc<dyn BackendFactory>) {
        let factory = BitcaskFactory::new(fs.clone(), root.join(name), JournalConfig::default());
        (name.into(), Arc::new(factory.unwrap()))
    };
    MultiFactory::new(vec![of("first"), of("second")], selector).open(PARTITION).unwrap()
}

/// Buckets whose index is not queried do not pay for the ordered index of other buckets.
#[test]
fn an_order_is_made_only_where_the_bucket_lies() {
    let root = scratch_dir();
    let store = two_stores(Arc::new(RealFs), root.path(), Arc::new(ByFirstByte));
    for key in [b"a key", b"b key"] {
        put(&*store, key, b"value").unwrap();
    }
    let range = KeyRange { bucket: b"b", from: Bound::Unbounded, to: Bound::Unbounded };
    let found = store.ordered_snapshot(b"b").unwrap().keys_in_order(&range, 10).unwrap();
    assert_eq!(found.len(), 1);
    let has_order =
        |name: &str| RealFs.list(&root.path().join(name)).unwrap().iter().any(|name| name.ends_with(".order"));
    assert_eq!((has_order("first"), has_order("second")), (false, true));
}

/// All keys are in the first store until the selector is switched.
#[derive(Default)]
struct Switched(AtomicBool);

impl Selector for Switched {
    fn select(&self, _key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(self.0.load(Ordering::Relaxed)))
    }
}

#[test]
fn a_class_is_dropped_wherever_its_buckets_have_left_something() {
    let (fs, selector) = (FaultyFs::new(1), Arc::new(Switched::default()));
    let store = two_stores(fs, Path::new("/"), selector.clone());
    for n in 0..10 {
        put(&*store, &key(n), b"first").unwrap();
    }
    selector.0.store(true, Ordering::Relaxed);
    for n in 0..5 {
        put(&*store, &key(n), b"second").unwrap();
    }
    assert_eq!(store.drop_scope(&Scope::ALL).unwrap(), 15);
    for switched in [true, false] {
        selector.0.store(switched, Ordering::Relaxed);
        (0..10).for_each(|n| assert_eq!(get(&*store, &key(n)).unwrap(), None));
    }
}

#[test]
fn several_stores_together_never_call_synced_what_is_not() {
    const PUTS: usize = 100_000;
    let fs = FaultyFs::new(1);
    let store = two_stores(fs.clone(), Path::new("/"), Arc::new(ByFirstByte));
    // No append above this number was ever asked to be synced.
    let asked = AtomicU64::new(0);
    let is_over = AtomicBool::new(false);
    let wrong = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut wrong = 0;
            while !is_over.load(Ordering::Acquire) {
                let said = store.synced_seq();
                wrong += u64::from(said > asked.load(Ordering::Acquire));
            }
            wrong
        });
        for n in 0..PUTS {
            let seq = put(&*store, [b"a", b"b"][n % 2], b"value").unwrap().seq;
            asked.store(seq, Ordering::Release);
            store.sync(seq).unwrap();
        }
        is_over.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    assert_eq!(wrong, 0, "answers that were not so");
    assert_eq!(store.synced_seq(), PUTS as u64);
    store.close().unwrap();
}

#[test]
fn an_order_that_a_failed_read_interrupts_is_whole_or_not_there() {
    const KEYS: u32 = 50;
    let root = scratch_dir();
    let bucket = Bucket::untyped("bucket");
    let whole_key = |n: u32| {
        let mut out = Vec::new();
        encode_storage_key(&bucket, &key(n), &mut out);
        out
    };
    let mut prefix = Vec::new();
    encode_bucket_prefix(&bucket, &mut prefix);
    for failing in 1..=KEYS as u64 {
        let fs = FaultyFs::new(failing);
        fs.create_dir_all(root.path()).unwrap();
        let ledger = LedgerConfig::default();
        let factory = BitcaskFactory::with_terms(
            fs.clone(),
            root.path(),
            JournalConfig::default(),
            &ledger,
            Arc::new(HeadIsTerm),
        );
        let factory = factory.unwrap();
        let store = factory.open(PARTITION).unwrap();
        for n in 0..KEYS {
            let (key, body, tstamp_secs) = (whole_key(n), b"value", NOW_SECS as u32);
            let write = Write {
                key: &key,
                head: b"term",
                body: &[body],
                digest: 1,
                tstamp_secs,
                expires_secs: 0,
                has_terms: true,
            };
            store.put(&write).unwrap();
        }
        // After a start no head is in memory.
        store.close().unwrap();
        drop(store);
        let store = factory.open(PARTITION).unwrap();
        fs.fail_at(Call::Read, failing);
        let interrupted = store.ordered_snapshot(&prefix).err();
        assert!(matches!(interrupted, Some(StorageError::Io { .. })), "read {failing}");
        let mut snapshot = store.ordered_snapshot(&prefix).unwrap();
        let keys = KeyRange { bucket: &prefix, from: Bound::Unbounded, to: Bound::Unbounded };
        assert_eq!(snapshot.keys_in_order(&keys, 1000).unwrap().len(), KEYS as usize, "read {failing}");
        let terms = TermRange { bucket: &prefix, field: b"f_bin", from: b"", to: b"z", after: None };
        assert_eq!(snapshot.terms_in_order(&terms, 1000).unwrap().len(), KEYS as usize, "read {failing}");
        drop(snapshot);
        store.drop_partition().unwrap();
    }
}

/// The whole head is one index term.
struct HeadIsTerm;

impl HeadTerms for HeadIsTerm {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        visit(b"f_bin", head);
    }
}
