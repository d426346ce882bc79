//! Verification and repair of stores. A verification finds every damage that a reader would see and
//! changes nothing. After a repair, the store serves everything that was intact.

use crate::common::*;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::verify::{Damage, Effect, Finding, PartitionReport, StoreKind, StoreRoot, StoreRootConfig};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Compression, HeadTerms, InventoryConfig, JournalConfig, LedgerConfig,
    LeveldbFactory, LeveledFactory, MergeConfig, ReadMode, StorageError, SyncStrategy, TermRange, Write,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KINDS: [StoreKind; 3] = [StoreKind::Bitcask, StoreKind::Leveled, StoreKind::Leveldb];
const BUCKET: &[u8] = b"\x02\0\x01b";
const FIELD: &[u8] = b"f_bin";

/// Heads in these tests: a mark and then a term.
struct MarkTerms;

impl HeadTerms for MarkTerms {
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some(term) = head.strip_prefix(b"term ") {
            visit(FIELD, term);
        }
    }
}

fn journal(now_secs: u64) -> JournalConfig {
    JournalConfig {
        sync: SyncStrategy::None,
        file_bytes_max: 4096,
        merge: MergeConfig {
            check_interval_secs: 0,
            trigger_fragmentation_percent: 50,
            threshold_fragmentation_percent: 40,
            threshold_small_file_bytes: 0,
            io_bytes_per_sec: 1 << 40,
            ..MergeConfig::default()
        },
        compression: Compression::Lz4,
        opened_at_secs: now_secs,
        open_files_max: 4,
        ..JournalConfig::default()
    }
}

fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 4 << 10, table_bytes: 4 << 10, ..LedgerConfig::default() }
}

fn factory(kind: StoreKind, dir: &Path) -> Result<Box<dyn BackendFactory>, StorageError> {
    factory_on(Arc::new(RealFs), kind, dir)
}

fn factory_on(fs: Arc<dyn FileSystem>, kind: StoreKind, dir: &Path) -> Result<Box<dyn BackendFactory>, StorageError> {
    let (journal, terms) = (journal(NOW_SECS), Arc::new(MarkTerms));
    Ok(match kind {
        StoreKind::Bitcask => Box::new(BitcaskFactory::with_terms(fs, dir, journal, &ledger(), terms)?),
        StoreKind::Leveled => Box::new(LeveledFactory::new(fs, dir, journal, ledger(), terms)?),
        StoreKind::Leveldb => Box::new(LeveldbFactory::new(fs, dir, journal, ledger(), terms)?),
    })
}

fn root(kind: StoreKind, dir: &Path) -> StoreRoot {
    root_on(Arc::new(RealFs), kind, dir).unwrap()
}

fn root_on(fs: Arc<dyn FileSystem>, kind: StoreKind, dir: &Path) -> Result<StoreRoot, StorageError> {
    let config = StoreRootConfig {
        kind,
        journal: journal(NOW_SECS),
        ledger: ledger(),
        terms: Arc::new(MarkTerms),
        inventory: InventoryConfig::default(),
    };
    StoreRoot::open(fs, dir, config).map(|root| root.expect("a directory"))
}

fn verify(kind: StoreKind, dir: &Path) -> PartitionReport {
    let report = root(kind, dir).verify(0, &mut |_| true).unwrap();
    assert!(report.complete);
    report
}

#[derive(Clone, Debug, PartialEq)]
struct Version {
    head: Vec<u8>,
    body: Vec<u8>,
    seq: u64,
}

/// What a store should answer now, and everything that it ever answered.
#[derive(Clone, Default)]
struct Model {
    now: BTreeMap<Vec<u8>, Version>,
    ever: BTreeMap<Vec<u8>, Vec<Version>>,
}

/// A store with a history.
struct TestSetup {
    dir: tempfile::TempDir,
    model: Model,
}

impl TestSetup {
    fn new(kind: StoreKind, seed: u64, is_closed: bool) -> Self {
        Self::on(Arc::new(RealFs), kind, seed, is_closed)
    }

    fn on(fs: Arc<dyn FileSystem>, kind: StoreKind, seed: u64, is_closed: bool) -> Self {
        let mut setup = Self { dir: scratch_dir(), model: Model::default() };
        let mut random = Random::new(seed);
        for round in 0..4 {
            let factory = factory_on(fs.clone(), kind, setup.path()).unwrap();
            let store = factory.open(0).unwrap();
            for _ in 0..70 {
                setup.step(&*store, &mut random);
            }
            store.ordered_snapshot(BUCKET).unwrap();
            for _ in 0..6 {
                store.maintain(NOW_SECS + round).unwrap();
            }
            if round < 3 || is_closed {
                store.close().unwrap();
            } else {
                setup.step(&*store, &mut random);
                store.sync(store.last_seq()).unwrap();
            }
        }
        setup
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn step(&mut self, store: &dyn Backend, random: &mut Random) {
        let key = [BUCKET, format!("key {:02}", random.below(60)).as_bytes()].concat();
        if random.below(6) == 0 {
            store.delete(&key).unwrap();
            self.model.now.remove(&key);
            return;
        }
        let has_terms = random.below(2) == 0;
        let number = random.below(1 << 20);
        let head = if has_terms { format!("term {}", number % 10) } else { format!("plain {number}") }.into_bytes();
        let body = format!("{number} ").repeat(random.below(80) as usize).into_bytes();
        let digest = digest_of(&body);
        let expires_secs = if random.below(4) == 0 { NOW_SECS as u32 + 1000 } else { 0 };
        let tstamp_secs = NOW_SECS as u32;
        let write = Write { key: &key, head: &head, body: &[&body], digest, tstamp_secs, expires_secs, has_terms };
        let seq = store.put(&write).unwrap().seq;
        let version = Version { head, body, seq };
        self.model.ever.entry(key.clone()).or_default().push(version.clone());
        self.model.now.insert(key, version);
    }

    /// A copy of the store's files.
    fn copy(&self) -> tempfile::TempDir {
        let copy = scratch_dir();
        copy_dir(self.path(), copy.path());
        copy
    }
}

/// All files with their contents.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

/// Files with data, without locks.
fn data_files(dir: &Path) -> Vec<(PathBuf, u64)> {
    let all = contents(dir).into_iter().filter(|(path, bytes)| !path.ends_with("lock") && !bytes.is_empty());
    all.map(|(path, bytes)| (path, bytes.len() as u64)).collect()
}

/// Whether a start removes the file without reading it: a partial hint file, or a list of tables
/// that was replaced.
fn is_debris(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    let Some(number) = name.strip_prefix('v').and_then(|number| number.parse::<u64>().ok()) else {
        return name.ends_with(".tmp");
    };
    let current = fs::read(path.with_file_name("current")).unwrap();
    current[..8] != number.to_le_bytes()
}

fn flip(path: &Path, bit: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

/// The answers of a store: all keys and all terms, with the errors that reads give.
type Answers = (BTreeMap<Vec<u8>, Result<Option<Version>, String>>, Result<BTreeSet<(Vec<u8>, Vec<u8>)>, String>);

fn answers(kind: StoreKind, dir: &Path, keys: impl Iterator<Item = Vec<u8>>) -> Result<(Answers, bool), String> {
    answers_on(Arc::new(RealFs), kind, dir, keys)
}

/// The answers of a store after an operator has accepted a loss.
fn answers_accepting_loss(
    kind: StoreKind,
    dir: &Path,
    keys: impl Iterator<Item = Vec<u8>>,
) -> Result<(Answers, bool), String> {
    let accepting = InventoryConfig { accepts_loss: true, ..InventoryConfig::default() };
    let (fs, journal, terms) = (Arc::new(RealFs), journal(NOW_SECS), Arc::new(MarkTerms));
    let opened = match kind {
        StoreKind::Bitcask => BitcaskFactory::with_terms(fs, dir, journal, &ledger(), terms)
            .and_then(|factory| factory.with_inventory(accepting).open(0)),
        StoreKind::Leveled => LeveledFactory::new(fs, dir, journal, ledger(), terms)
            .and_then(|factory| factory.with_inventory(accepting).open(0)),
        StoreKind::Leveldb => LeveldbFactory::new(fs, dir, journal, ledger(), terms)
            .and_then(|factory| factory.with_inventory(accepting).open(0)),
    };
    Ok(answers_of(&*opened.map_err(|error| error.to_string())?, keys))
}

fn answers_on(
    fs: Arc<dyn FileSystem>,
    kind: StoreKind,
    dir: &Path,
    keys: impl Iterator<Item = Vec<u8>>,
) -> Result<(Answers, bool), String> {
    let factory = factory_on(fs, kind, dir).map_err(|error| error.to_string())?;
    let store = factory.open(0).map_err(|error| error.to_string())?;
    Ok(answers_of(&*store, keys))
}

fn answers_of(store: &dyn Backend, keys: impl Iterator<Item = Vec<u8>>) -> (Answers, bool) {
    let read = |key: &[u8]| match store.get(key, ReadMode::Blocking) {
        Ok(found) => Ok(found.map(|found| {
            let (head, body) = (found.head.to_vec(), found.body.unwrap().to_vec());
            let version = Version { head, body, seq: found.seq };
            assert_eq!(found.digest, digest_of(&version.body));
            version
        })),
        Err(error) => Err(error.to_string()),
    };
    let values = keys.map(|key| (key.clone(), read(&key))).collect();
    let terms = store.ordered_snapshot(BUCKET).and_then(|mut snapshot| {
        let range = TermRange { bucket: BUCKET, field: FIELD, from: b"", to: b"\xff", after: None };
        let entries = snapshot.terms_in_order(&range, 10_000)?;
        Ok(entries.into_iter().map(|entry| (entry.term.to_vec(), entry.key.to_vec())).collect())
    });
    let complete = store.complete();
    ((values, terms.map_err(|error| error.to_string())), complete)
}

fn expected(model: &Model) -> Answers {
    let values = model.ever.keys().map(|key| (key.clone(), Ok(model.now.get(key).cloned()))).collect();
    let terms = model.now.iter().filter_map(|(key, version)| {
        let term = version.head.strip_prefix(b"term ")?;
        Some((term.to_vec(), key[BUCKET.len()..].to_vec()))
    });
    (values, Ok(terms.collect()))
}

#[test]
fn whole_stores_are_whole_and_looking_changes_nothing() {
    for kind in KINDS {
        for seed in 0..12 {
            let setup = TestSetup::new(kind, seed, seed % 2 == 0);
            drop(root(kind, setup.path()));
            let before = contents(setup.path());
            let report = verify(kind, setup.path());
            assert_eq!(report.findings, [], "{kind:?} {seed}");
            assert!(contents(setup.path()) == before, "{kind:?} {seed}: looking changed something");
            if seed % 2 == 0 {
                assert_eq!(report.keys, setup.model.now.len() as u64, "{kind:?} {seed}");
            }
            assert!(kind == StoreKind::Leveldb || report.records >= report.keys);
            let (found, complete) = answers(kind, setup.path(), setup.model.ever.keys().cloned()).unwrap();
            assert!(found == expected(&setup.model) && complete, "{kind:?} {seed}");
        }
    }
}

/// A start after a crash brings the ordered index up to date, and does not read versions that have
/// expired by then.
#[test]
fn what_expired_before_an_order_was_brought_up_to_date_is_no_damage() {
    let dir = scratch_dir();
    let open = |now_secs: u64| {
        let (journal, terms) = (journal(now_secs), Arc::new(MarkTerms));
        BitcaskFactory::with_terms(Arc::new(RealFs), dir.path(), journal, &ledger(), terms).unwrap()
    };
    let put = |store: &dyn Backend, key: &str, expires_secs: u32| {
        let (key, tstamp_secs) = ([BUCKET, key.as_bytes()].concat(), NOW_SECS as u32);
        let write = Write {
            key: &key,
            head: b"term x",
            body: &[b"body"],
            digest: 1,
            tstamp_secs,
            expires_secs,
            has_terms: true,
        };
        store.put(&write).unwrap();
    };
    {
        let factory = open(NOW_SECS);
        let store = factory.open(0).unwrap();
        put(&*store, "stays", 0);
        store.ordered_snapshot(BUCKET).unwrap();
        store.close().unwrap();
    }
    {
        let factory = open(NOW_SECS);
        let store = factory.open(0).unwrap();
        put(&*store, "ends", NOW_SECS as u32 + 1);
        store.sync(store.last_seq()).unwrap();
    }
    {
        let factory = open(NOW_SECS + 10);
        let store = factory.open(0).unwrap();
        store.ordered_snapshot(BUCKET).unwrap();
        store.close().unwrap();
    }
    let config = StoreRootConfig {
        kind: StoreKind::Bitcask,
        journal: journal(NOW_SECS + 20),
        ledger: ledger(),
        terms: Arc::new(MarkTerms),
        inventory: InventoryConfig::default(),
    };
    let root = StoreRoot::open(Arc::new(RealFs), dir.path(), config).unwrap().unwrap();
    assert_eq!(root.verify(0, &mut |_| true).unwrap().findings, []);
}

#[test]
fn every_flip_that_readers_see_is_found() {
    for kind in KINDS {
        let mut effects = BTreeMap::new();
        for seed in 0..4 {
            let setup = TestSetup::new(kind, seed, seed % 2 == 0);
            let files = data_files(setup.path());
            let mut random = Random::new(seed + 77);
            for round in 0..60 {
                let (path, length) = &files[round % files.len()];
                let bit = random.below(length * 8);
                let copy = setup.copy();
                let path = copy.path().join(path.strip_prefix(setup.path()).unwrap());
                flip(&path, bit);
                let report = verify(kind, copy.path());
                let found = answers(kind, copy.path(), setup.model.ever.keys().cloned());
                let right = found.as_ref().is_ok_and(|(found, _)| *found == expected(&setup.model));
                let place = format!("{kind:?}, seed {seed}, {}, bit {bit}", path.display());
                // After a kill, nothing shows that the last records had been synced.
                let may_be_torn = seed % 2 == 1 && report.torn_bytes > 0;
                assert!(right || report.damaged > 0 || may_be_torn, "{place}: not found");
                assert!(report.damaged > 0 || may_be_torn || is_debris(&path), "{place}: not reported");
                report.findings.iter().for_each(|f| *effects.entry(f.effect.name()).or_insert(0) += 1);
                let is_shut = report.findings.iter().any(|finding| finding.effect == Effect::DoesNotOpen);
                assert!(found.is_ok() || is_shut, "{place}: {:?} {:?}", found.err(), report.findings);
                if let Ok(((values, _), _)) = found {
                    let failing = values.iter().filter(|(_, value)| value.is_err()).map(|(key, _)| key);
                    for key in failing {
                        let named =
                            |f: &ombak_storage::verify::Finding| f.key.as_deref().is_none_or(|named| named == key);
                        assert!(report.findings.iter().any(named), "{place}: {key:?} fails: {:?}", report.findings);
                    }
                }
            }
        }
        println!("{kind:?}: {effects:?}");
    }
}

/// A file that takes no more appends gets its hint file later. Until then only the file after it
/// shows that its last record was synced.
#[test]
fn damage_to_the_last_record_before_the_next_file_is_known() {
    for kind in KINDS {
        for in_body in [false, true] {
            let dir = scratch_dir();
            let store = factory(kind, dir.path()).unwrap().open(0).unwrap();
            for number in 0..3 {
                // Two of these fill a file.
                put_random(&*store, number, 2500);
            }
            store.sync(store.last_seq()).unwrap();
            // A kill: the copy has no hint files.
            let copy = scratch_dir();
            copy_dir(dir.path(), copy.path());
            let files = journal_files(copy.path());
            assert_eq!(files.len(), 3, "{files:?}");
            let bytes = fs::read(&files[1]).unwrap();
            let name = key_of(1);
            let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
            flip(&files[1], (at + if in_body { 200 } else { 2 }) as u64 * 8);
            let place = format!("{kind:?}, body {in_body}");
            let report = verify(kind, copy.path());
            assert!(report.damaged > 0 && report.torn_bytes == 0, "{place}: {report:?}");
            let ((values, _), complete) = answers(kind, copy.path(), (0..3).map(key_of)).unwrap();
            assert!(values[&key_of(0)].is_ok() && values[&key_of(2)].is_ok(), "{place}");
            assert!(values[&key_of(1)].is_err() || !complete, "{place}: silent");
        }
    }
}

fn key_of(number: usize) -> Vec<u8> {
    [BUCKET, format!("key {number:02}").as_bytes()].concat()
}

/// Puts a value that lz4 cannot shorten by much.
fn put_random(store: &dyn Backend, number: usize, length: usize) {
    let mut random = Random::new(number as u64);
    let body: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    let (key, digest, tstamp_secs) = (key_of(number), digest_of(&body), NOW_SECS as u32);
    let write =
        Write { key: &key, head: b"plain", body: &[&body], digest, tstamp_secs, expires_secs: 0, has_terms: false };
    store.put(&write).unwrap();
}

/// The data files in a directory, in the order of their ids.
fn journal_files(dir: &Path) -> Vec<PathBuf> {
    let files = data_files(dir).into_iter().map(|(path, _)| path);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "data")).collect()
}

/// The inventory promises the length up to which the last file was synced.
#[test]
fn damage_to_a_promised_body_is_known() {
    for kind in [StoreKind::Bitcask, StoreKind::Leveled] {
        let dir = scratch_dir();
        let store = factory(kind, dir.path()).unwrap().open(0).unwrap();
        put_random(&*store, 0, 100);
        put_random(&*store, 1, 100);
        store.sync(store.last_seq()).unwrap();
        for _ in 0..3 {
            store.maintain(NOW_SECS).unwrap();
        }
        let copy = scratch_dir();
        copy_dir(dir.path(), copy.path());
        let [file] = &journal_files(copy.path())[..] else { panic!("one file") };
        flip(file, (fs::metadata(file).unwrap().len() - 3) * 8);
        let report = verify(kind, copy.path());
        assert!(report.damaged > 0 && report.torn_bytes == 0, "{kind:?}: {report:?}");
        let ((values, _), complete) = answers(kind, copy.path(), (0..2).map(key_of)).unwrap();
        assert!(values[&key_of(0)].is_ok(), "{kind:?}");
        assert!(values[&key_of(1)].is_err() || !complete, "{kind:?}: silent");
    }
}

/// The output of a merge says nothing of the file that is written to meanwhile.
#[test]
fn a_torn_write_before_the_output_of_a_merge_stays_a_torn_write() {
    for kind in [StoreKind::Bitcask, StoreKind::Leveled] {
        let dir = scratch_dir();
        let store = factory(kind, dir.path()).unwrap().open(0).unwrap();
        // Three of these fill a file. Of the first file, only one is still current.
        for number in [0, 1, 2, 0, 1, 3] {
            put_random(&*store, number, 1200);
        }
        put_random(&*store, 4, 10);
        store.sync(store.last_seq()).unwrap();
        let active = journal_files(dir.path()).pop().unwrap();
        for _ in 0..20 {
            store.maintain(NOW_SECS).unwrap();
        }
        let copy = scratch_dir();
        copy_dir(dir.path(), copy.path());
        let torn = copy.path().join(active.strip_prefix(dir.path()).unwrap());
        assert!(store.status().merges > 0 && journal_files(copy.path()).last() > Some(&torn), "{kind:?}");
        let mut bytes = fs::read(&torn).unwrap();
        bytes.extend_from_within(bytes.len() - 20..);
        fs::write(&torn, bytes).unwrap();
        let report = verify(kind, copy.path());
        assert!(report.damaged == 0 && report.torn_bytes == 20, "{kind:?}: {report:?}");
        let ((values, _), complete) = answers(kind, copy.path(), (0..5).map(key_of)).unwrap();
        assert!(complete && values.values().all(|value| matches!(value, Ok(Some(_)))), "{kind:?}");
    }
}

/// Checks the answers of a repaired store. Each key must have its right value. If the store says
/// that something is missing, a key may have an older version or none. The index entries must match
/// the values. Returns the keys that differ.
fn check_repaired(found: &Answers, complete: bool, model: &Model, place: &str) -> Vec<Vec<u8>> {
    let (values, terms) = found;
    let mut differing = Vec::new();
    let mut expected_terms = BTreeSet::new();
    for (key, value) in values {
        let value = value.as_ref().unwrap_or_else(|error| panic!("{place}: {key:?}: {error}"));
        if value.as_ref() != model.now.get(key) {
            let is_old = value.as_ref().is_none_or(|value| model.ever[key].contains(value));
            assert!(is_old, "{place}: what nobody wrote");
            differing.push(key.clone());
        }
        if let Some(term) = value.as_ref().and_then(|value| value.head.strip_prefix(b"term ")) {
            expected_terms.insert((term.to_vec(), key[BUCKET.len()..].to_vec()));
        }
    }
    assert_eq!(*terms, Ok(expected_terms), "{place}");
    assert!(differing.is_empty() || !complete, "{place}: lost, and nothing says so");
    differing
}

#[test]
fn a_repaired_store_serves_all_that_was_whole() {
    for kind in KINDS {
        let (mut repairs, mut lost) = (0, 0);
        for seed in 0..5 {
            let setup = TestSetup::new(kind, seed, seed % 2 == 0);
            let files = data_files(setup.path());
            let mut random = Random::new(seed + 1077);
            for round in 0..50 {
                let (path, length) = &files[round % files.len()];
                let bit = random.below(length * 8);
                let copy = setup.copy();
                let path = copy.path().join(path.strip_prefix(setup.path()).unwrap());
                flip(&path, bit);
                let place = format!("{kind:?}, seed {seed}, {}, bit {bit}", path.display());
                let (before, after) = root(kind, copy.path()).repair(0, &mut |_| true).unwrap();
                assert_eq!(after.findings, [], "{place}: {before:?}");
                if before.damaged == 0 {
                    continue;
                }
                repairs += 1;
                assert_eq!(verify(kind, copy.path()).findings, [], "{place}");
                assert!(copy.path().join("quarantine").is_dir());
                let keys = || setup.model.ever.keys().cloned();
                let (found, complete) = answers(kind, copy.path(), keys()).unwrap_or_else(|e| panic!("{place}: {e}"));
                let differing = check_repaired(&found, complete, &setup.model, &place);
                lost += differing.len();
                let may_be =
                    |key: &Vec<u8>| before.findings.iter().any(|f| f.key.as_ref().is_none_or(|named| named == key));
                assert!(differing.iter().all(may_be), "{place}: {differing:?} {:?}", before.findings);
                // A damaged block of a tree affects several keys, a damaged record one.
                assert!(differing.len() <= if kind == StoreKind::Leveldb { 30 } else { 1 }, "{place}: {differing:?}");
                let store = factory(kind, copy.path()).unwrap().open(0).unwrap();
                for key in &differing {
                    put(&*store, key, b"written again").unwrap();
                    assert_eq!(get(&*store, key).unwrap().unwrap(), b"written again");
                }
                let again = store.status().lost_ranges;
                store.close().unwrap();
                drop(store);
                let store = factory(kind, copy.path()).unwrap().open(0).unwrap();
                assert_eq!((store.complete(), store.status().lost_ranges), (complete, again), "{place}");
            }
        }
        println!("{kind:?}: {repairs} repairs, {lost} keys lost");
        assert!(repairs > 100 && lost > 0, "{kind:?}: {repairs} repairs, {lost} lost");
    }
}

#[test]
fn a_data_file_that_is_gone_is_missed() {
    for kind in KINDS {
        let (mut missed, mut superseded) = (0, 0);
        for seed in 0..4 {
            let setup = TestSetup::new(kind, seed, true);
            let files = data_files(setup.path());
            let of_journal = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "data");
            for path in files.iter().map(|(path, _)| path).filter(of_journal) {
                let (copy, started) = (setup.copy(), setup.copy());
                let inside = path.strip_prefix(setup.path()).unwrap();
                fs::remove_file(copy.path().join(inside)).unwrap();
                fs::remove_file(started.path().join(inside)).unwrap();
                let place = format!("{kind:?}, seed {seed}, {}", inside.display());
                let keys = || setup.model.ever.keys().cloned();
                let (before, after) = root(kind, copy.path()).repair(0, &mut |_| true).unwrap();
                assert_eq!(after.findings, [], "{place}: {before:?}");
                assert!(answers(kind, started.path(), keys()).is_err(), "{place}: a store that lacks a file starts");
                let (of_start, is_complete) = answers_accepting_loss(kind, started.path(), keys()).unwrap();
                let mut differing = Vec::new();
                for (key, value) in &of_start.0 {
                    match value {
                        Err(_) => differing.push(key.clone()),
                        Ok(value) => assert_eq!(value.as_ref(), setup.model.now.get(key), "{place}: {key:?}"),
                    }
                }
                let (found, complete) = answers(kind, copy.path(), keys()).unwrap();
                assert!(!complete && !is_complete, "{place}: a loss is not told of");
                for key in check_repaired(&found, complete, &setup.model, &place) {
                    assert_eq!(found.0[&key], Ok(None), "{place}: {key:?} is older than what was acknowledged");
                }
                assert!(before.damaged > 0, "{place}: {before:?}");
                let is_told = |key: &Vec<u8>| {
                    let of_file = |finding: &&Finding| finding.damage == Damage::MissingFile;
                    let mut told = before.findings.iter().filter(of_file);
                    told.any(|finding| finding.key.as_ref().is_none_or(|named| named == key))
                };
                assert!(differing.iter().all(is_told), "{place}: {differing:?} {:?}", before.findings);
                if differing.is_empty() { superseded += 1 } else { missed += 1 }
            }
        }
        println!("{kind:?}: {missed} files missed, {superseded} superseded");
        assert!(missed > 0 || kind == StoreKind::Leveldb, "{kind:?}");
    }
}

/// One data file was copied over another one of the store: its header is whole, and says that it is
/// another file.
#[test]
fn a_repair_takes_out_a_file_under_the_name_of_another() {
    for kind in [StoreKind::Bitcask, StoreKind::Leveled] {
        let setup = TestSetup::new(kind, 3, true);
        let files = data_files(setup.path()).into_iter().map(|(path, _)| path);
        let files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|ext| ext == "data")).collect();
        let [first, .., last] = &files[..] else { panic!("{kind:?}: too few files: {files:?}") };
        fs::copy(first, last).unwrap();
        assert!(answers(kind, setup.path(), std::iter::empty()).is_err(), "{kind:?}: it starts");
        let (before, after) = root(kind, setup.path()).repair(0, &mut |_| true).unwrap();
        assert!(before.damaged > 0, "{kind:?}");
        assert_eq!(after.findings, [], "{kind:?}: left by the repair");
        let (found, complete) = answers(kind, setup.path(), setup.model.ever.keys().cloned()).unwrap();
        for key in check_repaired(&found, complete, &setup.model, &format!("{kind:?}")) {
            assert_eq!(found.0[&key], Ok(None), "{kind:?}: {key:?} is older than what was acknowledged");
        }
    }
}

#[test]
fn a_tree_that_is_gone_is_missed() {
    let setup = TestSetup::new(StoreKind::Leveldb, 1, true);
    fs::remove_dir_all(setup.path().join("0.ledger")).unwrap();
    let kind = StoreKind::Leveldb;
    let report = verify(kind, setup.path());
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!((finding.damage, finding.effect), (Damage::LedgerBehind, Effect::DoesNotOpen));
    assert!(factory(kind, setup.path()).unwrap().open(0).is_err());
    let (_, after) = root(kind, setup.path()).repair(0, &mut |_| true).unwrap();
    assert_eq!(after.findings, []);
    let (found, complete) = answers(kind, setup.path(), setup.model.ever.keys().cloned()).unwrap();
    check_repaired(&found, complete, &setup.model, "without its tree");
    assert!(!complete);
}

#[test]
fn a_repair_that_a_crash_interrupts_is_finished_by_the_next() {
    for kind in KINDS {
        let mut points = 0;
        for seed in 0..3u64 {
            // The same seed always gives the same setup.
            let damaged = || {
                let fs = FaultyFs::new(seed);
                let setup = TestSetup::on(fs.clone(), kind, seed, true);
                let dir = setup.path().join("0");
                let mut names: Vec<_> =
                    fs.list(&dir).unwrap().into_iter().filter(|name| name.ends_with(".data")).collect();
                names.sort();
                let mut random = Random::new(seed);
                for name in names.iter().step_by(3) {
                    let path = dir.join(name);
                    let bits = fs.length(&path).unwrap() * 8;
                    fs.flip_bit(&path, random.below(bits)).unwrap();
                }
                if kind == StoreKind::Leveldb {
                    let files = data_files(&setup.path().join("0.ledger"));
                    let (path, length) = files.iter().max_by_key(|(_, length)| *length).unwrap();
                    flip(path, random.below(length * 8));
                }
                (fs, setup)
            };
            let (fs, setup) = damaged();
            let mut root = root_on(fs.clone(), kind, setup.path()).unwrap();
            let start = fs.calls();
            root.repair(0, &mut |_| true).unwrap();
            let calls = fs.calls() - start;
            drop(root);
            for number in (1..calls).step_by((calls as usize / 12).max(1)) {
                let (fs, setup) = damaged();
                let mut root = root_on(fs.clone(), kind, setup.path()).unwrap();
                fs.cut_power_at(number);
                let result = root.repair(0, &mut |_| true);
                assert!(result.is_err() || fs.is_off());
                drop((root, result));
                let place = format!("{kind:?}, seed {seed}, call {number}");
                let fs = fs.restart([Loss::Some, Loss::Everything, Loss::Nothing][number as usize % 3]);
                let mut root = root_on(fs.clone(), kind, setup.path()).unwrap();
                let (before, after) = root.repair(0, &mut |_| true).unwrap_or_else(|e| panic!("{place}: {e}"));
                assert_eq!(after.findings, [], "{place}: {before:?}");
                drop(root);
                let keys = setup.model.ever.keys().cloned();
                let (found, complete) =
                    answers_on(fs, kind, setup.path(), keys).unwrap_or_else(|e| panic!("{place}: {e}"));
                let differing = check_repaired(&found, complete, &setup.model, &place);
                assert!(differing.len() < 40, "{place}: {differing:?}");
                points += 1;
            }
        }
        assert!(points > 20, "{kind:?}: {points}");
    }
}
