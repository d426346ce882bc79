//! Backups of stores on every backend with files: a cut at one append while a writer and merging go
//! on. The files of a backup are not written to any more.

use crate::common::*;
use ombak_storage::fs::{FileSystem, OpenMode, RealFs};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, CutContent, Detail, JournalConfig, LedgerConfig, LeveldbFactory,
    LeveledFactory, MemoryFactory, MultiFactory, NoTerms, ReadMode, Scope, Selector, StorageError, StoreCut,
    begin_restored,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PARTITION: u32 = 5;
const KEYS: u64 = 150;
const BACKUPS: usize = 6;

fn config() -> JournalConfig {
    JournalConfig {
        file_bytes_max: 8 << 10,
        merge: eager_merges(),
        opened_at_secs: NOW_SECS,
        ..JournalConfig::default()
    }
}

fn ledger() -> LedgerConfig {
    LedgerConfig { memory_bytes_max: 8 << 10, table_bytes: 8 << 10, ..LedgerConfig::default() }
}

type Open = fn(&Path) -> Box<dyn BackendFactory>;

fn bitcask(dir: &Path) -> Box<dyn BackendFactory> {
    Box::new(BitcaskFactory::new(Arc::new(RealFs), dir.join("bitcask"), config()).unwrap())
}

fn leveled(dir: &Path) -> Box<dyn BackendFactory> {
    let root = dir.join("leveled");
    Box::new(LeveledFactory::new(Arc::new(RealFs), root, config(), ledger(), Arc::new(NoTerms)).unwrap())
}

fn leveldb(dir: &Path) -> Box<dyn BackendFactory> {
    let root = dir.join("leveldb");
    Box::new(LeveldbFactory::new(Arc::new(RealFs), root, config(), ledger(), Arc::new(NoTerms)).unwrap())
}

/// The key's last byte selects the backend.
struct ByLastByte;

impl Selector for ByLastByte {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(key.last().copied().unwrap_or(0)) % 3)
    }
}

fn multi(dir: &Path) -> Box<dyn BackendFactory> {
    let backends: Vec<(String, Arc<dyn BackendFactory>)> = vec![
        ("bitcask".into(), bitcask(dir).into()),
        ("leveled".into(), leveled(dir).into()),
        ("leveldb".into(), leveldb(dir).into()),
    ];
    Box::new(MultiFactory::new(backends, Arc::new(ByLastByte)))
}

/// The key and the new value of the append with this number; no value for a delete. A key that is
/// deleted exists, because the append before put it.
fn step(seq: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let key_of = |n: u64| format!("key {}", n.wrapping_mul(7919) % KEYS).into_bytes();
    if seq.is_multiple_of(10) {
        return (key_of(seq - 1), None);
    }
    (key_of(seq), Some(format!("{seq} {}", "x".repeat((seq % 300) as usize)).into_bytes()))
}

fn state_at(seq: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut state = BTreeMap::new();
    for (key, value) in (1..=seq).map(step) {
        match value {
            Some(value) => drop(state.insert(key, value)),
            None => drop(state.remove(&key)),
        }
    }
    state
}

/// The numbers of the steps that have put the versions of [`state_at`].
fn steps_at(seq: u64) -> BTreeMap<Vec<u8>, u64> {
    let state = state_at(seq);
    let puts = (1..=seq).filter(|number| step(*number).1.is_some()).map(|number| (step(number).0, number));
    puts.filter(|(key, _)| state.contains_key(key)).collect()
}

/// Writes the sequence from a step until it is told to stop, with merges in between. The store was
/// just opened.
fn write(store: &dyn Backend, from: u64, stop: &AtomicBool) {
    for number in from.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let (key, value) = step(number);
        let appended = match value {
            Some(value) => put(store, &key, &value).unwrap(),
            None => store.delete(&key).unwrap().expect("it was put by the append before"),
        };
        assert_eq!(appended.seq, store.first_seq() + (number - from));
        if number.is_multiple_of(50) {
            store.maintain(NOW_SECS).unwrap();
        }
    }
}

/// Puts the files of a backup under `to`, as hard links where possible. Returns all of them with
/// their contents.
fn save(cuts: &[StoreCut], to: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut saved = BTreeMap::new();
    for cut in cuts {
        let root = to.join(cut.root.file_name().unwrap());
        for file in &cut.files {
            let path = root.join(&file.place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match &file.content {
                CutContent::Bytes(bytes) => std::fs::write(&path, bytes).unwrap(),
                CutContent::Final { path: from, .. } => RealFs.hard_link(from, &path).unwrap(),
                CutContent::Prefix { path: from, length, .. } => {
                    let bytes = std::fs::read(from).unwrap();
                    std::fs::write(&path, &bytes[..*length as usize]).unwrap();
                }
            }
            saved.insert(path.clone(), std::fs::read(&path).unwrap());
        }
        let store = root.join(PARTITION.to_string());
        std::fs::create_dir_all(&store).unwrap();
    }
    saved
}

/// Opens a copy of a saved backup as a store.
fn open_copy(
    saved: &Path,
    cuts: &[(PathBuf, u64)],
    open: Open,
    when: &str,
) -> (Box<dyn BackendFactory>, Arc<dyn Backend>) {
    let copy = saved.with_extension("copy");
    copy_dir(saved, &copy);
    for (root, seq) in cuts {
        begin_restored(&RealFs, &copy.join(root).join(PARTITION.to_string()), *seq).unwrap();
    }
    let factory = open(&copy);
    let store = factory.open(PARTITION).unwrap_or_else(|error| panic!("{when}: {error}"));
    (factory, store)
}

fn a_backup_is_a_cut_at_one_append(open: Open, name: &str) {
    let dir = scratch_dir();
    let factory = open(&dir.path().join("live"));
    let store = factory.open(PARTITION).unwrap();
    let stop = AtomicBool::new(false);
    let mut backups = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| write(&*store, 1, &stop));
        for n in 0..BACKUPS {
            let after = 400 * (n as u64 + 1);
            while store.last_seq() < after {
                std::thread::yield_now();
            }
            let acknowledged = store.last_seq();
            let mut backup = store.begin_backup().unwrap().expect("a store with files");
            let seq = backup.cut();
            assert!(seq >= acknowledged, "{name}: what was acknowledged is in");
            let cuts = backup.finish().unwrap();
            assert!(cuts.iter().all(|cut| cut.seq == seq));
            // Merging goes on between the end of the cut and the saving of its files.
            while store.last_seq() < seq + 300 {
                std::thread::yield_now();
            }
            let to = dir.path().join(format!("backup {n}"));
            let saved = save(&cuts, &to);
            let roots: Vec<_> = cuts.iter().map(|cut| (PathBuf::from(cut.root.file_name().unwrap()), seq)).collect();
            backups.push((to, seq, saved, roots));
        }
        stop.store(true, Ordering::Release);
    });
    for _ in 0..50 {
        store.maintain(NOW_SECS).unwrap();
    }
    // A start reads, truncates and renames files, but none of a backup.
    let last = store.last_seq();
    drop((store, factory));
    let factory = open(&dir.path().join("live"));
    assert_eq!(contents(&*factory.open(PARTITION).unwrap()), state_at(last), "{name}");
    for (to, seq, saved, roots) in backups {
        let when = format!("{name}, cut at {seq}");
        for (path, bytes) in &saved {
            assert_eq!(&std::fs::read(path).unwrap(), bytes, "{when}: {} has changed", path.display());
        }
        let (_factory, store) = open_copy(&to, &roots, open, &when);
        assert_eq!(contents(&*store), state_at(seq), "{when}");
        let identity = store.identity();
        assert!(identity.is_restored && identity.boot == 1, "{when}: {identity:?}");
        assert!(store.complete(), "{when}");
        assert_eq!(seqs(&*store), steps_at(seq), "{when}: versions keep their numbers");
        assert_eq!(store.last_seq(), seq, "{when}");
        assert!(store.first_seq() > seq + (1 << 26), "{when}: the original may have appended more");
        write_some(&*store, seq, &when);
    }
}

/// A restored store works like any other: it is written to, merged, closed and read.
fn write_some(store: &dyn Backend, seq: u64, when: &str) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| write(store, seq + 1, &stop));
        while store.last_seq() < store.first_seq() + 500 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Release);
    });
    let written = store.last_seq() + 1 - store.first_seq();
    assert_eq!(contents(store), state_at(seq + written), "{when}, written on");
    store.close().unwrap();
}

fn contents(store: &dyn Backend) -> BTreeMap<Vec<u8>, Vec<u8>> {
    fold(&mut *store.snapshot().unwrap(), b"", 50).into_iter().collect()
}

/// The number of each version.
fn seqs(store: &dyn Backend) -> BTreeMap<Vec<u8>, u64> {
    let mut snapshot = store.snapshot().unwrap();
    let batches = std::iter::from_fn(|| Some(snapshot.next(&Scope::ALL, Detail::Keys, 50).unwrap()));
    let entries = batches.take_while(|batch| !batch.is_empty()).flatten();
    entries.map(|entry| (entry.key.to_vec(), entry.seq)).collect()
}

#[test]
fn of_bitcask() {
    a_backup_is_a_cut_at_one_append(bitcask, "bitcask");
}

#[test]
fn of_leveled() {
    a_backup_is_a_cut_at_one_append(leveled, "leveled");
}

#[test]
fn of_leveldb() {
    a_backup_is_a_cut_at_one_append(leveldb, "leveldb");
}

#[test]
fn of_multi() {
    a_backup_is_a_cut_at_one_append(multi, "multi");
}

#[test]
fn what_has_no_files_has_no_backup() {
    assert!(MemoryFactory::default().open(0).unwrap().begin_backup().unwrap().is_none());
}

/// Two backups of a journal to which nothing was appended in between have the same files.
#[test]
fn a_quiet_store_stays_as_it_is() {
    for open in [bitcask, leveled] {
        let dir = scratch_dir();
        let factory = open(dir.path());
        let store = factory.open(PARTITION).unwrap();
        for seq in 1..100 {
            let (key, value) = step(seq);
            value.map(|value| put(&*store, &key, &value).unwrap());
        }
        let places = || {
            let mut backup = store.begin_backup().unwrap().unwrap();
            backup.cut();
            let cuts = backup.finish().unwrap();
            let files = cuts.iter().flat_map(|cut| &cut.files);
            let finals = files.filter(|file| matches!(file.content, CutContent::Final { .. }));
            finals.map(|file| file.place.clone()).collect::<Vec<_>>()
        };
        let first = places();
        assert!(!first.is_empty());
        assert_eq!(places(), first);
    }
}

/// The next start reads and may truncate a file without a hint file, so such a file is never
/// hard-linked.
#[test]
fn a_file_that_may_be_cut_is_copied() {
    let fs = ombak_storage::fs::sim::FaultyFs::new(1);
    let factory = BitcaskFactory::new(fs.clone(), "/data", config()).unwrap();
    let store = factory.open(PARTITION).unwrap();
    put(&*store, b"key", b"value").unwrap();
    let hint = Path::new("/data/5/0000000001.hint.tmp");
    fs.remove_file(hint).unwrap();
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    let cuts = backup.finish().unwrap();
    let [file] = &cuts[0].files[..] else { panic!("one file") };
    let CutContent::Prefix { path, length, .. } = &file.content else { panic!("no copy") };
    let data = fs.open(path, OpenMode::Read).unwrap();
    assert_eq!(data.length().unwrap(), *length);
    assert!(store.get(b"key", ReadMode::Blocking).unwrap().is_some());
}
