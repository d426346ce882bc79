//! The same random history on every backend and set of options must give the answers of a model.
//! Histories have puts, deletes, folds, ordered keys, index queries in pages, expiry, maintenance,
//! and restarts with and without a close.
//!
//! Each history also keeps a tree over the digests, as a replica does: an XOR that learns only from
//! receipts and from the observer of drops. It must always equal the XOR over a full fold. In
//! stores with a limit of age or size, the model learns from the observer what the store removed,
//! and checks that it was allowed to.

mod reads;
mod stores;
mod threads;

use crate::common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{
    Appended, Backend, BackendFactory, Detail, DropObserver, IndexedVersion, MemoryFactory, Previous, ReadMode, Scope,
    StorageError, Write, key_hash,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stores::*;

/// Histories for each backend and set of options, unless `OMBAK_HISTORIES` gives the number.
const HISTORIES: u64 = 250;
const STEPS: u64 = 160;
const FIELDS: [&str; 2] = ["f_bin", "g_int"];

#[derive(Clone, Debug)]
struct Version {
    head: Vec<u8>,
    body: Vec<u8>,
    digest: u64,
    tstamp_secs: u32,
    /// As the writer asked.
    expires_secs: u32,
    /// With the age limit of the store; 0: never.
    ends_secs: u32,
    seq: u64,
    terms: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

/// Remembers what a store has removed by itself.
#[derive(Default)]
struct Drops(Mutex<Vec<(Vec<u8>, u64)>>);

impl DropObserver for Drops {
    fn dropped(&self, key: &[u8], version: IndexedVersion) {
        self.0.lock().push((key.to_vec(), version.digest));
    }
}

/// What a version adds to a tree.
fn leaf(key: &[u8], digest: u64) -> u64 {
    key_hash(&[key, &digest.to_le_bytes()].concat())
}

struct History {
    random: Random,
    open: Opener,
    dir: tempfile::TempDir,
    fs: Arc<FaultyFs>,
    factory: Box<dyn BackendFactory>,
    store: Arc<dyn Backend>,
    /// The versions that the store holds, expired ones included.
    model: BTreeMap<Vec<u8>, Version>,
    /// The keys whose bodies were extended.
    extended: BTreeSet<Vec<u8>>,
    /// Versions that the store forgot because of their age. A start may find them again.
    forgotten: BTreeMap<Vec<u8>, Version>,
    drops: Arc<Drops>,
    /// The tree: an XOR of leaves.
    tree: u64,
    limit: Limit,
    now_secs: u64,
    is_durable: bool,
    expires_anything: bool,
    writes: u64,
}

impl History {
    fn new(open: Opener, seed: u64, is_durable: bool, limit: Limit) -> Self {
        let dir = scratch_dir();
        let fs = FaultyFs::new(seed);
        let factory = open(&dir.path().join("store"), fs.clone(), NOW_SECS).unwrap();
        let store = factory.open(0).unwrap();
        let drops = Arc::<Drops>::default();
        assert!(store.observe_drops(drops.clone()));
        assert!(!store.observe_drops(drops.clone()), "it has one");
        let random = Random::new(seed + 1);
        Self {
            random,
            open,
            dir,
            fs,
            factory,
            store,
            model: BTreeMap::new(),
            extended: BTreeSet::new(),
            forgotten: BTreeMap::new(),
            drops,
            tree: 0,
            limit,
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
        let is_over_extended = self.extended.remove(&key);
        let put = if is_over_extended { self.store.put_over_extended(&write) } else { self.store.put(&write) };
        let appended = put.unwrap();
        let seq = appended.seq;
        let ends_secs = match (self.limit, expires_secs) {
            (Limit::Age, 0) => tstamp_secs + AGE_SECS,
            (Limit::Age, wanted) => wanted.min(tstamp_secs + AGE_SECS),
            (Limit::None | Limit::Size, wanted) => wanted,
        };
        let new = Version { head, body: value, digest, tstamp_secs, expires_secs, ends_secs, seq, terms };
        self.tree ^= leaf(&key, digest);
        self.forgotten.remove(&key);
        let old = self.model.insert(key.clone(), new);
        self.apply_receipt(&key, Some(appended), old.as_ref());
        assert!(self.store.last_seq() == seq || is_over_extended, "only parts are removed after a put");
        self.apply_drops(false);
    }

    /// Adds bytes to a body, sometimes so many that it gets parts.
    fn extend(&mut self) {
        let (key, small) = (self.key(), self.limit == Limit::Size || self.random.below(3) > 0);
        let bytes = self.random.below(if small { 300 } else { 12_000 }) as usize;
        let bytes_max = if self.limit == Limit::Size { 700 } else { 60_000 };
        let Some(old) = self.alive(&key).filter(|old| old.body.len() + bytes <= bytes_max).cloned() else { return };
        self.writes += 1;
        let piece = vec![self.writes as u8; bytes];
        let (left, right) = piece.split_at(bytes / 3);
        let digest = self.writes << 1;
        let Version { head, expires_secs, terms, .. } = &old;
        let write = Write {
            key: &key,
            head,
            body: &[left, right],
            digest,
            tstamp_secs: old.tstamp_secs,
            expires_secs: *expires_secs,
            has_terms: !terms.is_empty(),
        };
        assert!(matches!(
            self.store.extend(&write, old.body.len() as u64 + 1, ReadMode::Blocking),
            Err(StorageError::Incomplete(_))
        ));
        let appended = self.store.extend(&write, old.body.len() as u64, ReadMode::Blocking).unwrap();
        let body = [&old.body[..], &piece].concat();
        let new = Version { body, digest, seq: appended.seq, ..old };
        self.extended.insert(key.clone());
        self.tree ^= leaf(&key, digest);
        let old = self.model.insert(key.clone(), new);
        self.apply_receipt(&key, Some(appended), old.as_ref());
        self.apply_drops(false);
    }

    /// Takes the version that an append replaced or removed out of the tree.
    fn apply_receipt(&mut self, key: &[u8], receipt: Option<Appended>, old: Option<&Version>) {
        let told = receipt.map_or(Previous::Nothing, |receipt| receipt.previous);
        let named = |old: &Version| IndexedVersion { digest: old.digest, seq: old.seq, expires_secs: old.ends_secs };
        assert_eq!(told, old.map_or(Previous::Nothing, |old| Previous::Version(named(old))));
        let previous = told.digest();
        self.tree ^= previous.map_or(0, |digest| leaf(key, digest));
    }

    /// Takes what the store has removed by itself out of the model and the tree. `by_age`: no
    /// record in the store says that it is gone.
    fn apply_drops(&mut self, by_age: bool) -> u64 {
        let drops = std::mem::take(&mut *self.drops.0.lock());
        for (key, digest) in &drops {
            let old = self.model.remove(key).expect("a drop of a version that is there");
            assert_eq!(old.digest, *digest);
            self.tree ^= leaf(key, *digest);
            if by_age {
                self.forgotten.insert(key.clone(), old);
            }
        }
        drops.len() as u64
    }

    /// All versions of the store, as a fold over everything gives them.
    fn everything(&self) -> BTreeMap<Vec<u8>, u64> {
        let (mut found, mut snapshot) = (BTreeMap::new(), self.store.snapshot().unwrap());
        loop {
            let batch = snapshot.next(&Scope::EVERYTHING, Detail::Keys, 17).unwrap();
            if batch.is_empty() {
                return found;
            }
            found.extend(batch.into_iter().map(|entry| (entry.key.to_vec(), entry.digest)));
        }
    }

    /// The tree must be what a fold computes.
    fn check_tree(&self) {
        let found = self.everything();
        let expected: BTreeMap<_, _> = self.model.iter().map(|(key, version)| (key.clone(), version.digest)).collect();
        assert_eq!(found, expected);
        assert_eq!(found.iter().fold(0, |tree, (key, digest)| tree ^ leaf(key, *digest)), self.tree);
    }

    fn is_alive(&self, version: &Version) -> bool {
        version.ends_secs == 0 || u64::from(version.ends_secs) >= self.now_secs
    }

    fn alive(&self, key: &[u8]) -> Option<&Version> {
        self.model.get(key).filter(|version| self.is_alive(version))
    }

    fn delete(&mut self) {
        let key = self.key();
        let receipt = self.store.delete(&key).unwrap();
        let old = self.model.remove(&key);
        self.apply_receipt(&key, receipt, old.as_ref());
        assert!(self.store.get(&key, ReadMode::Blocking).unwrap().is_none());
    }

    fn delete_if(&mut self) {
        let key = self.key();
        let Some(digest) = self.model.get(&key).map(|old| old.digest) else { return };
        assert!(self.store.delete_if(&key, digest + 1).unwrap().is_none());
        assert!(!self.store.drop_if(&key, digest + 1).unwrap());
        if self.random.below(2) == 0 {
            let receipt = self.store.delete_if(&key, digest).unwrap();
            let old = self.model.remove(&key);
            self.apply_receipt(&key, receipt, old.as_ref());
        } else {
            assert!(self.store.drop_if(&key, digest).unwrap());
            assert_eq!(self.apply_drops(false), 1);
        }
    }

    fn drop_scope(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let even = |key: &[u8]| key.last().is_some_and(|byte| byte % 2 == 0);
        let scope = Scope { class: Some(&even), ..Scope::prefix(bucket) };
        let expected = self.model.keys().filter(|key| scope.includes(key)).count() as u64;
        assert_eq!(self.store.drop_scope(&scope).unwrap(), expected);
        assert_eq!(self.apply_drops(false), expected);
        assert!(!self.model.keys().any(|key| scope.includes(key)));
    }

    fn maintain(&mut self) {
        self.now_secs += self.random.below(8);
        for _ in 0..1 + self.random.below(3) {
            self.store.maintain(self.now_secs).unwrap();
            let is_wrong = |(key, _): &(Vec<u8>, u64)| self.limit != Limit::Age || self.alive(key).is_some();
            assert!(!self.drops.0.lock().iter().any(is_wrong), "a version that must stay is gone");
            self.apply_drops(true);
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
        // Versions that were too old may be there again until a sweep.
        if self.limit == Limit::Age {
            self.find_forgotten();
        } else {
            assert_eq!(now.keys, status.keys);
        }
        assert!(self.store.complete());
        assert!(self.store.observe_drops(self.drops.clone()));
    }

    /// A store with a limit of age does not record which versions it has forgotten. A start may
    /// find them again, but none that is older, and only as expired ones.
    fn find_forgotten(&mut self) {
        for (key, digest) in self.everything() {
            if !self.model.contains_key(&key) {
                let version = self.forgotten.remove(&key).expect("a version that was forgotten");
                assert_eq!(version.digest, digest);
                assert!(!self.is_alive(&version));
                self.model.insert(key, version);
            }
        }
        self.tree = self.model.iter().fold(0, |tree, (key, version)| tree ^ leaf(key, version.digest));
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..30 => self.put(),
            30..40 => self.extend(),
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
        assert_eq!(self.apply_drops(false), 0, "every step takes its drops");
        if self.random.below(8) == 0 {
            self.check_tree();
        }
    }
}

fn histories(open: Opener, is_durable: bool) {
    limited_histories(open, is_durable, Limit::None);
}

fn limited_histories(open: Opener, is_durable: bool, limit: Limit) {
    let count = std::env::var("OMBAK_HISTORIES").map_or(HISTORIES, |count| count.parse().expect("a number"));
    for seed in 0..count {
        let mut history = History::new(open, seed, is_durable, limit);
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
fn aging_memory_answers_as_the_model() {
    limited_histories(aging_memory, false, Limit::Age);
}

#[test]
fn small_memory_answers_as_the_model() {
    limited_histories(small_memory, false, Limit::Size);
}

#[test]
fn aging_bitcask_answers_as_the_model() {
    limited_histories(aging_bitcask, true, Limit::Age);
}

#[test]
fn aging_leveled_answers_as_the_model() {
    limited_histories(aging_leveled, true, Limit::Age);
}

#[test]
fn aging_leveldb_answers_as_the_model() {
    limited_histories(aging_leveldb, true, Limit::Age);
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
