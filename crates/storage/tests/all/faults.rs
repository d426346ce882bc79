//! Disks that fail, fill up, corrupt data and block: failures are reported as errors, reads go on,
//! and no wrong data is served.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::fs::{File, FileIdentity, FileLock, FileSystem, OpenMode, RealFs};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, Detail, JournalConfig, KeyRange, LedgerConfig, LeveledFactory,
    MergeConfig, NoTerms, ReadMode, Scope, StorageError, Stored, SyncStrategy,
};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

fn config() -> JournalConfig {
    JournalConfig {
        sync: SyncStrategy::OSync,
        file_bytes_max: 3000,
        merge: MergeConfig { check_interval_secs: 0, io_bytes_per_sec: 1 << 40, ..MergeConfig::default() },
        ..JournalConfig::default()
    }
}

fn open_with(fs: Arc<dyn FileSystem>, root: &Path, config: JournalConfig) -> Result<Arc<dyn Backend>, StorageError> {
    BitcaskFactory::new(fs, root, config)?.open(0)
}

fn open(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    open_with(fs.clone(), Path::new("/data"), config()).unwrap()
}

fn fill(store: &dyn Backend, keys: std::ops::Range<u32>) {
    for n in keys {
        let appended = put(store, format!("key {n}").as_bytes(), &value(n)).unwrap();
        store.sync(appended.seq).unwrap();
    }
}

fn value(n: u32) -> Vec<u8> {
    format!("{n} ").repeat(60).into_bytes()
}

fn check(store: &dyn Backend, keys: std::ops::Range<u32>) {
    for n in keys {
        assert_eq!(get(store, format!("key {n}").as_bytes()).unwrap().unwrap(), value(n), "key {n}");
    }
}

/// The data files of partition 0 in order.
fn data_files(fs: &dyn FileSystem, root: &Path) -> Vec<PathBuf> {
    let dir = root.join("0");
    let mut names = fs.list(&dir).unwrap();
    names.sort();
    names.iter().filter(|name| name.ends_with(".data")).map(|name| dir.join(name)).collect()
}

#[test]
fn a_failed_write_poisons_and_reads_go_on() {
    for nth in 1..4 {
        let fs = FaultyFs::new(nth);
        let store = open(&fs);
        fill(&*store, 0..20);
        fs.fail_at(Call::Write, nth);
        let mut number = 20;
        while put(&*store, format!("key {number}").as_bytes(), &value(number)).is_ok() {
            number += 1;
        }
        if store.status().poisoned.is_none() {
            // The write of a new file's header failed: nothing was written, and the next attempt
            // may succeed.
            fill(&*store, number..number + 1);
            continue;
        }
        assert!(matches!(put(&*store, b"k", b"v"), Err(StorageError::Poisoned(_))));
        assert!(matches!(store.delete(b"key 1"), Err(StorageError::Poisoned(_))));
        assert!(matches!(store.sync(u64::MAX >> 20), Err(StorageError::Poisoned(_))));
        check(&*store, 0..20);
        assert_eq!(store.snapshot().unwrap().next(&Scope::ALL, Detail::Keys, 1000).unwrap().len(), number as usize);
        store.maintain(NOW_SECS).unwrap();
        assert!(matches!(store.close(), Err(StorageError::Poisoned(_))));
        drop(store);
        let store = open(&fs.restart(Loss::Some));
        check(&*store, 0..20);
    }
}

#[test]
fn a_failed_sync_poisons_and_nothing_is_called_durable() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    fill(&*store, 0..5);
    fs.fail_at(Call::SyncData, 1);
    let appended = put(&*store, b"key 5", &value(5)).unwrap();
    assert!(matches!(store.sync(appended.seq), Err(StorageError::Poisoned(text)) if text.contains("fsync")));
    // The next fdatasync would report success, although the data is lost.
    assert!(store.sync(appended.seq).is_err());
    assert!(!store.is_synced(appended.seq));
    assert!(matches!(put(&*store, b"k", b"v"), Err(StorageError::Poisoned(_))));
    check(&*store, 0..6);
    assert!(store.status().poisoned.is_some());
    drop(store);
    check(&*open(&fs.restart(Loss::Some)), 0..5);
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    for free in (0..900).step_by(50) {
        let fs = FaultyFs::new(1);
        let store = open(&fs);
        fill(&*store, 0..20);
        fs.set_free_bytes(Some(free));
        let mut number = 20;
        let error = loop {
            match put(&*store, format!("key {number}").as_bytes(), &value(number)) {
                Ok(appended) => store.sync(appended.seq).unwrap(),
                Err(error) => break error,
            }
            number += 1;
        };
        assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
        assert!(number < 30);
        assert!(store.status().disk_full);
        if free == 0 {
            assert!(matches!(store.delete(b"key 3"), Err(StorageError::DiskFull { .. })));
        }
        check(&*store, 0..number);
        let writes = fs.calls_of(Call::Write);
        for _ in 0..10 {
            assert!(matches!(put(&*store, b"key 99", &value(99)), Err(StorageError::DiskFull { .. })));
        }
        assert_eq!(fs.calls_of(Call::Write), writes, "refused without trying");
        store.maintain(NOW_SECS).unwrap();
        if free % 100 == 0 {
            // The store is killed while the disk is full: the refused write has left nothing
            // behind.
            drop(store);
            let fs = fs.restart(Loss::Nothing);
            let store = open(&fs);
            check(&*store, 0..number);
            assert_eq!(store.status().torn_bytes, 0);
            continue;
        }
        fs.set_free_bytes(None);
        fill(&*store, number..number + 10);
        assert!(!store.status().disk_full);
        assert_eq!(store.status().poisoned, None);
        drop(store);
        let store = open(&fs.restart(Loss::Everything));
        check(&*store, 0..number + 10);
        assert_eq!(store.status().keys, u64::from(number) + 10);
    }
}

#[test]
fn an_unreadable_version_is_an_error() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    fill(&*store, 0..3);
    fs.fail_at(Call::Read, 1);
    assert!(matches!(store.get(b"key 1", ReadMode::Blocking), Err(StorageError::Io { op: "read", .. })));
    assert_eq!(store.status().read_errors, 1);
    check(&*store, 0..3);
}

#[test]
fn flipped_bits_are_never_served_and_never_absent() {
    let mut damaged = 0;
    for seed in 0..300u64 {
        let mut random = Random::new(seed);
        let fs = FaultyFs::new(seed);
        let store = open(&fs);
        fill(&*store, 0..30);
        store.close().unwrap();
        drop(store);
        let files = data_files(&*fs, Path::new("/data"));
        let file = &files[random.below(files.len() as u64) as usize];
        let hint = file.with_extension("hint");
        let bits = fs.length(file).unwrap() * 8;
        // In some cases the hint file is damaged too, so the start must read the data file.
        if seed % 3 == 0 {
            fs.flip_bit(&hint, random.below(fs.length(&hint).unwrap() * 8)).unwrap();
        }
        if seed % 3 != 1 {
            fs.flip_bit(file, random.below(bits)).unwrap();
        }
        if seed % 3 == 1 {
            fs.flip_bit(&hint, random.below(fs.length(&hint).unwrap() * 8)).unwrap();
        }
        let store = open(&fs);
        for n in 0..30 {
            match store.get(format!("key {n}").as_bytes(), ReadMode::Blocking) {
                Ok(None) => assert!(!store.complete(), "seed {seed}: key {n} is silently absent"),
                Ok(stored) => assert_eq!(value_of(stored).unwrap(), value(n)),
                Err(StorageError::Damaged { .. }) => damaged += 1,
                Err(other) => panic!("seed {seed}: {other}"),
            }
        }
        if seed % 3 == 1 {
            check(&*store, 0..30);
        }
    }
    assert!(damaged > 50, "{damaged}");
}

#[test]
fn merging_keeps_what_it_cannot_read() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    fill(&*store, 0..40);
    store.close().unwrap();
    drop(store);
    let files = data_files(&*fs, Path::new("/data"));
    // One bit in the key of the first record, and one in the body of the first record of the next
    // file.
    fs.flip_bit(&files[0], (40 + 48 + 2) * 8).unwrap();
    fs.flip_bit(&files[1], (40 + 48 + 60) * 8).unwrap();
    let store = open(&fs);
    let broken: Vec<u32> = (0..40).filter(|n| get(&*store, format!("key {n}").as_bytes()).is_err()).collect();
    assert_eq!(broken.len(), 2);
    fill(&*store, 100..130);
    for n in (0..40).filter(|n| !broken.contains(n) && n % 4 != 0) {
        store.delete(format!("key {n}").as_bytes()).unwrap();
    }
    for round in 0..50 {
        store.maintain(NOW_SECS + round).unwrap();
    }
    for n in &broken {
        let result = store.get(format!("key {n}").as_bytes(), ReadMode::Blocking);
        assert!(matches!(result, Err(StorageError::Damaged { .. })), "key {n}: {result:?}");
    }
    assert!(store.status().merges > 0);
    // New versions of the broken keys, as from another replica, make the files mergeable again.
    fill(&*store, broken[0]..broken[0] + 1);
    fill(&*store, broken[1]..broken[1] + 1);
    for round in 0..50 {
        store.maintain(NOW_SECS + 100 + round).unwrap();
    }
    check(&*store, 100..130);
    for n in (0..40).step_by(4) {
        check(&*store, n..n + 1);
    }
    drop(store);
    let store = open(&fs.restart(Loss::Everything));
    check(&*store, 100..130);
}

#[test]
fn merges_that_fail_at_any_call_lose_nothing() {
    for call in [Call::Open, Call::Read, Call::Write, Call::SyncData, Call::SyncDir, Call::Rename, Call::Remove] {
        for nth in 1..12 {
            let fs = FaultyFs::new(nth);
            let store = open(&fs);
            fill(&*store, 0..60);
            for n in (0..60).filter(|n| n % 3 != 0) {
                store.delete(format!("key {n}").as_bytes()).unwrap();
            }
            fs.fail_at(call, nth);
            for round in 0..30 {
                let _ = store.maintain(NOW_SECS + round);
            }
            let verify = |store: &dyn Backend| {
                for n in 0..60 {
                    // The injected failure may still wait for its call, so a read is tried twice.
                    let found = (0..2).find_map(|_| get(store, format!("key {n}").as_bytes()).ok()).unwrap();
                    assert_eq!(found, (n % 3 == 0).then(|| value(n)), "{call:?} {nth}: key {n}");
                }
            };
            verify(&*store);
            drop(store);
            let fs = fs.restart(Loss::Nothing);
            let store = open(&fs);
            verify(&*store);
            for round in 0..30 {
                store.maintain(NOW_SECS + round).unwrap();
            }
            verify(&*store);
        }
    }
}

/// A backup gives the copies of an unfinished merge their final names. If that fails, the next
/// start removes the copies, so the originals must still be there.
#[test]
fn a_merge_whose_copies_got_no_names_leaves_the_originals() {
    let mut failed = 0;
    for (nth, is_leveled) in (1..=4).flat_map(|nth| [(nth, false), (nth, true)]) {
        let (fs, dir) = (FaultyFs::new(nth), scratch_dir());
        let mut config = config();
        config.sync = SyncStrategy::None;
        config.file_bytes_max = 1 << 20;
        config.merge.io_bytes_per_sec = 16_000_000;
        let open = |fs: &Arc<FaultyFs>| {
            if !is_leveled {
                return open_with(fs.clone(), dir.path(), config).unwrap();
            }
            let ledger = LedgerConfig { memory_bytes_max: 256 << 10, ..LedgerConfig::default() };
            LeveledFactory::new(fs.clone(), dir.path(), config, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap()
        };
        let store = open(&fs);
        let key = |n: u32| format!("key {n}").into_bytes();
        for round in 0..2u8 {
            for n in (0..6000).filter(|n| round == 0 || n % 4 != 0) {
                put(&*store, &key(n), &[round; 1000]).unwrap();
            }
        }
        store.close().unwrap();
        drop(store);
        // Appends before a start earn no merge budget, so the merge takes several slices.
        let store = open(&fs);
        let start = Instant::now();
        let written = store.status().bytes_written;
        while store.status().bytes_written == written {
            store.maintain(NOW_SECS).unwrap();
            assert!(start.elapsed() < Duration::from_secs(20), "nothing is merged");
        }
        assert_eq!(store.status().merges, 0, "it is under way");
        fs.fail_at(Call::Rename, nth);
        if store.begin_backup().is_ok() {
            continue;
        }
        failed += 1;
        // Writers go on, even if their index must be written meanwhile.
        for n in 6000..12_000 {
            if store.is_behind() {
                store.catch_up().unwrap();
            }
            put(&*store, &key(n), &[1; 100]).unwrap();
            let _ = store.maintain(NOW_SECS);
        }
        // The merge ends or is given up, at the latest when its budget is enough for everything.
        let deadline = Instant::now() + Duration::from_secs(1);
        while store.status().merges == 0 && store.maintain(NOW_SECS).is_ok() && Instant::now() < deadline {}
        let check = |store: &dyn Backend| {
            for n in 0..12_000 {
                let found = get(store, &key(n)).unwrap().map(|value| value[0]);
                let expected = u8::from(n >= 6000 || n % 4 != 0);
                assert_eq!(found, Some(expected), "rename {nth}, leveled {is_leveled}: key {n}");
            }
        };
        check(&*store);
        drop(store);
        let store = open(&fs.restart(Loss::Nothing));
        check(&*store);
        assert!(store.complete());
    }
    assert!(failed > 1, "no backup met the failure");
}

/// An expired version hides an older version that got a later time stamp from a wrong clock, even
/// if only the file of the expired one is merged.
#[test]
fn merging_an_expired_version_brings_no_older_one_back() {
    let fs = FaultyFs::new(1);
    let mut config = JournalConfig { expiry_secs: Some(100), opened_at_secs: NOW_SECS, ..config() };
    config.merge.threshold_small_file_bytes = 0;
    let store = open_with(fs.clone(), Path::new("/data"), config).unwrap();
    put_at(&*store, b"twice", b"older, stamped later", NOW_SECS as u32 + 1000).unwrap();
    fill(&*store, 0..20);
    for n in 0..60 {
        if n == 30 {
            put_at(&*store, b"twice", b"newer, stamped earlier", NOW_SECS as u32 - 50).unwrap();
        }
        put_at(&*store, format!("old {n}").as_bytes(), &value(n), NOW_SECS as u32 - 50).unwrap();
    }
    let keys = store.status().keys;
    for round in 0..10 {
        store.maintain(NOW_SECS + 60 + round).unwrap();
    }
    let status = store.status();
    assert!(status.merges > 0 && status.keys < keys, "{status:?}");
    assert!(get(&*store, b"twice").unwrap().is_none());
    drop(store);
    let config = JournalConfig { opened_at_secs: NOW_SECS + 70, ..config };
    let store = open_with(fs.restart(Loss::Nothing), Path::new("/data"), config).unwrap();
    assert!(get(&*store, b"twice").unwrap().is_none(), "the older version is back");
    check(&*store, 0..20);
}

#[test]
fn a_get_is_one_read_a_put_one_write_and_a_head_one_read_at_most() {
    let fs = FaultyFs::new(1);
    let store =
        open_with(fs.clone(), Path::new("/data"), JournalConfig { sync: SyncStrategy::None, ..config() }).unwrap();
    put(&*store, b"k", &[1; 1000]).unwrap();
    let before = fs.calls();
    put(&*store, b"k", &[2; 1000]).unwrap();
    assert_eq!(fs.calls() - before, 1);
    store.get(b"k", ReadMode::Cached).unwrap().unwrap();
    assert_eq!(fs.calls() - before, 2);
    // A head that is at hand does not say when it was stored.
    let head = |store: &dyn Backend, mode| Stored { stored_secs: None, ..store.head(b"k", mode).unwrap().unwrap() };
    let written = head(&*store, ReadMode::Cached);
    store.get(b"another", ReadMode::Cached).unwrap();
    assert_eq!(fs.calls() - before, 2, "a head that was just written is at hand");
    store.close().unwrap();
    drop(store);
    let store = open_with(fs.clone(), Path::new("/data"), config()).unwrap();
    assert_eq!(head(&*store, ReadMode::Blocking), written);
    let before = fs.calls();
    assert_eq!(head(&*store, ReadMode::Cached), written);
    assert_eq!(fs.calls(), before, "and so is one that was just read");
    fs.set_nothing_is_cached(true);
    assert!(matches!(store.get(b"k", ReadMode::Cached), Err(StorageError::WouldBlock)));
    assert!(store.get(b"k", ReadMode::Blocking).unwrap().is_some());
    assert_eq!(store.status().read_errors, 0, "waiting for the disk is no error");
}

#[test]
fn leveled_answers_heads_folds_and_ordered_listings_without_its_journal() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let open = || {
        let (ledger, terms) = (LedgerConfig::default(), Arc::new(NoTerms));
        LeveledFactory::new(fs.clone(), dir.path(), config(), ledger, terms).unwrap().open(0).unwrap()
    };
    let store = open();
    fill(&*store, 0..50);
    store.close().unwrap();
    drop(store);
    let store = open();
    let before = fs.calls();
    for n in 0..50 {
        let found = store.head(format!("key {n}").as_bytes(), ReadMode::Blocking).unwrap().unwrap();
        assert_eq!((found.head.to_vec(), found.body), (head_of(&value(n)), None));
    }
    let everything = Scope::ALL;
    let mut snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.next(&everything, Detail::Heads, 100).unwrap().len(), 50);
    let range = KeyRange { bucket: b"", from: Bound::Unbounded, to: Bound::Unbounded };
    assert_eq!(store.ordered_snapshot(b"").unwrap().keys_in_order(&range, 100).unwrap().len(), 50);
    assert_eq!(fs.calls(), before, "the journal's file system was asked");
    check(&*store, 0..50);
    assert!(fs.calls() >= before + 50);
}

#[test]
fn empty_partitions_cost_no_file() {
    let fs = FaultyFs::new(1);
    let factory = BitcaskFactory::new(fs.clone(), "/data", config()).unwrap();
    let stores: Vec<_> = (0..64).map(|partition| factory.open(partition).unwrap()).collect();
    for store in &stores {
        store.maintain(NOW_SECS).unwrap();
        store.close().unwrap();
    }
    assert_eq!(fs.calls_of(Call::Open), 0);
    assert_eq!(fs.list(Path::new("/data")).unwrap(), Vec::<String>::new());
}

#[test]
fn a_root_belongs_to_one_process_and_a_partition_to_one_store() {
    let dir = tempfile::tempdir().unwrap();
    let factory = BitcaskFactory::new(Arc::new(RealFs), dir.path(), config()).unwrap();
    let store = factory.open(7).unwrap();
    let error = factory.open(7).err().unwrap().to_string();
    assert!(error.contains("open already"), "{error}");
    let error = BitcaskFactory::new(Arc::new(RealFs), dir.path(), config()).err().unwrap().to_string();
    assert!(error.contains("another process uses this directory"), "{error}");
    drop(factory);
    assert!(BitcaskFactory::new(Arc::new(RealFs), dir.path(), config()).is_err(), "a store is still open");
    drop(store);
    BitcaskFactory::new(Arc::new(RealFs), dir.path(), config()).unwrap().open(7).unwrap();
}

#[test]
fn a_torn_tail_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let open = || open_with(Arc::new(RealFs), dir.path(), JournalConfig { file_bytes_max: 1 << 20, ..config() });
    let store = open().unwrap();
    fill(&*store, 0..10);
    drop(store);
    let path = data_files(&RealFs, dir.path()).pop().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let record = (whole.len() - 40) / 10;
    for cut in [1, 2, 47, 48, 49, 60, record - 1, record, record + 1] {
        std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let _ = std::fs::remove_file(path.with_extension("hint"));
        let store = open().unwrap();
        let left = 10 - cut.div_ceil(record) as u32;
        check(&*store, 0..left);
        assert_eq!(store.status().keys, u64::from(left), "cut by {cut}");
        assert!(store.complete());
        assert_eq!(store.status().torn_bytes > 0, cut % record != 0);
        put(&*store, b"after", b"v").unwrap();
        assert_eq!(get(&*store, b"after").unwrap().unwrap(), b"v");
        drop(store);
        data_files(&RealFs, dir.path()).iter().chain([&path.with_extension("hint")]).for_each(|path| {
            let _ = std::fs::remove_file(path);
        });
        for name in RealFs.list(&dir.path().join("0")).unwrap() {
            let _ = std::fs::remove_file(dir.path().join("0").join(name));
        }
    }
}

#[test]
fn merging_keeps_to_its_budget() {
    let fs = FaultyFs::new(1);
    let mut config = config();
    config.file_bytes_max = 1 << 20;
    config.merge.io_bytes_per_sec = 2_000_000;
    let store = open_with(fs, Path::new("/data"), config).unwrap();
    for round in 0..2u8 {
        for n in 0..4000u32 {
            if round == 0 || n % 4 != 0 {
                put(&*store, format!("key {n}").as_bytes(), &[round; 1000]).unwrap();
            }
        }
    }
    let written = store.status().bytes_written;
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed() < Duration::from_millis(500) {
        store.maintain(NOW_SECS).unwrap();
        calls += 1;
    }
    let merged = store.status().bytes_written - written;
    // Reads use the budget too, so at most the burst and the rate were written.
    let allowed = 2_000_000 / 4 + start.elapsed().as_millis() as u64 * 2000 + (256 << 10);
    assert!(merged > 0 && merged <= allowed, "{merged} bytes in {calls} calls; allowed {allowed}");
}

/// A file system whose data syncs wait until the gate is opened.
struct GatedFs {
    inner: Arc<FaultyFs>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    state: Mutex<(bool, u32)>,
    changed: Condvar,
}

struct GatedFile {
    inner: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl File for GatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<usize> {
        self.inner.read_at(buffer, offset, mode)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.gate.state.lock().unwrap();
        state.1 += 1;
        self.gate.changed.notify_all();
        while !state.0 {
            state = self.gate.changed.wait(state).unwrap();
        }
        drop(state);
        self.inner.sync_data()
    }
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }
}

impl FileSystem for GatedFs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        let is_data = path.extension().is_some_and(|extension| extension == "fresh" || extension == "data");
        Ok(if is_data { Arc::new(GatedFile { inner, gate: self.gate.clone() }) } else { inner })
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.hard_link(from, to)
    }
    fn file_identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.inner.file_identity(path)
    }
    fn os_boot_id(&self) -> io::Result<Option<u128>> {
        self.inner.os_boot_id()
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.remove_dir(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }
}

#[test]
fn one_sync_serves_all_who_wait() {
    let gate = Arc::new(Gate::default());
    let fs = GatedFs { inner: FaultyFs::new(1), gate: gate.clone() };
    let store =
        open_with(Arc::new(fs), Path::new("/data"), JournalConfig { file_bytes_max: 1 << 20, ..config() }).unwrap();
    let first = put(&*store, b"first", b"v").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| store.sync(first.seq).unwrap());
        let mut state = gate.state.lock().unwrap();
        while state.1 == 0 {
            state = gate.changed.wait(state).unwrap();
        }
        drop(state);
        // The first sync is running. These appends are too late for it and share the next one.
        // Reads and puts do not wait.
        for n in 0..20 {
            let appended = put(&*store, format!("key {n}").as_bytes(), b"v").unwrap();
            assert!(!store.is_synced(appended.seq));
            let store = &store;
            scope.spawn(move || store.sync(appended.seq).unwrap());
        }
        assert!(get(&*store, b"key 7").unwrap().is_some());
        gate.state.lock().unwrap().0 = true;
        gate.changed.notify_all();
    });
    assert!(store.is_synced(first.seq + 20));
    assert_eq!(gate.state.lock().unwrap().1, 2);
}

#[test]
fn readers_writers_and_merges_run_together() {
    let config = JournalConfig { sync: SyncStrategy::None, file_bytes_max: 20_000, open_files_max: 3, ..config() };
    let store = open_with(FaultyFs::new(1), Path::new("/data"), config).unwrap();
    fill(&*store, 0..50);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2u64 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let mut random = Random::new(reader + 1);
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let n = random.below(50) as u32;
                    assert_eq!(get(&**store, format!("key {n}").as_bytes()).unwrap().unwrap(), value(n));
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                store.maintain(NOW_SECS).unwrap();
                let mut snapshot = store.snapshot().unwrap();
                assert_eq!(fold(&mut *snapshot, b"", 10).len(), 50);
            }
        });
        let start = Instant::now();
        while store.status().merges < 5 && start.elapsed() < Duration::from_secs(20) {
            for n in 0..50 {
                put(&*store, format!("key {n}").as_bytes(), &value(n)).unwrap();
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(store.status().merges >= 5);
    assert_eq!(store.status().read_errors, 0);
}
