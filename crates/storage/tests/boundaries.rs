//! What a store answers at the ends of its range, and to a start that finds less, or more, than there should be.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use ombak_storage::fs::sim::{Call, FaultyFs};
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, HeadTerms, JournalConfig, KeyRange, LedgerConfig, LeveldbFactory,
    LeveledFactory, MultiFactory, NoTerms, Selector, StorageError, TermRange, Write,
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
    let (fs, ledger, terms) = (Arc::new(RealFs), LedgerConfig::default(), Arc::new(NoTerms));
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
    let root = scratch_dir();
    let store = open("leveled", root.path()).unwrap();
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
    let mut found_first = None;
    for _ in 0..3 {
        let store = open("leveled", root.path()).unwrap();
        assert_eq!((store.status().lost_ranges, store.complete()), (2, false));
        let found: Vec<bool> =
            (0..40).map(|n| get(&*store, &key(n)).unwrap().is_some_and(|found| found == value(n))).collect();
        let there = found.iter().filter(|found| **found).count();
        assert!((20..38).contains(&there), "{there} of 40");
        assert_eq!(*found_first.get_or_insert_with(|| found.clone()), found);
        store.close().unwrap();
    }
}

/// Keys that begin with an `a` lie in the first store.
struct ByFirstByte;

impl Selector for ByFirstByte {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(!key.starts_with(b"a")))
    }
}

#[test]
fn several_stores_together_never_call_synced_what_is_not() {
    const PUTS: usize = 100_000;
    let fs = FaultyFs::new(1);
    let of = |name: &str| -> (String, Arc<dyn BackendFactory>) {
        let root = Path::new("/").join(name);
        (name.into(), Arc::new(BitcaskFactory::new(fs.clone(), root, JournalConfig::default()).unwrap()))
    };
    let factory = MultiFactory::new(vec![of("a"), of("b")], Arc::new(ByFirstByte));
    let store = factory.open(PARTITION).unwrap();
    // Nothing behind this was ever asked to be synced.
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
        let store = factory.unwrap().open(PARTITION).unwrap();
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
        fs.fail_at(Call::Read, failing);
        let interrupted = store.ordered_snapshot().err();
        assert!(matches!(interrupted, Some(StorageError::Io { .. })), "read {failing}");
        let mut snapshot = store.ordered_snapshot().unwrap();
        let keys = KeyRange { bucket: &prefix, from: Bound::Unbounded, to: Bound::Unbounded };
        assert_eq!(snapshot.keys_in_order(&keys, 1000).unwrap().len(), KEYS as usize, "read {failing}");
        let terms = TermRange { bucket: &prefix, field: b"f_bin", from: b"", to: b"z", after: None };
        assert_eq!(snapshot.terms_in_order(&terms, 1000).unwrap().len(), KEYS as usize, "read {failing}");
        drop(snapshot);
        store.drop_partition().unwrap();
    }
}

/// A head is its one term.
struct HeadIsTerm;

impl HeadTerms for HeadIsTerm {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        visit(b"f_bin", head);
    }
}
