//! Disks that do not give back bytes: a few places are unreadable versions, many are a failure of
//! the store.

use crate::common::*;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveledFactory, MergeConfig, NoTerms,
    ReadMode, StorageError, UnreadableObserver,
};
use ombak_types::StoreFailureKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// Longer than two blocks, so that each value has a block of its own.
const VALUE_BYTES: usize = 9000;
const BACKENDS: [&str; 2] = ["bitcask", "leveled"];

fn open(backend: &str, fs: &Arc<FaultyFs>, dir: &Path, config: JournalConfig) -> Arc<dyn Backend> {
    fs.create_dir_all(dir).unwrap();
    if backend == "bitcask" {
        return BitcaskFactory::new(fs.clone(), dir, config).unwrap().open(0).unwrap();
    }
    let ledger = LedgerConfig::default();
    LeveledFactory::new(fs.clone(), dir, config, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap()
}

fn eager() -> JournalConfig {
    JournalConfig { merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn never_merging() -> JournalConfig {
    let merge = MergeConfig { policy: ombak_storage::MergePolicy::Never, ..MergeConfig::default() };
    JournalConfig { merge, ..eager() }
}

fn name(n: u32) -> Vec<u8> {
    format!("the key with the number {n:04}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    format!("{n:04}").repeat(VALUE_BYTES / 4).into_bytes()
}

fn fill(store: &dyn Backend, keys: std::ops::Range<u32>) {
    for n in keys {
        put(store, &name(n), &value(n)).unwrap();
    }
}

/// Closes the active file, as a backup does, and completes its hint file.
fn close_file(store: &dyn Backend) {
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
}

fn data_files(fs: &FaultyFs, dir: &Path) -> Vec<PathBuf> {
    files(fs, dir, ".data")
}

fn files(fs: &FaultyFs, dir: &Path, suffix: &str) -> Vec<PathBuf> {
    let dir = dir.join("0");
    let mut names = fs.list(&dir).unwrap();
    names.sort();
    names.iter().filter(|name| name.ends_with(suffix)).map(|name| dir.join(name)).collect()
}

/// Where some bytes are in a file of the store.
fn place_of(fs: &FaultyFs, dir: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let found = data_files(fs, dir).into_iter().chain(files(fs, dir, ".fresh")).find_map(|path| {
        let at = fs.content(&path).unwrap().windows(bytes.len()).position(|part| part == bytes)?;
        Some((path, at as u64))
    });
    found.expect("the bytes are in a file")
}

/// Makes the block with some bytes unreadable.
fn lose(fs: &FaultyFs, dir: &Path, bytes: &[u8]) {
    let (path, at) = place_of(fs, dir, bytes);
    fs.set_unreadable(&path, at..at + 1).unwrap();
}

/// Loses the middle of a value. Its neighbours can be read.
fn lose_value(fs: &FaultyFs, dir: &Path, n: u32) {
    let (path, at) = place_of(fs, dir, &value(n)[..VALUE_BYTES / 2]);
    let middle = at + VALUE_BYTES as u64 / 2;
    fs.set_unreadable(&path, middle..middle + 1).unwrap();
}

fn is_unreadable(store: &dyn Backend, n: u32) -> bool {
    match get(store, &name(n)) {
        Ok(found) => {
            assert_eq!(found, Some(value(n)), "{n}");
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), StoreFailureKind::Unreadable, "{error}");
            true
        }
    }
}

fn poison(store: &dyn Backend) -> Option<String> {
    store.status().poisoned
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
    fn keys(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().iter().cloned().collect()
    }
}

#[test]
fn a_bad_sector_makes_one_version_unreadable() {
    for backend in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), never_merging());
        fill(&*store, 0..20);
        lose_value(&fs, dir.path(), 7);
        let error = get(&*store, &name(7)).unwrap_err();
        assert!(matches!(error, StorageError::MediaError { .. }), "{backend}: {error}");
        assert!(error.to_string().starts_with("the disk cannot read "), "{backend}: {error}");
        assert_eq!((0..20).filter(|n| is_unreadable(&*store, *n)).collect::<Vec<_>>(), [7], "{backend}");
        // A head in a sector of its own can be read.
        assert!(store.head(&name(7), ReadMode::Blocking).is_ok(), "{backend}");
        // A caller that must not wait does not wait for the second try.
        let cached = store.get(&name(7), ReadMode::Cached);
        assert!(matches!(cached, Err(StorageError::WouldBlock)), "{backend}: {cached:?}");
        for _ in 0..100 {
            assert!(is_unreadable(&*store, 7));
        }
        assert_eq!(poison(&*store), None, "{backend}: one place counts once, however often it is read");
        put(&*store, &name(7), &value(7)).unwrap();
        assert!(!is_unreadable(&*store, 7), "{backend}: it was written anew");
    }
}

#[test]
fn a_bad_sector_under_a_head_makes_head_and_version_unreadable() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    let store = open("bitcask", &fs, dir, never_merging());
    fill(&*store, 0..5);
    close_file(&*store);
    drop(store);
    // After a start no head is in memory.
    let fs = fs.restart(Loss::Nothing);
    let store = open("bitcask", &fs, dir, never_merging());
    lose(&fs, dir, &name(2));
    let error = store.head(&name(2), ReadMode::Blocking).unwrap_err();
    assert!(matches!(error, StorageError::MediaError { .. }), "{error}");
    assert!(is_unreadable(&*store, 2));
}

#[test]
fn a_read_that_fails_once_is_no_loss() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    let store = open("bitcask", &fs, dir, never_merging());
    fill(&*store, 0..5);
    fs.fail_next_read_as_media_error();
    assert!(!is_unreadable(&*store, 3));
    fs.end_read_early_at(1);
    assert!(!is_unreadable(&*store, 3));
    assert_eq!(store.status().read_errors, 0);
}

/// A volume that is gone for a while is neither thousands of versions to repair, nor of versions to
/// give up.
#[test]
fn many_bad_places_within_a_minute_fail_the_store_as_a_whole() {
    for backend in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), never_merging());
        fill(&*store, 0..300);
        fs.set_media_errors(u64::MAX);
        let kinds: Vec<_> = (0..300).map(|n| get(&*store, &name(n)).unwrap_err().kind()).collect();
        let unreadable = kinds.iter().take_while(|kind| **kind == StoreFailureKind::Unreadable).count();
        assert!((32..200).contains(&unreadable), "{backend}: {unreadable} versions seemed lost");
        assert!(kinds[unreadable..].iter().all(|kind| *kind == StoreFailureKind::Poisoned), "{backend}");
        let why = poison(&*store).expect("the store takes no writes");
        assert!(why.contains("more than 32 places could not be read within a minute"), "{backend}: {why}");
        assert!(matches!(put(&*store, b"k", b"v"), Err(StorageError::Poisoned(_))), "{backend}");
        // The volume is back. What can be read is read, and writes wait for the next start.
        fs.set_media_errors(0);
        assert!((0..300).all(|n| !is_unreadable(&*store, n)), "{backend}");
        assert!(matches!(put(&*store, b"k", b"v"), Err(StorageError::Poisoned(_))), "{backend}");
        drop(store);
        let store = open(backend, &fs.restart(Loss::Nothing), dir.path(), never_merging());
        assert!((0..300).all(|n| !is_unreadable(&*store, n)), "{backend}");
        put(&*store, b"k", b"v").unwrap();
    }
}

/// The places of all stores of a root count together: they are on one volume.
#[test]
fn the_stores_of_a_root_count_together() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    fs.create_dir_all(dir).unwrap();
    let factory = BitcaskFactory::new(fs.clone(), dir, never_merging()).unwrap();
    let stores: Vec<_> = (0..50).map(|partition| factory.open(partition).unwrap()).collect();
    stores.iter().for_each(|store| fill(&**store, 0..1));
    fs.set_media_errors(u64::MAX);
    stores.iter().for_each(|store| drop(get(&**store, &name(0)).unwrap_err()));
    assert_eq!(stores.iter().filter(|store| poison(&***store).is_some()).count(), 50 - 32);
}

#[test]
fn a_merge_goes_on_around_a_bad_sector_and_tells_the_key() {
    for backend in BACKENDS {
        for whole_record in [false, true] {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = open(backend, &fs, dir.path(), eager());
            let told = Arc::new(Told::default());
            store.observe_unreadable(told.clone());
            fill(&*store, 0..20);
            close_file(&*store);
            if whole_record {
                lose(&fs, dir.path(), &name(7));
            }
            lose_value(&fs, dir.path(), 7);
            // Half of the file is dead.
            for n in 10..20 {
                store.delete(&name(n)).unwrap();
            }
            close_file(&*store);
            let mut counts = Vec::new();
            for second in 0..50 {
                store.maintain(NOW_SECS + second).unwrap();
                counts.push((data_files(&fs, dir.path()).len(), store.status().bytes_written));
            }
            let case = format!("{backend}, {whole_record}");
            assert_eq!(counts[20], counts[49], "{case}: the merge does not begin again and again: {counts:?}");
            // Names of neighbours may lie in the same sector.
            let lost: Vec<u32> = (0..10).filter(|n| is_unreadable(&*store, *n)).collect();
            assert!(lost.contains(&7) && lost.len() <= 2, "{case}: {lost:?}");
            assert_eq!(told.keys(), lost.iter().map(|n| name(*n)).collect::<Vec<_>>(), "{case}");
            assert_eq!(poison(&*store), None, "{case}");
            // The repair writes the version anew, and the file goes, unless a tombstone may be in
            // the part that cannot be read.
            for n in &lost {
                put(&*store, &name(*n), &value(*n)).unwrap();
            }
            close_file(&*store);
            (0..50).for_each(|second| store.maintain(NOW_SECS + 100 + second).unwrap());
            assert!((0..10).all(|n| !is_unreadable(&*store, n)), "{case}");
            let bytes: u64 = data_files(&fs, dir.path()).iter().map(|path| fs.length(path).unwrap()).sum();
            assert!(bytes < 15 * VALUE_BYTES as u64 * 11 / 10, "{case}: {bytes} bytes are kept");
            drop(store);
            let store = open(backend, &fs.restart(Loss::Nothing), dir.path(), eager());
            assert!((0..10).all(|n| !is_unreadable(&*store, n)), "{case}");
            assert!((10..20).all(|n| get(&*store, &name(n)).unwrap().is_none()), "{case}");
        }
    }
}

/// A region of many bad blocks is a disk that fails: the merge must not begin anew for ever.
#[test]
fn a_merge_that_meets_more_bad_blocks_than_are_allowed_fails_the_store() {
    for backend in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), eager());
        fill(&*store, 0..60);
        close_file(&*store);
        // Half of the file is dead, and that half cannot be read.
        let (path, from) = place_of(&fs, dir.path(), &value(10)[..VALUE_BYTES / 2]);
        fs.set_unreadable(&path, from..from + 34 * VALUE_BYTES as u64).unwrap();
        for n in 10..50 {
            store.delete(&name(n)).unwrap();
        }
        close_file(&*store);
        let failed = (0..50).find_map(|second| {
            store.maintain(NOW_SECS + second).err();
            poison(&*store)
        });
        let why = failed.unwrap_or_else(|| panic!("{backend}: the store goes on"));
        assert!(why.contains("more than 32 places could not be read within a minute"), "{backend}: {why}");
        assert!((50..60).all(|n| !is_unreadable(&*store, n)), "{backend}: what can be read is read");
    }
}

/// The merge cannot know whether the bad sector has the tombstone, so the file stays.
#[test]
fn a_deleted_key_does_not_come_back_after_a_merge_of_a_file_with_a_bad_sector() {
    let merge = MergeConfig {
        threshold_fragmentation_percent: u8::MAX,
        threshold_dead_bytes: u64::MAX,
        // Only the file of the tombstones takes part.
        threshold_small_file_bytes: 5000,
        ..eager_merges()
    };
    for backend in BACKENDS {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), JournalConfig { merge, ..eager() });
        fill(&*store, 0..10);
        close_file(&*store);
        store.delete(&name(3)).unwrap().unwrap();
        for _ in 0..5 {
            put(&*store, b"small", b"value").unwrap();
        }
        close_file(&*store);
        let (path, _) = place_of(&fs, dir.path(), b"small");
        fs.set_unreadable(&path, 60..61).unwrap();
        (0..50).for_each(|second| store.maintain(NOW_SECS + second).unwrap());
        drop(store);
        let _ = std::fs::remove_dir_all(dir.path().join("0.ledger"));
        let fs = fs.restart(Loss::Nothing);
        data_files(&fs, dir.path()).iter().for_each(|path| fs.set_readable(path).unwrap());
        let store = open(backend, &fs, dir.path(), never_merging());
        assert_eq!(get(&*store, &name(3)).unwrap(), None, "{backend}: a deleted key is back");
    }
}

#[test]
fn a_start_reads_the_data_file_when_the_disk_does_not_give_back_its_hint_file() {
    for backend in BACKENDS {
        for at in [0, 40, u64::MAX] {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = open(backend, &fs, dir.path(), never_merging());
            fill(&*store, 0..30);
            close_file(&*store);
            store.close().unwrap();
            drop(store);
            let _ = std::fs::remove_dir_all(dir.path().join("0.ledger"));
            let fs = fs.restart(Loss::Nothing);
            let hints = files(&fs, dir.path(), ".hint");
            assert_eq!(hints.len(), 1, "{backend}");
            let at = at.min(fs.length(&hints[0]).unwrap() - 1);
            fs.set_unreadable(&hints[0], at..at + 1).unwrap();
            let store = open(backend, &fs, dir.path(), never_merging());
            assert!((0..30).all(|n| !is_unreadable(&*store, n)), "{backend}");
            assert!(store.complete(), "{backend}");
        }
    }
}

/// The file that was active has no hint file, so the start reads it. What it cannot read is known
/// as a loss, and nothing behind it is taken for a torn write.
#[test]
fn a_start_goes_on_around_a_bad_sector() {
    for backend in BACKENDS {
        for at_end in [false, true] {
            for failed_before in [false, true] {
                let (fs, dir) = (FaultyFs::new(1), scratch_dir());
                let store = open(backend, &fs, dir.path(), never_merging());
                fill(&*store, 0..20);
                store.sync(store.last_seq()).unwrap();
                if failed_before {
                    fs.fail_at(ombak_storage::fs::sim::Call::SyncData, 1);
                    let seq = put(&*store, b"k", b"v").unwrap().seq;
                    store.sync(seq).unwrap_err();
                }
                drop(store);
                let _ = std::fs::remove_dir_all(dir.path().join("0.ledger"));
                let fs = fs.restart(Loss::Nothing);
                let n = if at_end { 19 } else { 7 };
                let (path, _) = place_of(&fs, dir.path(), &name(n));
                lose_value(&fs, dir.path(), n);
                let length = fs.length(&path).unwrap();
                let store = open(backend, &fs, dir.path(), never_merging());
                let case = format!("{backend}, {at_end}, {failed_before}");
                assert!(fs.length(&path).unwrap() >= length - 100, "{case}: it was cut");
                let lost: Vec<u32> = (0..20).filter(|n| is_unreadable(&*store, *n)).collect();
                assert_eq!(lost, [n], "{case}");
                put(&*store, &name(n), &value(n)).unwrap();
                assert!((0..20).all(|n| !is_unreadable(&*store, n)), "{case}");
                drop(store);
                let store = open(backend, &fs.restart(Loss::Nothing), dir.path(), never_merging());
                assert!((0..20).all(|n| !is_unreadable(&*store, n)), "{case}");
            }
        }
    }
}

/// A key that lies in a bad sector is not known at a start, so the loss is counted, and an older
/// version of it counts as what the store has.
#[test]
fn a_start_counts_a_bad_sector_that_hides_keys() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    let store = open("bitcask", &fs, dir, never_merging());
    fill(&*store, 0..20);
    store.sync(store.last_seq()).unwrap();
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    lose(&fs, dir, &name(7));
    let store = open("bitcask", &fs, dir, never_merging());
    assert!(store.status().lost_ranges > 0 && !store.complete());
    let there = (0..20).filter(|n| get(&*store, &name(*n)).is_ok_and(|found| found.is_some())).count();
    assert!((17..20).contains(&there), "{there}");
}

/// A merge writes the loss down for its output before the input goes. Whoever looks in between must
/// not take that for another loss.
#[test]
fn a_loss_counts_once_while_its_file_is_merged_and_after_the_next_start() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    let store = open("bitcask", &fs, dir, never_merging());
    fill(&*store, 0..20);
    store.sync(store.last_seq()).unwrap();
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    lose(&fs, dir, &name(7));
    let store = open("bitcask", &fs, dir, eager());
    let lost = store.status().lost_ranges;
    assert!(lost > 0);
    let is_over = AtomicBool::new(false);
    // The merges can all be over before a busy machine lets the other thread begin.
    let have_begun = Barrier::new(2);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut found = BTreeSet::new();
            have_begun.wait();
            while !is_over.load(Ordering::Acquire) {
                found.insert(store.status().lost_ranges);
            }
            found.insert(store.status().lost_ranges);
            found
        });
        have_begun.wait();
        for _ in 0..5 {
            fill(&*store, 0..20);
            close_file(&*store);
            let merges = store.status().merges;
            let merged = (0..1_000).any(|_| {
                store.maintain(NOW_SECS).unwrap();
                store.status().merges > merges
            });
            assert!(merged);
        }
        is_over.store(true, Ordering::Release);
        let found = looks.join().unwrap();
        assert_eq!(found, BTreeSet::from([lost]));
    });
    store.close().unwrap();
    drop(store);
    assert_eq!(open("bitcask", &fs, dir, eager()).status().lost_ranges, lost);
}

#[test]
fn a_start_on_a_disk_that_fails_as_a_whole_fails() {
    let (fs, dir) = (FaultyFs::new(1), Path::new("/data"));
    let store = open("bitcask", &fs, dir, never_merging());
    fill(&*store, 0..300);
    store.sync(store.last_seq()).unwrap();
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    let files: Vec<_> = data_files(&fs, dir).into_iter().chain(files(&fs, dir, ".fresh")).collect();
    let length = fs.length(&files[0]).unwrap();
    fs.set_unreadable(&files[0], 8192..length.min(800_000)).unwrap();
    let factory = BitcaskFactory::new(fs.clone(), dir, never_merging()).unwrap();
    let error = factory.open(0).err().expect("the store does not open");
    assert_eq!(error.kind(), StoreFailureKind::Io, "{error}");
    fs.set_readable(&files[0]).unwrap();
    let store = factory.open(0).unwrap();
    assert!((0..300).all(|n| !is_unreadable(&*store, n)), "nothing was cut or marked as lost");
}
