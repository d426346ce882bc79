//! Scrubbing: each flip of a bit in what is current is found, nothing else counts as damage, and
//! nothing is removed.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, OpenMode};
use ombak_storage::scrub::LAPS_MAX;
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, MergeConfig,
    MergePolicy, MultiFactory, NoTerms, ReadMode, ScrubCursor, ScrubLimits, ScrubStep, Selector, StorageError,
    SyncStrategy, UnreadableObserver, Write,
};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Open = fn(&Path, Arc<FaultyFs>, u64) -> Result<Box<dyn BackendFactory>, StorageError>;

const BACKENDS: [(&str, Open); 3] = [("bitcask", bitcask), ("leveled", leveled), ("leveldb", leveldb)];
/// Those whose journal has the values.
const WITH_JOURNAL: [(&str, Open); 2] = [("bitcask", bitcask), ("leveled", leveled)];

/// Each bucket has a backend of its own in a store of several.
const BUCKETS: [&[u8]; 3] = [b"\x02\0\x01a", b"\x02\0\x01b", b"\x02\0\x01c"];

fn journal(now_secs: u64) -> JournalConfig {
    JournalConfig {
        sync: SyncStrategy::None,
        file_bytes_max: 2048,
        merge: eager_merges(),
        opened_at_secs: now_secs,
        ..JournalConfig::default()
    }
}

fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 4 << 10, table_bytes: 4 << 10, ..LedgerConfig::default() }
}

fn bitcask(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(BitcaskFactory::with_terms(fs, dir, journal(now_secs), &ledger(), Arc::new(NoTerms))?))
}

fn leveled(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveledFactory::new(fs, dir, journal(now_secs), ledger(), Arc::new(NoTerms))?))
}

fn leveldb(dir: &Path, fs: Arc<FaultyFs>, now_secs: u64) -> Result<Box<dyn BackendFactory>, StorageError> {
    Ok(Box::new(LeveldbFactory::new(fs, dir, journal(now_secs), ledger(), Arc::new(NoTerms))?))
}

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

fn limits(bytes_max: u64) -> ScrubLimits<'static> {
    ScrubLimits { bytes_max, time_max: Duration::from_secs(60), give_way: &|| () }
}

/// What the steps of a round have found together.
#[derive(Debug, Default)]
struct Round {
    versions: BTreeSet<Vec<u8>>,
    versions_count: u64,
    obsolete: u64,
    places: Vec<String>,
    bytes: u64,
    records: u64,
    steps: u64,
}

impl Round {
    fn add(&mut self, step: &ScrubStep) {
        self.versions.extend(step.found.versions.iter().map(|version| version.key.to_vec()));
        self.versions_count += step.found.versions_count;
        self.obsolete += step.found.obsolete;
        self.places.extend(step.found.places.iter().map(|place| place.what.clone()));
        self.bytes += step.bytes_read;
        self.records += step.records;
        self.steps += 1;
    }

    fn of(store: &dyn Backend, bytes_max: u64) -> Self {
        let (mut round, mut cursor) = (Self::default(), ScrubCursor::default());
        loop {
            let step = store.scrub_step(&cursor, limits(bytes_max)).unwrap();
            round.add(&step);
            assert!(round.steps < 100_000, "a round without an end");
            if step.is_round_over {
                return round;
            }
            assert_ne!(step.next, cursor, "a step without progress");
            cursor = step.next;
        }
    }

    fn is_clean(&self) -> bool {
        self.versions_count == 0 && self.obsolete == 0 && self.places.is_empty()
    }
}

/// Remembers what a store says that it cannot read.
#[derive(Default)]
struct Told(Mutex<BTreeSet<Vec<u8>>>);

impl UnreadableObserver for Told {
    fn cannot_be_read(&self, key: &[u8]) {
        self.0.lock().unwrap().insert(key.to_vec());
    }
}

impl Told {
    fn take(&self) -> BTreeSet<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn name(n: u64) -> Vec<u8> {
    [BUCKETS[0], format!("key {n:04}").as_bytes()].concat()
}

fn value(n: u64, version: u64) -> Vec<u8> {
    format!("{n:04} {version:04} ").repeat(20).into_bytes()
}

fn fill(store: &dyn Backend, keys: std::ops::Range<u64>) {
    for n in keys {
        put(store, &name(n), &value(n, 0)).unwrap();
    }
}

/// Closes the active file, as a backup does, and completes its hint file.
fn close_file(store: &dyn Backend) {
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
}

/// All files of a simulated disk below a directory, with their content.
fn content(fs: &FaultyFs, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in fs.list(dir).unwrap_or_default() {
        let path = dir.join(name);
        match fs.content(&path) {
            Ok(bytes) => drop(found.insert(path, bytes)),
            Err(_) => found.extend(content(fs, &path)),
        }
    }
    found
}

fn data_files(fs: &FaultyFs, dir: &Path) -> Vec<PathBuf> {
    let is_data = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "data");
    content(fs, dir).into_keys().filter(is_data).collect()
}

fn unreadable(store: &dyn Backend, keys: u64) -> BTreeSet<Vec<u8>> {
    (0..keys).map(name).filter(|key| store.get(key, ReadMode::Blocking).is_err()).collect()
}

/// Stores with current, overwritten and deleted versions, and no merges.
fn filled(open: Open, fs: &Arc<FaultyFs>, dir: &Path, keys: u64) -> Arc<dyn Backend> {
    fs.create_dir_all(dir).unwrap();
    let store = open(dir, fs.clone(), NOW_SECS).unwrap().open(0).unwrap();
    for n in 0..keys {
        put(&*store, &name(n), &value(n, 0)).unwrap();
        if n % 3 == 0 {
            put(&*store, &name(n / 2), &value(n / 2, 1)).unwrap();
        }
        if n % 7 == 6 {
            store.delete(&name(n - 3)).unwrap();
        }
    }
    close_file(&*store);
    store
}

#[test]
fn each_flip_of_a_bit_in_a_data_file_is_found_and_nothing_is_removed() {
    const KEYS: u64 = 40;
    for (backend, open) in WITH_JOURNAL {
        let (fs, dir, told) = (FaultyFs::new(1), scratch_dir(), Arc::new(Told::default()));
        let store = filled(open, &fs, dir.path(), KEYS);
        store.observe_unreadable(told.clone());
        assert!(Round::of(&*store, u64::MAX).is_clean(), "{backend}");
        let files = data_files(&fs, dir.path());
        assert!(files.len() > 2, "{backend}: {files:?}");
        let mut random = Random::new(7);
        let mut kinds = [0; 3];
        for turn in 0..300 {
            let path = &files[random.below(files.len() as u64) as usize];
            let bit = random.below(fs.length(path).unwrap() * 8);
            fs.flip_bit(path, bit).unwrap();
            let expected = unreadable(&*store, KEYS);
            let before = content(&fs, dir.path());
            let round = Round::of(&*store, [500, 5_000, u64::MAX][turn % 3]);
            let case = format!("{backend}: bit {bit} of {}", path.display());
            assert!(!round.is_clean(), "{case}: it was not found");
            assert_eq!(told.take(), expected, "{case}");
            assert_eq!(round.versions, expected, "{case}");
            assert_eq!(content(&fs, dir.path()), before, "{case}: files have changed");
            kinds[0] += usize::from(round.versions_count > 0);
            kinds[1] += usize::from(round.obsolete > 0);
            kinds[2] += usize::from(!round.places.is_empty());
            fs.flip_bit(path, bit).unwrap();
        }
        assert!(kinds.iter().all(|count| *count > 0), "{backend}: {kinds:?}");
        assert!(Round::of(&*store, 1).is_clean() && store.status().poisoned.is_none(), "{backend}");
    }
}

/// Without a hint file the index says what lay in a hole.
#[test]
fn a_hole_without_a_hint_file_is_found_by_the_index() {
    for (backend, open) in WITH_JOURNAL {
        let (fs, dir, told) = (FaultyFs::new(1), scratch_dir(), Arc::new(Told::default()));
        let store = filled(open, &fs, dir.path(), 40);
        store.observe_unreadable(told.clone());
        let hints: Vec<PathBuf> = content(&fs, dir.path()).into_keys().collect();
        let is_hint = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "hint");
        hints.iter().filter(is_hint).for_each(|path| fs.remove_file(path).unwrap());
        let mut random = Random::new(8);
        let files = data_files(&fs, dir.path());
        for _ in 0..100 {
            let path = &files[random.below(files.len() as u64) as usize];
            let bit = 40 * 8 + random.below((fs.length(path).unwrap() - 40) * 8);
            fs.flip_bit(path, bit).unwrap();
            let expected = unreadable(&*store, 40);
            let round = Round::of(&*store, 1_000);
            assert_eq!(told.take(), expected, "{backend}: bit {bit} of {}", path.display());
            assert!(!round.is_clean(), "{backend}: bit {bit} of {}", path.display());
            fs.flip_bit(path, bit).unwrap();
        }
    }
}

/// Each step with damage reads the hint file, so a file with damage everywhere would be read far
/// faster than the rate says, without a pause.
#[test]
fn a_hint_file_that_is_read_for_damage_counts_and_gives_way() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let store = filled(bitcask, &fs, dir.path(), 40);
    let pauses = Cell::new(0);
    let give_way = || pauses.set(pauses.get() + 1);
    let round = || {
        pauses.set(0);
        let paced = ScrubLimits { give_way: &give_way, ..limits(u64::MAX) };
        let step = store.scrub_step(&ScrubCursor::default(), paced).unwrap();
        assert!(step.is_round_over);
        (step.bytes_read, pauses.get())
    };
    let (bytes, pauses_without) = round();
    let path = &data_files(&fs, dir.path())[0];
    fs.flip_bit(path, 45 * 8).unwrap();
    let hint = fs.length(&path.with_extension("hint")).unwrap();
    let (bytes_with, pauses_with) = round();
    assert_eq!(bytes_with, bytes + hint);
    assert!(pauses_with > pauses_without, "{pauses_with} pauses after {pauses_without}");
}

/// The part of the active file that is known to be synced is read, and no more.
#[test]
fn the_active_file_is_read_as_far_as_it_is_synced() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    fs.create_dir_all(dir).unwrap();
    let merge = MergeConfig { policy: MergePolicy::Never, ..MergeConfig::default() };
    let config = JournalConfig { merge, opened_at_secs: NOW_SECS, ..JournalConfig::default() };
    let store = BitcaskFactory::new(fs.clone(), dir, config).unwrap().open(0).unwrap();
    fill(&*store, 0..10);
    assert_eq!(Round::of(&*store, u64::MAX).records, 0);
    store.sync(store.last_seq()).unwrap();
    fill(&*store, 10..20);
    assert_eq!(Round::of(&*store, u64::MAX).records, 10);
    store.sync(store.last_seq()).unwrap();
    let path = &data_files(&fs, dir)[0];
    fs.flip_bit(path, (fs.length(path).unwrap() - 5) * 8).unwrap();
    assert_eq!(Round::of(&*store, 100).versions, [name(19)].into());
}

/// A step that is over soon, as on a busy machine, does not read the same part of the disk again
/// and again.
#[test]
fn a_step_checks_everything_that_it_has_read() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    fs.create_dir_all(dir).unwrap();
    let config = JournalConfig { file_bytes_max: 4 << 20, ..journal(NOW_SECS) };
    let store = BitcaskFactory::new(fs.clone(), dir, config).unwrap().open(0).unwrap();
    fill(&*store, 0..2_000);
    close_file(&*store);
    let before = fs.calls_of(Call::Read);
    let round = Round::of(&*store, 1);
    assert!(round.is_clean() && round.records == 2_000, "{round:?}");
    let reads = fs.calls_of(Call::Read) - before;
    assert!(reads < 20, "{reads} reads of up to 256 KiB for {} bytes", round.bytes);
}

/// Flips one bit of a file on the real file system.
fn flip_real(path: &Path, bit: u64) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).unwrap();
}

/// The tables of the index of a partition.
fn tables(dir: &Path) -> Vec<PathBuf> {
    let dirs = ["0.ledger/tables", "0.order/tables"].map(|name| dir.join(name));
    let entries = dirs.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
    let mut tables: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    tables.sort();
    tables
}

#[test]
fn each_flip_of_a_bit_in_a_table_of_an_index_is_found() {
    for (backend, open) in BACKENDS {
        let mut random = Random::new(9);
        for turn in 0..12 {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = filled(open, &fs, dir.path(), 60);
            drop(store.ordered_snapshot(BUCKETS[0]).unwrap());
            (0..40).for_each(|second| store.maintain(NOW_SECS + second).unwrap());
            store.close().unwrap();
            drop(store);
            let fs = fs.restart(Loss::Nothing);
            let store = open(dir.path(), fs.clone(), NOW_SECS + 50).unwrap().open(0).unwrap();
            assert!(Round::of(&*store, 700).is_clean(), "{backend}");
            let tables = tables(dir.path());
            assert!(!tables.is_empty(), "{backend}");
            let path = &tables[random.below(tables.len() as u64) as usize];
            let bit = random.below(std::fs::metadata(path).unwrap().len() * 8);
            let names = tables.clone();
            flip_real(path, bit);
            let round = Round::of(&*store, [700, u64::MAX][turn % 2]);
            let case = format!("{backend}: bit {bit} of {}", path.display());
            assert!(!round.places.is_empty(), "{case}");
            let expected = match backend {
                "bitcask" => "built anew when it is needed",
                "leveled" => "the next start builds the ledger anew",
                _ => "the tree has the only copy",
            };
            assert!(round.places.iter().all(|what| what.contains(expected)), "{case}: {:?}", round.places);
            assert_eq!(self::tables(dir.path()), names, "{case}: tables have been removed");
            if backend == "leveled" {
                // The next start has everything.
                store.close().unwrap();
                drop(store);
                let fs = fs.restart(Loss::Nothing);
                let store = open(dir.path(), fs, NOW_SECS + 60).unwrap().open(0).unwrap();
                assert!(unreadable(&*store, 60).is_empty(), "{case}");
                assert!(Round::of(&*store, u64::MAX).is_clean(), "{case}");
            }
        }
    }
}

/// The log of leveldb has what is in memory, so its damage is harmless once that is in the tree.
#[test]
fn a_damaged_log_is_written_to_the_tree() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    fs.create_dir_all(dir.path()).unwrap();
    let store = leveldb(dir.path(), fs.clone(), NOW_SECS).unwrap().open(0).unwrap();
    fill(&*store, 0..6);
    store.sync(store.last_seq()).unwrap();
    let path = data_files(&fs, dir.path()).pop().expect("the log");
    fs.flip_bit(&path, (fs.length(&path).unwrap() - 5) * 8).unwrap();
    let round = Round::of(&*store, u64::MAX);
    assert!(round.versions.is_empty() && round.places.len() == 1, "{round:?}");
    (0..10).for_each(|second| store.maintain(NOW_SECS + second).unwrap());
    drop(store);
    let store = leveldb(dir.path(), fs.restart(Loss::Nothing), NOW_SECS + 20).unwrap().open(0).unwrap();
    assert!((0..6).all(|n| get(&*store, &name(n)).unwrap() == Some(value(n, 0))), "nothing is lost");
    assert!(store.complete());
}

#[test]
fn what_the_disk_does_not_give_back_is_told_and_ends_the_step() {
    for (backend, open) in WITH_JOURNAL {
        let (fs, dir, told) = (FaultyFs::new(1), scratch_dir(), Arc::new(Told::default()));
        fs.create_dir_all(dir.path()).unwrap();
        let store = open(dir.path(), fs.clone(), NOW_SECS).unwrap().open(0).unwrap();
        store.observe_unreadable(told.clone());
        let large = |n: u64| format!("{n:04}").repeat(3_000).into_bytes();
        for n in 0..5 {
            put(&*store, &name(n), &large(n)).unwrap();
        }
        close_file(&*store);
        let lost = data_files(&fs, dir.path()).into_iter().find_map(|path| {
            let at = fs.content(&path).unwrap().windows(12).position(|part| part == b"000300030003")?;
            Some((path, at as u64 + 6_000))
        });
        let (path, at) = lost.expect("the value is in a file");
        fs.set_unreadable(&path, at..at + 1).unwrap();
        let (mut cursor, mut unread) = (ScrubCursor::default(), Vec::new());
        loop {
            let step = store.scrub_step(&cursor, limits(u64::MAX)).unwrap();
            unread.push(step.unread_blocks);
            cursor = step.next;
            if step.is_round_over {
                break;
            }
        }
        assert_eq!(told.take(), [name(3)].into(), "{backend}");
        assert!(unread.iter().filter(|blocks| **blocks > 0).count() == 1 && unread.len() > 1, "{backend}: {unread:?}");
        assert_eq!(store.status().poisoned, None, "{backend}");
    }
}

/// Nobody has needed what lies there, so the store goes on.
#[test]
fn a_region_that_the_disk_does_not_give_back_is_passed_over() {
    let (fs, dir, told) = (FaultyFs::new(1), Path::new("/data"), Arc::new(Told::default()));
    fs.create_dir_all(dir).unwrap();
    let config = JournalConfig { file_bytes_max: 1 << 20, ..journal(NOW_SECS) };
    let store = BitcaskFactory::new(fs.clone(), dir, config).unwrap().open(0).unwrap();
    store.observe_unreadable(told.clone());
    fill(&*store, 0..20);
    put(&*store, &name(20), &[7; 400_000]).unwrap();
    fill(&*store, 21..40);
    close_file(&*store);
    let path = &data_files(&fs, dir)[0];
    fs.set_unreadable(path, 40_960..40_960 + 4_096 * 70).unwrap();
    let round = Round::of(&*store, u64::MAX);
    assert_eq!((told.take(), round.versions_count), ([name(20)].into(), 1), "{round:?}");
    assert_eq!((round.records, store.status().poisoned), (39, None), "the others were read");
    put(&*store, &name(2), &value(2, 0)).unwrap();
}

/// The keys behind the new end are told at once, and nobody waits as for a disk that fails.
#[test]
fn a_file_that_has_lost_its_end_is_damaged_and_its_disk_is_not() {
    for (backend, open) in WITH_JOURNAL {
        let (fs, dir, told) = (FaultyFs::new(1), scratch_dir(), Arc::new(Told::default()));
        let store = filled(open, &fs, dir.path(), 40);
        let path = &data_files(&fs, dir.path())[1];
        fs.open(path, OpenMode::Write).unwrap().truncate(700).unwrap();
        let expected = unreadable(&*store, 40);
        assert!(!expected.is_empty(), "{backend}");
        store.observe_unreadable(told.clone());
        let (mut cursor, mut is_over) = (ScrubCursor::default(), false);
        while !is_over {
            let step = store.scrub_step(&cursor, limits(u64::MAX)).unwrap();
            assert_eq!(step.unread_blocks, 0, "{backend}");
            (cursor, is_over) = (step.next, step.is_round_over);
        }
        assert_eq!(told.take(), expected, "{backend}");
    }
}

#[test]
fn a_file_that_is_missing_is_told_and_the_others_are_read() {
    for (backend, open) in WITH_JOURNAL {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = filled(open, &fs, dir.path(), 40);
        let all = Round::of(&*store, u64::MAX).records;
        fs.remove_file(&data_files(&fs, dir.path())[1]).unwrap();
        let round = Round::of(&*store, u64::MAX);
        assert!(round.places.len() == 1 && round.places[0].contains("missing"), "{backend}: {round:?}");
        assert!(0 < round.records && round.records < all, "{backend}: {round:?}");
    }
}

/// Half-written records of a loss of power, which a start has passed over, are no damage.
#[test]
fn what_a_loss_of_power_has_torn_is_no_damage() {
    for (backend, open) in BACKENDS {
        for seed in 0..30 {
            let (fs, dir) = (FaultyFs::new(seed), scratch_dir());
            fs.create_dir_all(dir.path()).unwrap();
            let store = open(dir.path(), fs.clone(), NOW_SECS).unwrap().open(0).unwrap();
            for n in 0..30 {
                put(&*store, &name(n), &value(n, 0)).unwrap();
                if n % 8 == 0 {
                    store.sync(store.last_seq()).unwrap();
                }
            }
            let fs = fs.restart(Loss::Some);
            drop(store);
            let _ = std::fs::remove_dir_all(dir.path().join("0.ledger"));
            let Ok(store) = open(dir.path(), fs, NOW_SECS).unwrap().open(0) else { continue };
            put(&*store, &name(99), &value(99, 0)).unwrap();
            close_file(&*store);
            let round = Round::of(&*store, 900);
            assert!(round.is_clean(), "{backend}, seed {seed}: {round:?}");
        }
    }
}

#[test]
fn a_damaged_part_is_damage_of_its_object() {
    for (backend, open) in WITH_JOURNAL {
        let (fs, dir, told) = (FaultyFs::new(1), scratch_dir(), Arc::new(Told::default()));
        fs.create_dir_all(dir.path()).unwrap();
        let store = open(dir.path(), fs.clone(), NOW_SECS).unwrap().open(0).unwrap();
        store.observe_unreadable(told.clone());
        let first = vec![b'a'; 20_000];
        let extend = |added: &[u8], kept: u64| {
            let (key, tstamp_secs) = (name(1), NOW_SECS as u32);
            let write = Write {
                key: &key,
                head: b"head",
                body: &[added],
                digest: kept,
                tstamp_secs,
                expires_secs: 0,
                has_terms: false,
            };
            match kept {
                0 => store.put(&write).map(drop).unwrap(),
                kept => store.extend(&write, kept, ReadMode::Blocking).map(drop).unwrap(),
            }
        };
        extend(&first, 0);
        extend(b"bbb", 20_000);
        extend(b"ccc", 20_003);
        close_file(&*store);
        // The newest record with the letters is the part.
        let mut parts = data_files(&fs, dir.path()).into_iter().filter_map(|path| {
            let at =
                fs.content(&path).unwrap().windows(100).rposition(|bytes| bytes.iter().all(|byte| *byte == b'a'))?;
            Some((path, at as u64))
        });
        let (path, at) = parts.next_back().expect("a part");
        fs.flip_bit(&path, at * 8).unwrap();
        assert!(store.get(&name(1), ReadMode::Blocking).is_err(), "{backend}");
        let round = Round::of(&*store, u64::MAX);
        assert_eq!((told.take(), round.versions), ([name(1)].into(), [name(1)].into()), "{backend}");
    }
}

#[test]
fn each_store_of_several_is_read() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    ["bitcask", "leveled", "leveldb"].iter().for_each(|name| fs.create_dir_all(&dir.path().join(name)).unwrap());
    let store = multi(dir.path(), fs.clone(), NOW_SECS).unwrap().open(0).unwrap();
    let keys: Vec<Vec<u8>> =
        (0..30u64).map(|n| [BUCKETS[n as usize % 3], format!("{n:04}").as_bytes()].concat()).collect();
    for key in &keys {
        put(&*store, key, &value(1, 1)).unwrap();
    }
    store.sync(store.last_seq()).unwrap();
    let clean = Round::of(&*store, 100);
    assert!(clean.is_clean() && clean.records >= 30, "{clean:?}");
    assert!(store.bytes_to_scrub() > 30 * 200);
    close_file(&*store);
    for (bucket, backend) in [(0, "bitcask"), (1, "leveled")] {
        let path = data_files(&fs, &dir.path().join(backend)).pop().unwrap();
        fs.flip_bit(&path, (fs.length(&path).unwrap() - 5) * 8).unwrap();
        let round = Round::of(&*store, 100);
        assert!(round.versions.len() == 1 && round.versions.iter().all(|key| key.starts_with(BUCKETS[bucket])));
        fs.flip_bit(&path, (fs.length(&path).unwrap() - 5) * 8).unwrap();
    }
}

#[test]
fn scrubbing_runs_beside_writes_merges_and_a_close() {
    for (backend, open) in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        fs.create_dir_all(dir.path()).unwrap();
        let store = open(dir.path(), fs, NOW_SECS).unwrap().open(0).unwrap();
        let rounds = std::thread::scope(|scope| {
            let scrubbing = scope.spawn(|| {
                let (mut cursor, mut rounds) = (ScrubCursor::default(), 0);
                loop {
                    match store.scrub_step(&cursor, limits(1_500)) {
                        Ok(step) => {
                            assert!(step.found.is_nothing(), "{backend}: {step:?}");
                            rounds += u32::from(step.is_round_over);
                            cursor = if step.is_round_over { ScrubCursor::default() } else { step.next };
                        }
                        Err(StorageError::Closed) => return rounds,
                        Err(error) => panic!("{backend}: {error}"),
                    }
                }
            });
            let mut random = Random::new(3);
            for turn in 0..1_500 {
                let n = random.below(60);
                match random.below(10) {
                    0 => assert!(store.delete(&name(n)).is_ok()),
                    1 => store.sync(store.last_seq()).unwrap(),
                    2 | 3 => store.maintain(NOW_SECS + turn / 10).unwrap(),
                    _ => assert!(put(&*store, &name(n), &value(n, turn)).is_ok()),
                }
            }
            store.close().unwrap();
            scrubbing.join().unwrap()
        });
        assert!(rounds > 0, "{backend}");
    }
}

#[derive(Clone, Debug)]
enum Op {
    Put(u64),
    Delete(u64),
    Maintain,
    CloseFile,
    Scrub(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..20u64).prop_map(Op::Put),
        1 => (1..20u64).prop_map(Op::Delete),
        1 => Just(Op::Maintain),
        1 => Just(Op::CloseFile),
        4 => (1..2_000u64).prop_map(Op::Scrub),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A damaged version is found by the round, wherever merges move it meanwhile.
    #[test]
    fn a_round_reads_every_version_that_is_current(ops in prop::collection::vec(op(), 1..40), at in 1..20u64) {
        let (fs, dir, told) = (FaultyFs::new(1), Path::new("/data"), Arc::new(Told::default()));
        fs.create_dir_all(dir).unwrap();
        let factory = BitcaskFactory::new(fs.clone(), dir, journal(NOW_SECS)).unwrap();
        let store = factory.open(0).unwrap();
        store.observe_unreadable(told.clone());
        for n in 0..at {
            put(&*store, &name(n), &value(n, 0)).unwrap();
        }
        // The end of the body of the last record.
        put(&*store, &name(0), &value(0, 1)).unwrap();
        close_file(&*store);
        let path = data_files(&fs, dir).pop().unwrap();
        fs.flip_bit(&path, (fs.length(&path).unwrap() - 5) * 8).unwrap();
        prop_assert!(store.get(&name(0), ReadMode::Blocking).is_err());
        let (mut cursor, mut now, mut is_over) = (ScrubCursor::default(), NOW_SECS, false);
        let mut scrub = |bytes_max: u64, is_over: &mut bool| {
            if !*is_over {
                let step = store.scrub_step(&cursor, limits(bytes_max)).unwrap();
                (cursor, *is_over) = (step.next, step.is_round_over);
            }
        };
        // A merge moves the version once at most, and each call begins one merge at most.
        let moves = ops.iter().filter(|op| matches!(op, Op::Maintain)).count();
        for op in ops {
            now += 1;
            match op {
                Op::Put(n) => prop_assert!(put(&*store, &name(n), &value(n, now)).is_ok()),
                Op::Delete(n) => prop_assert!(store.delete(&name(n)).is_ok()),
                Op::Maintain => store.maintain(now).unwrap(),
                Op::CloseFile => close_file(&*store),
                Op::Scrub(bytes) => scrub(bytes, &mut is_over),
            }
        }
        while !is_over {
            scrub(u64::MAX, &mut is_over);
        }
        let is_found = told.take().contains(&name(0));
        prop_assert!(is_found || moves >= LAPS_MAX as usize, "the round has ended without it");
    }
}
