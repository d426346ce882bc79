//! Every known kind of disk fault, on every backend. What was acknowledged with sync stays; damage
//! gives an error or is known to be missing, and never becomes data; a store that cannot write says
//! so and still reads. The tests in `main.rs` crash at any call; here the disk misbehaves while the
//! store runs.

use crate::common::{NOW_SECS, Random};
use crate::power_cut::oracle::{Oracle, key_count, key_of, put};
use crate::power_cut::stores::{Kind, Options};
use crate::power_cut::{Disk, work};
use ombak_storage::fs::sim::{Call, Loss};
use ombak_storage::fs::{FileSystem, OpenMode};
use ombak_storage::{Backend, ReadMode, StorageError, SyncStrategy};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Steps of a history before, during and after a fault.
const STEPS: u64 = 40;
/// Histories for each backend.
const SEEDS: u64 = 40;
/// Puts right before or after a fault.
const PUTS: u64 = 6;

/// A store with a history on a disk that will fail.
struct BackendUnderTest {
    disk: Disk,
    store: Option<Arc<dyn Backend>>,
    oracle: Oracle,
    random: Random,
    when: String,
}

impl BackendUnderTest {
    fn new(kind: Kind, sync: SyncStrategy, seed: u64) -> Self {
        let disk = Disk::new(Options::of_seed(kind, sync, seed), seed);
        let when = format!("{kind:?}, seed {seed}");
        let store = disk.must_open(&when);
        let mut subject = Self { disk, store: Some(store), oracle: Oracle::default(), random: Random::new(seed), when };
        subject.work();
        subject
    }

    fn store(&self) -> &dyn Backend {
        &**self.store.as_ref().expect("open")
    }

    fn work(&mut self) {
        let store = self.store.clone().expect("open");
        work(&self.disk, &*store, &mut self.oracle, &mut self.random, STEPS, true);
    }

    /// While the disk fails, the store serves what was written, durable or not.
    fn check_running(&self) {
        let is_whole = self.oracle.check_damaged(self.store(), self.oracle.acknowledged, &self.when);
        assert!(is_whole, "{}: reads go on", self.when);
    }

    fn restart(&mut self, loss: Loss) {
        self.store = None;
        self.disk.restart(loss);
    }

    /// The disk works again, and nothing that was synced is missing.
    fn check_after(&mut self, loss: Loss) {
        self.restart(loss);
        let durable = if loss == Loss::Nothing { self.oracle.acknowledged } else { self.oracle.synced_seq };
        let store = self.disk.must_open(&self.when);
        self.oracle.check(&*store, durable, &self.when);
        assert!(store.complete(), "{}", self.when);
        self.oracle.check_exactly(&*store, &self.when);
        self.store = Some(store);
    }

    /// The disk has lost data. What cannot be read must be known, at this start and at later ones.
    /// True if everything is there.
    fn check_damaged_after(&mut self, loss: Loss) -> bool {
        let durable = self.oracle.synced_seq;
        let mut is_whole = true;
        for start in 0..3 {
            self.restart(loss);
            let when = format!("{}, start {start}", self.when);
            match self.disk.options.open(&self.disk.fs, &self.disk.root()) {
                Ok(store) => {
                    is_whole &= self.oracle.check_damaged(&*store, durable, &when);
                    let _ = store.maintain(NOW_SECS);
                }
                Err(StorageError::Unusable { .. }) => is_whole = false,
                Err(error) => panic!("{when}: {error}"),
            }
        }
        is_whole
    }

    /// A put that succeeds, or is refused with a reason.
    fn put_or_refusal(&mut self) -> Result<(), StorageError> {
        let key = key_of(self.random.below(key_count()));
        self.put(&key)
    }

    fn put(&mut self, key: &[u8]) -> Result<(), StorageError> {
        let value = format!("last {}", self.random.below(1000)).into_bytes();
        let appended = put(self.store(), key, &value);
        let seq = appended.as_ref().ok().map(|appended| appended.seq);
        self.oracle.record(key, seq, Some(value));
        let seq = appended?.seq;
        self.store().sync(seq)?;
        self.oracle.synced_seq = seq;
        Ok(())
    }

    /// Puts without background work, so the journal has the only copy of them.
    fn puts(&mut self) {
        for n in 0..PUTS {
            let number = self.random.below(key_count());
            // Puts to each of several stores, so that the fault is not in the last record of each
            // file: damage to the last record can look like a torn write.
            self.put(&key_of(number - number % 3 + n % 3)).unwrap();
        }
    }

    /// All files in the store's directories except the locks.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut dirs = vec![self.disk.root()];
        while let Some(dir) = dirs.pop() {
            for name in self.disk.fs.list(&dir).unwrap() {
                let path = dir.join(name);
                match self.disk.fs.length(&path) {
                    Ok(0) => {}
                    Ok(_) => files.push(path),
                    Err(_) => dirs.push(path),
                }
            }
        }
        files.sort();
        files
    }
}

/// Runs a fault on every backend with many histories. The fault must show in some of them.
fn on_all(sync: SyncStrategy, fault: impl Fn(&mut BackendUnderTest) -> bool) {
    for kind in Kind::ALL {
        let shown = (0..SEEDS).filter(|seed| fault(&mut BackendUnderTest::new(kind, sync, *seed))).count();
        assert!(shown > 0, "{kind:?}: the fault never showed");
    }
}

#[test]
fn writes_that_were_not_synced_are_lost() {
    on_all(SyncStrategy::None, |subject| {
        let had_unsynced = subject.oracle.acknowledged > subject.oracle.synced_seq;
        subject.check_after(Loss::Everything);
        had_unsynced
    });
}

#[test]
fn writes_are_torn() {
    on_all(SyncStrategy::OSync, |subject| {
        subject.disk.fs.cut_power_at(1 + subject.random.below(60));
        subject.work();
        subject.check_after(Loss::Some);
        subject.store().status().torn_bytes > 0
    });
}

#[test]
fn bits_flip() {
    on_all(SyncStrategy::OSync, |subject| {
        subject.puts();
        let is_closed = subject.random.below(2) == 0;
        if is_closed {
            subject.store().close().unwrap();
            subject.store = None;
        }
        let files = subject.files();
        let file = &files[subject.random.below(files.len() as u64) as usize];
        let bit = subject.random.below(subject.disk.fs.length(file).unwrap() * 8);
        subject.disk.fs.flip_bit(file, bit).unwrap();
        subject.when += &format!(", bit {bit} of {}", file.display());
        if !is_closed {
            subject.oracle.check_damaged(subject.store(), subject.oracle.acknowledged, &subject.when);
            // Records that are written after the damage say that it had been synced.
            subject.puts();
        }
        !subject.check_damaged_after(Loss::Everything)
    });
}

/// The end of a closed file is cut off. Leveldb has no such files, because its log is removed when
/// it is closed.
#[test]
fn files_are_cut_off() {
    on_all(SyncStrategy::OSync, |subject| {
        subject.store().close().unwrap();
        subject.store = None;
        let mut files = subject.files();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "data"));
        if subject.disk.options.kind == Kind::Leveldb {
            assert!(files.is_empty(), "{files:?}");
            return true;
        }
        let file = &files[subject.random.below(files.len() as u64) as usize];
        let length = subject.random.below(subject.disk.fs.length(file).unwrap());
        let handle = subject.disk.fs.open(file, OpenMode::Write).unwrap();
        handle.truncate(length).unwrap();
        handle.sync_data().unwrap();
        subject.when += &format!(", {} cut to {length}", file.display());
        !subject.check_damaged_after(Loss::Everything)
    });
}

#[test]
fn writes_land_elsewhere() {
    on_all(SyncStrategy::OSync, |subject| {
        subject.disk.fs.misdirect_write_at(1 + subject.random.below(PUTS));
        if subject.random.below(2) == 0 {
            subject.work();
        }
        subject.puts();
        subject.oracle.check_damaged(subject.store(), subject.oracle.acknowledged, &subject.when);
        // A damaged last record of a file looks like a torn write, until the file is completed or
        // gets further records.
        for _ in 0..PUTS {
            let _ = subject.store().maintain(NOW_SECS);
        }
        subject.puts();
        !subject.check_damaged_after(Loss::Nothing)
    });
}

#[test]
fn reads_and_writes_are_short() {
    on_all(SyncStrategy::OSync, |subject| {
        subject.disk.fs.set_transfers_are_short(true);
        subject.work();
        subject.check_running();
        subject.restart(Loss::Everything);
        subject.disk.fs.set_transfers_are_short(true);
        subject.check_after(Loss::Everything);
        true
    });
}

/// A read that finds the end of a file too early is an error, and a start does not truncate the
/// file because of it.
#[test]
fn reads_end_early() {
    on_all(SyncStrategy::OSync, |subject| {
        let number = 1 + subject.random.below(20);
        subject.disk.fs.end_read_early_at(number);
        let mut errors =
            u64::from(!subject.oracle.check_damaged(subject.store(), subject.oracle.acknowledged, &subject.when));
        subject.restart(Loss::Nothing);
        subject.disk.fs.end_read_early_at(number);
        match subject.disk.options.open(&subject.disk.fs, &subject.disk.root()) {
            Ok(store) => {
                let is_whole = subject.oracle.check_damaged(&*store, subject.oracle.synced_seq, &subject.when);
                errors += u64::from(!is_whole);
            }
            Err(_) => errors += 1,
        }
        subject.restart(Loss::Everything);
        subject.disk.fs.end_read_early_at(u64::MAX);
        let store = subject.disk.must_open(&subject.when);
        subject.oracle.check_damaged(&*store, subject.oracle.synced_seq, &subject.when);
        errors > 0
    });
}

const CALLS: [Call; 9] = [
    Call::Open,
    Call::Read,
    Call::Write,
    Call::SyncData,
    Call::SyncDir,
    Call::Truncate,
    Call::Rename,
    Call::Remove,
    Call::Other,
];

/// Any call fails once while the store works. The error is reported, nothing is lost, and a
/// poisoned store still reads.
#[test]
fn calls_fail_with_errors() {
    for call in CALLS {
        on_all(SyncStrategy::OSync, |subject| {
            subject.when += &format!(", {call:?} fails");
            let before = subject.disk.fs.calls_of(call);
            let number = 1 + subject.random.below(6);
            subject.disk.fs.fail_at(call, number);
            subject.work();
            let has_failed = subject.disk.fs.calls_of(call) - before >= number;
            if !has_failed {
                // The call that should fail will not come.
                subject.disk.fs.fail_at(call, u64::MAX);
            }
            subject.check_running();
            let is_poisoned = subject.store().status().poisoned.is_some();
            match subject.put_or_refusal() {
                Ok(()) => assert!(!is_poisoned || subject.disk.options.kind == Kind::Multi, "{}", subject.when),
                Err(error) => {
                    assert!(is_poisoned && matches!(error, StorageError::Poisoned(_)), "{}: {error}", subject.when)
                }
            }
            subject.check_after(Loss::Everything);
            // Truncation happens only after a failure, and a leveldb store reads its log only when
            // it starts.
            let is_rare = call == Call::Truncate
                || (subject.disk.options.kind == Kind::Leveldb && matches!(call, Call::Read | Call::Other));
            has_failed || is_rare
        });
    }
}

/// Any call fails once while a store starts. The store does not start, or it is whole; at the next
/// start it is whole.
#[test]
fn calls_fail_during_a_start() {
    for call in CALLS {
        on_all(SyncStrategy::OSync, |subject| {
            subject.when += &format!(", {call:?} fails at a start");
            subject.restart(Loss::Some);
            let before = subject.disk.fs.calls_of(call);
            let number = 1 + subject.random.below(6);
            subject.disk.fs.fail_at(call, number);
            let store = subject.disk.open();
            let has_failed = subject.disk.fs.calls_of(call) - before >= number;
            subject.disk.fs.fail_at(call, u64::MAX);
            if let Some(store) = store {
                let durable = subject.oracle.synced_seq;
                assert!(subject.oracle.check_damaged(&*store, durable, &subject.when), "{}", subject.when);
                assert!(store.complete(), "{}", subject.when);
            }
            subject.check_after(Loss::Everything);
            has_failed || matches!(call, Call::Truncate | Call::Remove)
        });
    }
}

#[test]
fn the_disk_is_full() {
    on_all(SyncStrategy::OSync, |subject| {
        subject.disk.fs.set_free_bytes(Some(subject.random.below(4000)));
        subject.work();
        subject.disk.fs.set_free_bytes(Some(0));
        let refusal = subject.put_or_refusal();
        assert!(matches!(refusal, Err(StorageError::DiskFull { .. })), "{}: {refusal:?}", subject.when);
        assert!(subject.store().status().disk_full, "{}", subject.when);
        assert_eq!(subject.store().status().poisoned, None, "{}", subject.when);
        subject.check_running();
        // A store that starts on a full disk can be read, too.
        subject.restart(Loss::Everything);
        subject.disk.fs.set_free_bytes(Some(0));
        let store = subject.disk.must_open(&subject.when);
        subject.oracle.check(&*store, subject.oracle.synced_seq, &subject.when);
        subject.store = Some(store);
        // The start may have removed what a crash left behind, so the disk is filled again.
        subject.disk.fs.set_free_bytes(Some(0));
        let refusal = subject.put_or_refusal();
        assert!(matches!(refusal, Err(StorageError::DiskFull { .. })), "{}: {refusal:?}", subject.when);
        subject.disk.fs.set_free_bytes(None);
        subject.work();
        subject.put_or_refusal().unwrap();
        subject.check_running();
        subject.check_after(Loss::Everything);
        true
    });
}

#[test]
fn a_sync_fails() {
    on_all(SyncStrategy::OSync, |subject| {
        // A store of the multi backend that was never written to is created by its first put, and a
        // failure of that sync says nothing of the journal.
        subject.puts();
        let synced_seq = subject.oracle.synced_seq;
        subject.disk.fs.fail_at(Call::SyncData, 1);
        let refusal = subject.put_or_refusal();
        assert!(matches!(refusal, Err(StorageError::Poisoned(_))), "{}: {refusal:?}", subject.when);
        assert!(subject.store().status().poisoned.is_some());
        // The next sync would report success, although data is lost.
        assert!(subject.store().sync(subject.oracle.acknowledged).is_err(), "{}", subject.when);
        assert!(!subject.store().is_synced(subject.oracle.acknowledged), "{}", subject.when);
        subject.oracle.synced_seq = synced_seq;
        subject.check_running();
        subject.check_after(Loss::Some);
        true
    });
}

/// While the disk does not answer, nothing is acknowledged that waits for it, and reads from memory
/// do not wait.
#[test]
fn the_disk_does_not_answer() {
    for kind in Kind::ALL {
        let mut subject = BackendUnderTest::new(kind, SyncStrategy::OSync, 2);
        subject.put_or_refusal().unwrap();
        let (fs, store) = (subject.disk.fs.clone(), subject.store.clone().unwrap());
        let key = key_of(0);
        fs.hold(Call::SyncData);
        let appended = put(&*store, &key, b"waits").unwrap();
        subject.oracle.record(&key, Some(appended.seq), Some(b"waits".to_vec()));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| store.sync(appended.seq));
            fs.wait_for_held(Call::SyncData);
            assert!(!waiting.is_finished() && !store.is_synced(appended.seq), "{kind:?}");
            subject.check_running();
            fs.release(Call::SyncData);
            waiting.join().unwrap().unwrap();
        });
        assert!(store.is_synced(appended.seq), "{kind:?}");
        fs.hold(Call::Write);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| put(&*store, &key, b"waits longer"));
            fs.wait_for_held(Call::Write);
            subject.check_running();
            fs.release(Call::Write);
            waiting.join().unwrap().unwrap();
        });
        fs.hold(Call::Read);
        for number in 0..key_count() {
            let read = store.get(&key_of(number), ReadMode::Cached);
            assert!(matches!(read, Ok(_) | Err(StorageError::WouldBlock)), "{kind:?}: {read:?}");
        }
        fs.release(Call::Read);
        assert_eq!(store.status().read_errors, 0, "{kind:?}");
        store.maintain(NOW_SECS).unwrap();
    }
}

/// A path that is not a directory of stores gives an error that names it.
#[test]
fn what_is_in_the_way_is_named() {
    for kind in Kind::ALL {
        let disk = Disk::new(Options::of_seed(kind, SyncStrategy::OSync, 0), 1);
        disk.fs.create_dir_all(disk.dir.path()).unwrap();
        ombak_storage::fs::replace_file(&*disk.fs, &disk.root(), b"a file").unwrap();
        let error = disk.options.open(&disk.fs, &disk.root()).err().expect("it cannot be opened").to_string();
        let root: &Path = &disk.root();
        assert!(error.contains(&root.display().to_string()), "{kind:?}: {error}");
    }
}
