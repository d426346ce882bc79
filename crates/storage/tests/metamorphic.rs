//! The same random history on every backend and set of options must give the answers of a model.
//! Histories have puts, deletes, folds, ordered keys, index queries in pages, expiry, maintenance,
//! and restarts with and without a close.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Compression, CompressionPoint, Detail, HeadTerms, JournalConfig, KeyRange,
    LedgerConfig, LeveldbFactory, LeveledFactory, MemoryConfig, MemoryFactory, MergeConfig, MultiFactory, ReadMode,
    Scope, Selector, StorageError, SyncStrategy, TermRange, Write, WriteAttrs,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Histories for each backend and set of options, unless `OMBAK_HISTORIES` gives the number.
const HISTORIES: u64 = 250;
const STEPS: u64 = 160;
const BUCKETS: [&[u8]; 3] = [b"\x02\0\x01a", b"\x02\0\x01b", b"\x02\0\x02ab"];
const FIELDS: [&str; 2] = ["f_bin", "g_int"];

/// Heads in these tests: a mark, then lines of `field=term`.
struct LineTerms;

const MARK: &[u8] = b"terms\n";

impl HeadTerms for LineTerms {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        let Some(lines) = head.strip_prefix(MARK) else { return };
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let equals = line.iter().position(|byte| *byte == b'=').unwrap();
            visit(&line[..equals], &line[equals + 1..]);
        }
    }
}

type Opener = fn(&Path, Arc<FaultyFs>, u64) -> Result<Box<dyn BackendFactory>, StorageError>;

fn journal(now_secs: u64) -> JournalConfig {
    JournalConfig {
        sync: SyncStrategy::None,
        file_bytes_max: 2048,
        merge: eager_merges(),
        opened_at_secs: now_secs,
        sweep_interval_secs: 5,
        open_files_max: 4,
        ..JournalConfig::default()
    }
}

fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 4 << 10, table_bytes: 4 << 10, ..LedgerConfig::default() }
}

fn memory(_: &Path, _: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = MemoryConfig { opened_at_secs: now_secs, ..MemoryConfig::default() };
    Ok(Box::new(MemoryFactory::with_terms(config, Arc::new(LineTerms))))
}

fn bitcask(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, journal(now_secs), &ledger(), Arc::new(LineTerms))?))
}

fn bitcask_lazy(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = JournalConfig { file_bytes_max: 64 << 10, merge: MergeConfig::default(), ..journal(now_secs) };
    let order = LedgerConfig::default();
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, config, &order, Arc::new(LineTerms))?))
}

fn leveled(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveledFactory::new(fs, dir, journal(now_secs), ledger(), Arc::new(LineTerms))?))
}

/// Values are compressed when they are first merged.
fn bitcask_compacting(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let (compression, compression_point) = (Compression::Zstd(3), CompressionPoint::OnCompact);
    let config = JournalConfig { compression, compression_point, ..journal(now_secs) };
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, config, &ledger(), Arc::new(LineTerms))?))
}

/// Values are compressed by another method after each start.
fn leveled_compressing(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)][now_secs as usize % 3];
    let config = JournalConfig { compression, ..journal(now_secs) };
    Ok(Box::new(LeveledFactory::new(fs, dir, config, ledger(), Arc::new(LineTerms))?))
}

fn leveled_lazy(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let config = JournalConfig { file_bytes_max: 64 << 10, merge: MergeConfig::default(), ..journal(now_secs) };
    Ok(Box::new(LeveledFactory::new(fs, dir, config, LedgerConfig::default(), Arc::new(LineTerms))?))
}

fn leveldb(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveldbFactory::new(fs, dir, journal(now_secs), ledger(), Arc::new(LineTerms))?))
}

/// Bucket `a` is on bitcask, `b` on leveled, the rest on leveldb.
struct ByBucket;

impl Selector for ByBucket {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(BUCKETS.iter().position(|bucket| key.starts_with(bucket)).unwrap_or(0))
    }
}

fn multi(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    let backends = vec![
        ("a".to_owned(), Arc::from(bitcask(&dir.join("bitcask"), fs.clone(), now_secs)?)),
        ("b".to_owned(), Arc::from(leveled(&dir.join("leveled"), fs.clone(), now_secs)?)),
        ("c".to_owned(), Arc::from(leveldb(&dir.join("leveldb"), fs, now_secs)?)),
    ];
    Ok(Box::new(MultiFactory::new(backends, Arc::new(ByBucket))))
}

#[derive(Clone, Debug)]
struct Version {
    head: Vec<u8>,
    body: Vec<u8>,
    digest: u64,
    tstamp_secs: u32,
    expires_secs: u32,
    terms: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

struct History {
    random: Random,
    open: Opener,
    dir: tempfile::TempDir,
    fs: Arc<FaultyFs>,
    factory: Box<dyn BackendFactory>,
    store: Arc<dyn Backend>,
    model: BTreeMap<Vec<u8>, Version>,
    now_secs: u64,
    is_durable: bool,
    expires_anything: bool,
    writes: u64,
}

impl History {
    fn new(open: Opener, seed: u64, is_durable: bool) -> Self {
        let dir = scratch_dir();
        let fs = FaultyFs::new(seed);
        let factory = open(&dir.path().join("store"), fs.clone(), NOW_SECS).unwrap();
        let store = factory.open(0).unwrap();
        let random = Random::new(seed + 1);
        Self {
            random,
            open,
            dir,
            fs,
            factory,
            store,
            model: BTreeMap::new(),
            now_secs: NOW_SECS,
            is_durable,
            expires_anything: seed.is_multiple_of(4),
            writes: 0,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let bucket = BUCKETS[self.random.below(3) as usize];
        [bucket, format!("key {}", self.random.below(25)).as_bytes()].concat()
    }

    /// Short terms that are hard to order: empty, with zero bytes, prefixes of each other.
    fn term(&mut self) -> Vec<u8> {
        let bytes = [b"".as_slice(), b"\0", b"a", b"a\0", b"a\0\xff", b"ab", b"b", b"\xff"];
        bytes[self.random.below(8) as usize].to_vec()
    }

    fn put(&mut self) {
        let key = self.key();
        let mut terms = BTreeSet::new();
        for _ in 0..self.random.below(4) {
            let field = FIELDS[self.random.below(2) as usize].as_bytes().to_vec();
            terms.insert((field, self.term()));
        }
        let mut head = if terms.is_empty() { b"plain".to_vec() } else { MARK.to_vec() };
        for (field, term) in &terms {
            head.extend_from_slice(&[field, &b"="[..], term, b"\n"].concat());
        }
        self.writes += 1;
        let value = vec![self.writes as u8; self.random.below(700) as usize];
        let expires = self.expires_anything && self.random.below(6) == 0;
        let expires_secs = if expires { (self.now_secs + self.random.below(20)) as u32 } else { 0 };
        let digest = self.writes << 1;
        let (left, right) = value.split_at(value.len() / 2);
        let tstamp_secs = self.now_secs as u32;
        let (body, has_terms) = (&[left, right], !terms.is_empty());
        let write = Write { key: &key, head: &head, body, digest, tstamp_secs, expires_secs, has_terms };
        let appended = self.store.put(&write).unwrap();
        let old = self.model.insert(key, Version { head, body: value, digest, tstamp_secs, expires_secs, terms });
        // The store may have removed an expired version already, or not.
        if !self.expires_anything {
            assert_eq!(appended.previous, old.map(|old| old.digest));
        }
        assert_eq!(self.store.last_seq(), appended.seq);
    }

    fn is_alive(&self, version: &Version) -> bool {
        version.expires_secs == 0 || u64::from(version.expires_secs) >= self.now_secs
    }

    fn alive(&self, key: &[u8]) -> Option<&Version> {
        self.model.get(key).filter(|version| self.is_alive(version))
    }

    fn delete(&mut self) {
        let key = self.key();
        self.store.delete(&key).unwrap();
        self.model.remove(&key);
        assert!(self.store.get(&key, ReadMode::Blocking).unwrap().is_none());
    }

    fn delete_if(&mut self) {
        let key = self.key();
        let Some((digest, alive)) = self.model.get(&key).map(|old| (old.digest, self.is_alive(old))) else { return };
        assert!(self.store.delete_if(&key, digest + 1).unwrap().is_none());
        let removed = self.store.delete_if(&key, digest).unwrap();
        assert!(removed.is_some() || !alive);
        self.model.remove(&key);
    }

    fn read(&mut self) {
        let key = self.key();
        let expected = self.alive(&key).map(|v| (v.head.clone(), Some(v.body.clone()), v.digest));
        let found = self.store.get(&key, ReadMode::Blocking).unwrap();
        assert_eq!(found.map(|s| (s.head.to_vec(), s.body.map(|b| b.to_vec()), s.digest)), expected);
        let head = self.store.head(&key, ReadMode::Blocking).unwrap();
        assert_eq!(head.map(|s| (s.head.to_vec(), s.digest)), expected.map(|(head, _, digest)| (head, digest)));
    }

    fn fold(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let odd = |key: &[u8]| key.last().is_some_and(|byte| byte % 2 == 1);
        let (scope, detail) = match self.random.below(4) {
            0 => (Scope::ALL, Detail::Keys),
            1 => (Scope::prefix(bucket), Detail::Heads),
            2 => (Scope { prefix: bucket, class: Some(&odd) }, Detail::Objects),
            _ => (Scope { prefix: b"", class: Some(&odd) }, Detail::Heads),
        };
        let count_max = 1 + self.random.below(40) as usize;
        let mut snapshot = self.store.snapshot().unwrap();
        let expected: BTreeMap<Vec<u8>, Version> = self
            .model
            .iter()
            .filter(|(key, version)| scope.includes(key) && self.is_alive(version))
            .map(|(key, version)| (key.clone(), version.clone()))
            .collect();
        // Later writes must not be visible in this fold.
        self.put();
        self.delete();
        let mut found = BTreeMap::new();
        loop {
            let batch = snapshot.next(&scope, detail, count_max).unwrap();
            assert!(batch.len() <= count_max);
            if batch.is_empty() {
                break;
            }
            for entry in batch {
                let expected = expected.get(&entry.key[..]).expect("a key of the moment");
                assert_eq!(entry.digest, expected.digest);
                assert_eq!(entry.stored.is_some(), detail != Detail::Keys);
                if detail == Detail::Objects && self.is_durable {
                    let Version { tstamp_secs, expires_secs, .. } = *expected;
                    let has_terms = !expected.terms.is_empty();
                    assert_eq!(entry.attrs, Some(WriteAttrs { tstamp_secs, expires_secs, has_terms }));
                }
                if let Some(stored) = entry.stored {
                    assert_eq!(stored.head, expected.head);
                    assert_eq!(stored.body.is_some(), detail == Detail::Objects);
                    assert!(stored.body.is_none_or(|body| body == expected.body));
                }
                assert!(found.insert(entry.key.to_vec(), entry.digest).is_none(), "twice");
            }
        }
        assert_eq!(found.len(), expected.len());
    }

    fn ordered_keys(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let ends: Vec<String> = (0..2).map(|_| format!("key {}", self.random.below(25))).collect();
        let bound = |choice: u64, end: usize| match choice {
            0 => Bound::Unbounded,
            1 => Bound::Included(ends[end].as_bytes()),
            _ => Bound::Excluded(ends[end].as_bytes()),
        };
        let (from, to) = (bound(self.random.below(3), 0), bound(self.random.below(3), 1));
        let is_in = |key: &[u8]| {
            let after = match from {
                Bound::Unbounded => true,
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
            };
            after
                && match to {
                    Bound::Unbounded => true,
                    Bound::Included(to) => key <= to,
                    Bound::Excluded(to) => key < to,
                }
        };
        let count_max = 1 + self.random.below(30) as usize;
        let mut snapshot = self.store.ordered_snapshot(bucket).unwrap();
        let found = snapshot.keys_in_order(&KeyRange { bucket, from, to }, count_max).unwrap();
        let expected = self
            .model
            .iter()
            .filter(|(key, version)| key.strip_prefix(bucket).is_some_and(is_in) && self.is_alive(version));
        let expected: Vec<(Vec<u8>, u64)> =
            expected.map(|(key, version)| (key.clone(), version.digest)).take(count_max).collect();
        let found: Vec<(Vec<u8>, u64)> = found.iter().map(|entry| (entry.key.to_vec(), entry.digest)).collect();
        assert_eq!(found, expected);
    }

    fn terms(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let field = FIELDS[self.random.below(2) as usize].as_bytes();
        let (mut from, mut to) = (self.term(), self.term());
        if from > to {
            std::mem::swap(&mut from, &mut to);
        }
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, version) in self.model.iter().filter(|(_, version)| self.is_alive(version)) {
            let Some(key) = key.strip_prefix(bucket) else { continue };
            let terms = version.terms.iter().filter(|(name, term)| name == field && *term >= from && *term <= to);
            expected.extend(terms.map(|(_, term)| (term.clone(), key.to_vec())));
        }
        expected.sort();
        let count_max = 1 + self.random.below(10) as usize;
        let mut snapshot = self.store.ordered_snapshot(bucket).unwrap();
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        loop {
            let last = found.last().cloned();
            let after = last.as_ref().map(|(term, key)| (&term[..], &key[..]));
            let range = TermRange { bucket, field, from: &from, to: &to, after };
            let page = snapshot.terms_in_order(&range, count_max).unwrap();
            assert!(page.len() <= count_max);
            if page.is_empty() {
                break;
            }
            found.extend(page.into_iter().map(|entry| (entry.term.to_vec(), entry.key.to_vec())));
        }
        assert_eq!(found, expected);
    }

    fn drop_scope(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let even = |key: &[u8]| key.last().is_some_and(|byte| byte % 2 == 0);
        let scope = Scope { prefix: bucket, class: Some(&even) };
        let expected = self.model.iter().filter(|(key, version)| scope.includes(key) && self.is_alive(version)).count();
        assert_eq!(self.store.drop_scope(&scope).unwrap(), expected as u64);
        let now_secs = self.now_secs;
        let is_alive = |v: &Version| v.expires_secs == 0 || u64::from(v.expires_secs) >= now_secs;
        self.model.retain(|key, version| !(scope.includes(key) && is_alive(version)));
    }

    fn maintain(&mut self) {
        self.now_secs += self.random.below(8);
        for _ in 0..1 + self.random.below(3) {
            self.store.maintain(self.now_secs).unwrap();
        }
    }

    fn hand_over(&mut self) {
        self.store.close_to_writes(true);
        let write =
            Write { key: b"k", head: b"h", body: &[], digest: 0, tstamp_secs: 0, expires_secs: 0, has_terms: false };
        assert!(matches!(self.store.put(&write), Err(StorageError::ClosedToWrites)));
        self.read();
        self.store.close_to_writes(false);
    }

    fn restart(&mut self) {
        // The random number is drawn on every backend, so that a seed gives the same history on all
        // of them.
        let clean = self.random.below(2) == 0;
        if !self.is_durable {
            return;
        }
        let status = self.store.status();
        if clean {
            self.store.close().unwrap();
        }
        // The factory holds the lock of its root, so it must be dropped first.
        let nothing = MemoryFactory::default();
        self.store = nothing.open(0).unwrap();
        self.factory = Box::new(nothing);
        self.factory = (self.open)(&self.dir.path().join("store"), self.fs.clone(), self.now_secs).unwrap();
        self.store = self.factory.open(0).unwrap();
        let now = self.store.status();
        assert_eq!((now.lost_ranges, now.torn_bytes), (0, 0));
        // Expired versions are counted until they are removed.
        if !self.expires_anything {
            assert_eq!(now.keys, status.keys);
        }
        assert!(self.store.complete());
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..40 => self.put(),
            40..50 => self.delete(),
            50..54 => self.delete_if(),
            54..64 => self.read(),
            64..70 => self.fold(),
            70..76 => self.ordered_keys(),
            76..84 => self.terms(),
            84..92 => self.maintain(),
            92..94 => self.drop_scope(),
            94 => self.hand_over(),
            95 => self.store.sync(self.store.last_seq()).unwrap(),
            _ => self.restart(),
        }
    }
}

fn histories(open: Opener, is_durable: bool) {
    let count = std::env::var("OMBAK_HISTORIES").map_or(HISTORIES, |count| count.parse().expect("a number"));
    for seed in 0..count {
        let mut history = History::new(open, seed, is_durable);
        for step in 0..STEPS {
            let before = std::panic::AssertUnwindSafe(&mut history);
            if let Err(panic) = std::panic::catch_unwind(move || { before }.step()) {
                eprintln!("history {seed}, step {step}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn memory_answers_as_the_model() {
    histories(memory, false);
}

#[test]
fn bitcask_answers_as_the_model() {
    histories(bitcask, true);
}

#[test]
fn lazy_bitcask_answers_as_the_model() {
    histories(bitcask_lazy, true);
}

#[test]
fn leveled_answers_as_the_model() {
    histories(leveled, true);
}

#[test]
fn lazy_leveled_answers_as_the_model() {
    histories(leveled_lazy, true);
}

#[test]
fn compacting_bitcask_answers_as_the_model() {
    histories(bitcask_compacting, true);
}

#[test]
fn compressing_leveled_answers_as_the_model() {
    histories(leveled_compressing, true);
}

#[test]
fn multi_answers_as_the_model() {
    histories(multi, true);
}

#[test]
fn leveldb_answers_as_the_model() {
    histories(leveldb, true);
}
