//! Directories in the second format stay readable: journals with index entries, expiry and
//! compressed bodies, hint files, the ledgers of leveled and leveldb, and the ordered index of
//! bitcask.

use crate::common::*;
use ombak_storage::fs::RealFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Compression, Detail, HeadTerms, JournalConfig, KeyRange, LedgerConfig,
    LeveldbFactory, LeveledFactory, MergeConfig, ReadMode, Scope, TermRange, Write,
};
use ombak_types::Bucket;
use ombak_types::names::{encode_bucket_prefix, encode_storage_key};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PARTITION: u32 = 17;
const BACKENDS: [&str; 3] = ["bitcask", "leveled", "leveldb"];
const FIELD: &[u8] = b"f_bin";
/// When the versions with an expiry time of their own expire.
const ENDS_SECS: u64 = NOW_SECS + 1000;

/// The head is one index term, or empty.
struct OneTerm;

impl HeadTerms for OneTerm {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        if !head.is_empty() {
            visit(FIELD, head);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Version {
    term: Vec<u8>,
    body: Vec<u8>,
    expires_secs: u32,
}

/// The keys within the bucket and their versions.
type Model = BTreeMap<Vec<u8>, Version>;

fn bucket() -> Bucket {
    Bucket::typed("type", "bucket")
}

fn storage_key(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_storage_key(&bucket(), key, &mut out);
    out
}

fn bucket_prefix() -> Vec<u8> {
    let mut out = Vec::new();
    encode_bucket_prefix(&bucket(), &mut out);
    out
}

fn journal(compression: Compression, opened_at_secs: u64) -> JournalConfig {
    JournalConfig { file_bytes_max: 8000, compression, opened_at_secs, ..JournalConfig::default() }
}

fn open(backend: &str, root: &Path, journal: JournalConfig) -> Arc<dyn Backend> {
    let (fs, ledger, terms) = (Arc::new(RealFs), LedgerConfig::default(), Arc::new(OneTerm));
    let factory: Box<dyn BackendFactory> = match backend {
        "bitcask" => Box::new(BitcaskFactory::with_terms(fs, root, journal, &ledger, terms).unwrap()),
        "leveled" => Box::new(LeveledFactory::new(fs, root, journal, ledger, terms).unwrap()),
        "leveldb" => Box::new(LeveldbFactory::new(fs, root, journal, ledger, terms).unwrap()),
        other => panic!("no backend {other}"),
    };
    factory.open(PARTITION).unwrap()
}

/// The thirty keys of a stage: some with a term, some with an expiry time, some overwritten, some
/// deleted.
fn each_of_stage(stage: usize, mut write: impl FnMut(&[u8], Option<Version>)) {
    let key = |n: usize| format!("key {stage} {n:02}").into_bytes();
    for round in 0..2 {
        for n in (0..30usize).filter(|n| round == 0 || n % 5 == 0) {
            let version = Version {
                term: if n % 4 == 0 { format!("term {}", (n + round) % 3).into_bytes() } else { Vec::new() },
                body: format!("value {n} of round {round} ").repeat(n + 1).into_bytes(),
                expires_secs: if n % 7 == 0 { ENDS_SECS as u32 } else { 0 },
            };
            write(&key(n), Some(version));
        }
    }
    (0..30).step_by(3).for_each(|n| write(&key(n), None));
}

fn put_version(store: &dyn Backend, key: &[u8], version: &Version) {
    let Version { term, body, expires_secs } = version;
    let write = Write {
        key: &storage_key(key),
        head: term,
        body: &[body],
        digest: digest_of(body),
        tstamp_secs: NOW_SECS as u32,
        expires_secs: *expires_secs,
        has_terms: !term.is_empty(),
    };
    store.put(&write).unwrap();
}

/// The stages, by the compression of bodies in each. The last one ends as a kill would leave it.
const STAGES: [Compression; 4] = [Compression::None, Compression::Lz4, Compression::Zstd(3), Compression::None];

fn write_sample(backend: &str, root: &Path) -> Arc<dyn Backend> {
    let mut last: Option<Arc<dyn Backend>> = None;
    for (stage, compression) in STAGES.into_iter().enumerate() {
        if let Some(store) = last.take() {
            store.close().unwrap();
        }
        let store = open(backend, root, journal(compression, NOW_SECS));
        each_of_stage(stage, |key, version| match version {
            Some(version) => put_version(&*store, key, &version),
            None => drop(store.delete(&storage_key(key)).unwrap().unwrap()),
        });
        for _ in 0..10 {
            store.maintain(NOW_SECS).unwrap();
        }
        last = Some(store);
    }
    last.unwrap()
}

/// The content of the fixtures at a given time.
fn expected(now_secs: u64) -> Model {
    let mut model = Model::new();
    for stage in 0..STAGES.len() {
        each_of_stage(stage, |key, version| match version {
            Some(version) => drop(model.insert(key.to_vec(), version)),
            None => drop(model.remove(key)),
        });
    }
    model.retain(|_, version| version.expires_secs == 0 || u64::from(version.expires_secs) >= now_secs);
    model
}

fn check(store: &dyn Backend, model: &Model, context: &str) {
    assert!(store.complete(), "{context}");
    for stage in 0..STAGES.len() {
        for n in 0..30 {
            let key = format!("key {stage} {n:02}").into_bytes();
            let found = store.get(&storage_key(&key), ReadMode::Blocking).unwrap();
            let found = found.map(|stored| (stored.head.to_vec(), stored.body.unwrap().to_vec(), stored.digest));
            let wanted = model.get(&key).map(|v| (v.term.clone(), v.body.clone(), digest_of(&v.body)));
            assert_eq!(found, wanted, "{context}: key {stage} {n}");
        }
    }
    let prefix = bucket_prefix();
    let mut view = store.ordered_snapshot(&prefix).unwrap();
    let range = KeyRange { bucket: &prefix, from: Bound::Unbounded, to: Bound::Unbounded };
    let keys = view.keys_in_order(&range, 1000).unwrap();
    let keys: Vec<Vec<u8>> = keys.iter().map(|entry| entry.key[prefix.len()..].to_vec()).collect();
    assert_eq!(keys, model.keys().cloned().collect::<Vec<_>>(), "{context}");
    let range = TermRange { bucket: &prefix, field: FIELD, from: b"", to: b"\xff", after: None };
    let terms = view.terms_in_order(&range, 1000).unwrap();
    let terms: Vec<_> = terms.into_iter().map(|entry| (entry.term.to_vec(), entry.key.to_vec())).collect();
    let of_model = model.iter().filter(|(_, v)| !v.term.is_empty()).map(|(key, v)| (v.term.clone(), key.clone()));
    assert_eq!(terms, of_model.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(), "{context}");
    let attrs = view.next(&Scope::ALL, Detail::Objects, 1000).unwrap();
    for entry in attrs {
        let version = &model[&entry.key[prefix.len()..].to_vec()];
        let attrs = entry.attrs.unwrap();
        assert_eq!(attrs.expires_secs, version.expires_secs, "{context}: {:?}", entry.key);
        assert_eq!((attrs.tstamp_secs, attrs.has_terms), (NOW_SECS as u32, !version.term.is_empty()), "{context}");
    }
}

fn fixture(backend: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{backend}-v2"))
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// All files below a directory by their relative paths.
fn files_in(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = PathBuf::from(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_in(&entry.path()).into_iter().map(|(path, bytes)| (name.join(path), bytes)));
        } else {
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    files
}

/// Writes the fixtures: `cargo test -p ombak-storage --test all -- --ignored`. Existing
/// fixtures are never overwritten.
#[test]
#[ignore = "writes into the source tree"]
fn write_fixtures() {
    for backend in BACKENDS.into_iter().filter(|backend| !fixture(backend).exists()) {
        let root = tempfile::tempdir().unwrap();
        let store = write_sample(backend, root.path());
        // The copy is made before any other call, as a kill would leave the store.
        let to = fixture(backend);
        copy(root.path(), &to);
        let locks = files_in(&to).into_keys().filter(|path| path.ends_with("LOCK") || path.ends_with("lock"));
        locks.for_each(|lock| std::fs::remove_file(to.join(lock)).unwrap());
        check(&*store, &expected(NOW_SECS), backend);
    }
}

fn copied(backend: &str) -> tempfile::TempDir {
    let root = scratch_dir();
    copy(&fixture(backend), root.path());
    root
}

fn part(root: &Path, suffix: &str) -> PathBuf {
    root.join(format!("{PARTITION}{suffix}"))
}

#[test]
fn format_2_is_read_and_written_on() {
    for backend in BACKENDS {
        let root = copied(backend);
        let store = open(backend, root.path(), journal(Compression::None, NOW_SECS));
        check(&*store, &expected(NOW_SECS), backend);
        let new = Version { term: Vec::new(), body: b"new".to_vec(), expires_secs: 0 };
        put_version(&*store, b"new", &new);
        store.close().unwrap();
        drop(store);
        let store = open(backend, root.path(), journal(Compression::None, ENDS_SECS + 1));
        let mut model = expected(ENDS_SECS + 1);
        assert!(model.len() < expected(NOW_SECS).len());
        model.insert(b"new".to_vec(), new);
        check(&*store, &model, backend);
    }
}

/// The contents stay right after merging, compression and expiry.
#[test]
fn format_2_is_merged() {
    for backend in BACKENDS {
        let root = copied(backend);
        let mut config = journal(Compression::Lz4, ENDS_SECS + 1);
        config.merge = MergeConfig {
            check_interval_secs: 0,
            trigger_fragmentation_percent: 1,
            io_bytes_per_sec: 1 << 40,
            ..config.merge
        };
        let store = open(backend, root.path(), config);
        for _ in 0..20 {
            store.maintain(ENDS_SECS + 1).unwrap();
        }
        check(&*store, &expected(ENDS_SECS + 1), backend);
        assert!(backend == "leveldb" || store.status().merges > 0, "{backend}");
    }
}

/// The fixtures contain the cases that they are meant for.
#[test]
fn the_fixtures_are_whole() {
    let repeated = format!("{0}{0}{0}", "value 29 of round 0 ").into_bytes();
    for backend in ["bitcask", "leveled"] {
        let journal = files_in(&part(&fixture(backend), ""));
        let plain = journal.values().filter(|bytes| bytes.windows(repeated.len()).any(|part| part == repeated)).count();
        assert_eq!(plain, 2, "{backend}: a value is written out in the stages that do not compress, once in each");
        assert!(journal.keys().any(|path| path.extension().is_some_and(|e| e == "hint")), "{backend}");
        assert!(journal.keys().any(|path| path.extension().is_some_and(|e| e != "hint")), "{backend}");
    }
    for (backend, ledger) in [("bitcask", ".order"), ("leveled", ".ledger"), ("leveldb", ".ledger")] {
        let tables = files_in(&part(&fixture(backend), ledger).join("tables"));
        assert!(!tables.is_empty(), "{backend}");
    }
}

/// Hint files, ledgers and ordered indexes of this format are used without being rebuilt. They can
/// be lost, because the journal has everything.
#[test]
fn what_follows_from_the_journal_is_used_and_can_be_lost() {
    for (backend, ledger) in [("bitcask", ".order"), ("leveled", ".ledger")] {
        let root = copied(backend);
        let dir = part(root.path(), ledger);
        let before = files_in(&dir.join("tables"));
        let store = open(backend, root.path(), journal(Compression::None, NOW_SECS));
        check(&*store, &expected(NOW_SECS), backend);
        let after = files_in(&dir.join("tables"));
        assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{backend}: it was made anew");
        store.close().unwrap();
        drop(store);
        let root = copied(backend);
        std::fs::remove_dir_all(part(root.path(), ledger)).unwrap();
        let files = part(root.path(), "");
        for path in files_in(&files).into_keys().filter(|path| path.extension().is_some_and(|e| e == "hint")) {
            std::fs::remove_file(files.join(path)).unwrap();
        }
        let store = open(backend, root.path(), journal(Compression::None, NOW_SECS));
        check(&*store, &expected(NOW_SECS), backend);
    }
}
