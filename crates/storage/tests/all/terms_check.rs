//! The comparison of index entries with the objects that justify them. The entries are made wrong
//! by a reader of heads that lies for a while, so the stores themselves need no door for tests.

use crate::common::*;
use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, HeadTerms, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    MemoryConfig, MemoryFactory, MultiFactory, Selector, StorageError, TermCursor, TermRange, Write,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const FIELD: &[u8] = b"f_bin";
const BUCKET: &[u8] = b"\x02\0\x01b";
const KEYS: u32 = 20;

const TRUTH: u8 = 0;
/// No head has an entry.
const BLIND: u8 = 1;
/// Each head has one entry too many.
const DOUBLE: u8 = 2;

/// A head is one term, and this reader does not always say so.
#[derive(Default)]
struct LyingTerms(AtomicU8);

impl HeadTerms for LyingTerms {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        match self.0.load(Ordering::SeqCst) {
            BLIND => {}
            mode => {
                visit(FIELD, head);
                if mode == DOUBLE {
                    visit(FIELD, &[head, b"+"].concat());
                }
            }
        }
    }
}

/// Every key belongs to the second store, so that a walk has to pass the first one.
struct TheSecond;

impl Selector for TheSecond {
    fn select(&self, _key: &[u8]) -> Result<usize, StorageError> {
        Ok(1)
    }
}

fn factory(kind: &str, root: &Path, terms: &Arc<LyingTerms>) -> Arc<dyn BackendFactory> {
    let (fs, journal, ledger) = (Arc::new(RealFs), JournalConfig::default(), LedgerConfig::default());
    let dir = root.join(kind);
    match kind {
        "bitcask" => Arc::new(BitcaskFactory::with_terms(fs, dir, journal, &ledger, terms.clone()).unwrap()),
        "leveled" => Arc::new(LeveledFactory::new(fs, dir, journal, ledger, terms.clone()).unwrap()),
        "leveldb" => Arc::new(LeveldbFactory::new(fs, dir, journal, ledger, terms.clone()).unwrap()),
        "memory" => Arc::new(MemoryFactory::with_terms(MemoryConfig::default(), terms.clone())),
        _ => {
            let children = ["leveled", "memory"].map(|kind| (kind.to_owned(), factory(kind, root, terms)));
            Arc::new(MultiFactory::new(children.into(), Arc::new(TheSecond)))
        }
    }
}

fn key(number: u32) -> Vec<u8> {
    [BUCKET, format!("k{number:03}").as_bytes()].concat()
}

fn put(store: &dyn Backend, number: u32) {
    put_as(store, number, &format!("term{number:03}"), 0);
}

fn put_as(store: &dyn Backend, number: u32, term: &str, expires_secs: u32) {
    let write = Write {
        key: &key(number),
        head: term.as_bytes(),
        body: &[b"body"],
        digest: u64::from(number) + 1,
        tstamp_secs: NOW_SECS as u32,
        expires_secs,
        has_terms: true,
    };
    store.put(&write).unwrap();
}

/// The index entries of the bucket.
fn entries(store: &dyn Backend) -> Vec<String> {
    let range = TermRange { bucket: BUCKET, field: FIELD, from: b"", to: b"\xff", after: None };
    let found = store.ordered_snapshot(BUCKET).unwrap().terms_in_order(&range, 10_000).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    found.iter().map(|entry| format!("{} {}", text(&entry.term), text(&entry.key))).collect()
}

/// One whole walk, in steps of three. Returns how many entries were missing and how many surplus.
fn check(store: &dyn Backend) -> (u64, u64) {
    let (mut cursor, mut found) = (TermCursor::default(), (0, 0));
    for _ in 0..1_000 {
        let step = store.check_terms(&cursor, 3).unwrap();
        assert!(step.visited <= 3);
        found = (found.0 + step.lacking, found.1 + step.surplus);
        if step.is_over {
            return found;
        }
        cursor = step.next;
    }
    panic!("the walk does not end");
}

#[test]
fn entries_that_are_missing_or_surplus_are_found_and_mended() {
    for kind in ["bitcask", "leveled", "leveldb", "memory", "multi"] {
        let dir = tempfile::tempdir().unwrap();
        let terms = Arc::new(LyingTerms::default());
        let store = factory(kind, dir.path(), &terms).open(0).unwrap();
        (0..KEYS).for_each(|number| put(&*store, number));
        let whole = entries(&*store);
        assert_eq!(whole.len(), KEYS as usize, "{kind}");
        assert_eq!(check(&*store), (0, 0), "{kind}: nothing is wrong");

        // Keys that lose their entries, and entries that lose their keys.
        terms.0.store(BLIND, Ordering::SeqCst);
        (20..25).for_each(|number| put(&*store, number));
        store.delete(&key(3)).unwrap().unwrap();
        store.delete(&key(4)).unwrap().unwrap();
        terms.0.store(DOUBLE, Ordering::SeqCst);
        (30..34).for_each(|number| put(&*store, number));
        terms.0.store(TRUTH, Ordering::SeqCst);
        // bitcask removes the entries that it has noted with the key, whatever the head says.
        let of_removed = if kind == "bitcask" { 0 } else { 2 };
        assert_eq!(check(&*store), (5, of_removed + 4), "{kind}");

        let there = (0..25).chain(30..34).filter(|number| ![3, 4].contains(number));
        let expected: Vec<String> = there.map(|number| format!("term{number:03} k{number:03}")).collect();
        assert_eq!(entries(&*store), expected, "{kind}");
        assert_eq!(check(&*store), (0, 0), "{kind}: what was mended stays");
        store.close().unwrap();
    }
}

#[test]
fn what_was_mended_outlives_a_restart() {
    for kind in ["bitcask", "leveled", "leveldb"] {
        let dir = tempfile::tempdir().unwrap();
        let terms = Arc::new(LyingTerms(AtomicU8::new(BLIND)));
        let store = factory(kind, dir.path(), &terms).open(0).unwrap();
        (0..KEYS).for_each(|number| put(&*store, number));
        assert!(entries(&*store).is_empty(), "{kind}");
        terms.0.store(TRUTH, Ordering::SeqCst);
        assert_eq!(check(&*store), (u64::from(KEYS), 0), "{kind}");
        store.close().unwrap();
        drop(store);
        let store = factory(kind, dir.path(), &terms).open(0).unwrap();
        assert_eq!((entries(&*store).len(), check(&*store)), (KEYS as usize, (0, 0)), "{kind}");
        store.close().unwrap();
    }
}

/// The journal does not have what was mended, so it is written at the end of the walk.
#[test]
fn what_was_mended_outlives_an_end_without_order() {
    for kind in ["bitcask", "leveled", "leveldb"] {
        let dir = tempfile::tempdir().unwrap();
        let terms = Arc::new(LyingTerms(AtomicU8::new(BLIND)));
        let open = || factory(kind, dir.path(), &terms).open(0).unwrap();
        let store = open();
        (0..KEYS).for_each(|number| put(&*store, number));
        assert!(entries(&*store).is_empty(), "{kind}");
        store.close().unwrap();
        drop(store);
        terms.0.store(TRUTH, Ordering::SeqCst);
        let store = open();
        assert_eq!(check(&*store), (u64::from(KEYS), 0), "{kind}");
        store.maintain(NOW_SECS).unwrap();
        drop(store);
        let store = open();
        assert_eq!((check(&*store), entries(&*store).len()), ((0, 0), KEYS as usize), "{kind}");
        store.close().unwrap();
    }
}

#[test]
fn puts_beside_a_walk_are_not_mended() {
    for kind in ["bitcask", "leveled"] {
        let dir = tempfile::tempdir().unwrap();
        let terms = Arc::new(LyingTerms::default());
        let store = factory(kind, dir.path(), &terms).open(0).unwrap();
        put(&*store, 0);
        assert_eq!(entries(&*store).len(), 1, "{kind}");
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..20 {
                    (0..KEYS).for_each(|number| put_as(&*store, number, &format!("term{round}"), 0));
                    (0..KEYS).filter(|number| number % 3 == round % 3).for_each(|number| {
                        store.delete(&key(number)).unwrap();
                    });
                }
            });
            while !writer.is_finished() {
                assert_eq!(check(&*store), (0, 0), "{kind}");
            }
        });
        store.close().unwrap();
    }
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let to = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy_dir(&file.path(), &to);
        } else {
            std::fs::copy(file.path(), to).unwrap();
        }
    }
}

/// Of bitcask, the ordered index lies beside the journal, and can be that of another one.
#[test]
fn an_ordered_index_that_does_not_fit_its_journal_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let terms = Arc::new(LyingTerms::default());
    let [ours, other] = ["ours", "other"].map(|name| dir.path().join(name));
    for root in [&ours, &other] {
        std::fs::create_dir(root).unwrap();
    }
    let open = |at: &Path| factory("bitcask", at, &terms).open(0).unwrap();
    let store = open(&other);
    (0..KEYS).for_each(|number| match number {
        5 => put(&*store, 50),
        7 => put_as(&*store, 7, "old", 0),
        number => put(&*store, number),
    });
    assert_eq!(entries(&*store).len(), KEYS as usize);
    store.close().unwrap();
    drop(store);

    let store = open(&ours);
    (0..KEYS).for_each(|number| put(&*store, number));
    let right = entries(&*store);
    store.close().unwrap();
    drop(store);
    let order_of = |at: &Path| at.join("bitcask/0.order");
    std::fs::remove_dir_all(order_of(&ours)).unwrap();
    copy_dir(&order_of(&other), &order_of(&ours));

    let store = open(&ours);
    assert_ne!(entries(&*store), right, "it is the index of the other journal");
    // Key 5 and its entry, and the other entry of key 7; key 50 and its entry, and the old one of
    // 7.
    assert_eq!(check(&*store), (3, 3));
    assert_eq!((entries(&*store), check(&*store)), (right, (0, 0)));
    store.close().unwrap();
}

/// After an end without order, the ordered index on disk lacks the newest keys. They are loaded
/// first, and are no fault.
#[test]
fn an_ordered_index_that_is_not_complete_is_completed_first() {
    let dir = tempfile::tempdir().unwrap();
    let terms = Arc::new(LyingTerms::default());
    let open = || factory("bitcask", dir.path(), &terms).open(0).unwrap();
    let store = open();
    (0..5).for_each(|number| put(&*store, number));
    assert_eq!(entries(&*store).len(), 5);
    store.close().unwrap();
    drop(store);
    let store = open();
    (5..KEYS).for_each(|number| put(&*store, number));
    drop(store);
    let store = open();
    assert_eq!((check(&*store), entries(&*store).len()), ((0, 0), KEYS as usize));
    store.close().unwrap();
}

/// Nobody sees whether the entries of an expired version are there, so that is no fault, whether
/// the ordered index was built before or after.
#[test]
fn versions_that_have_expired_are_left_as_they_are() {
    let now = NOW_SECS as u32;
    for is_built_before in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let terms = Arc::new(LyingTerms::default());
        let store = factory("bitcask", dir.path(), &terms).open(0).unwrap();
        store.tell_time(NOW_SECS);
        put(&*store, 1);
        put_as(&*store, 2, "soon", now + 10);
        if is_built_before {
            assert_eq!(entries(&*store).len(), 2);
        }
        store.tell_time(NOW_SECS + 100);
        assert_eq!((check(&*store), !entries(&*store).is_empty()), ((0, 0), true), "{is_built_before}");
        store.close().unwrap();
    }
}
