//! Losses of power and kills at random and at all moments, on every backend with files. What was
//! acknowledged as durable is there, no torn data is served, nothing that was durably superseded
//! comes back, and a damaged ledger is detected.
//!
//! Every life has a seed. A failure prints it, and `OMBAK_CRASH_SEED` runs only that life.
//! `OMBAK_CRASH_POINTS` is the total number of crashes.

mod faults;
mod ledgers;
mod missing;
mod oracle;
mod stores;

use crate::common::{NOW_SECS, Random, get, scratch_dir};
use ledgers::Ledgers;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{Backend, StorageError, SyncStrategy};
use oracle::{Oracle, key_count, key_of, put};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stores::{BUCKETS, Kind, Options};

/// Crashes in `make test`, over all backends and strategies.
const CRASH_POINTS: u64 = 10_000;
/// Losses of power in one life.
const GENERATIONS: u64 = 3;
/// The most calls of a generation before the power is cut.
const CALLS_MAX: u64 = 500;
/// The most calls of a start before the power is cut again.
const START_CALLS_MAX: u64 = 60;
/// The most losses of power in a row, each during the start after the previous one.
const STARTS_CUT_MAX: u64 = 3;
/// Values are extended to at most this many bytes.
const EXTENDED_BYTES_MAX: usize = 40_000;
/// For each backend, without and with corrupted ledgers: its share of the crashes in per cent.
const LIVE_SHARES: [(Kind, bool, u64); 8] = [
    (Kind::Bitcask, false, 20),
    (Kind::Bitcask, true, 5),
    (Kind::Leveled, false, 20),
    (Kind::Leveled, true, 10),
    (Kind::Leveldb, false, 20),
    (Kind::Leveldb, true, 5),
    (Kind::Multi, false, 17),
    (Kind::Multi, true, 3),
];

/// A disk with a store on it.
struct Disk {
    dir: tempfile::TempDir,
    fs: Arc<FaultyFs>,
    options: Options,
}

impl Disk {
    fn new(options: Options, seed: u64) -> Self {
        Self { dir: scratch_dir(), fs: FaultyFs::new(seed), options }
    }

    fn root(&self) -> std::path::PathBuf {
        self.dir.path().join("store")
    }

    fn open(&self) -> Option<Arc<dyn Backend>> {
        self.options.open(&self.fs, &self.root()).ok()
    }

    fn must_open(&self, when: &str) -> Arc<dyn Backend> {
        self.options.open(&self.fs, &self.root()).unwrap_or_else(|error| panic!("{when}: does not open: {error}"))
    }

    fn restart(&mut self, loss: Loss) {
        self.fs = self.fs.restart(loss);
    }
}

/// Runs operations until the power is cut or `steps` are done. With `extends`, some of them add to
/// values.
fn work(disk: &Disk, store: &dyn Backend, oracle: &mut Oracle, random: &mut Random, steps: u64, extends: bool) {
    let mut snapshots = Vec::new();
    for step in 0..steps {
        if disk.fs.is_off() {
            return;
        }
        let key = key_of(random.below(key_count()));
        match random.below(100) {
            0..15 if extends => {
                let Ok(Some(value)) = get(store, &key) else { continue };
                let length = random.below(9000) as usize;
                if value.len() + length > EXTENDED_BYTES_MAX {
                    continue;
                }
                let added = format!("+{step}.{}", "y".repeat(length)).into_bytes();
                let seq = oracle::extend(store, &key, &value, &added).ok().map(|appended| appended.seq);
                oracle.record(&key, seq, Some([value, added].concat()));
                sync_if_configured(store, oracle, seq);
            }
            0..55 => {
                let length = random.below(500) as usize;
                let value = format!("{step}.{}.{}", random.below(1000), "x".repeat(length)).into_bytes();
                let result = put(store, &key, &value);
                let seq = result.ok().map(|appended| appended.seq);
                oracle.record(&key, seq, Some(value));
                sync_if_configured(store, oracle, seq);
            }
            55..72 => match store.delete(&key) {
                Ok(None) => {}
                result => {
                    let seq = result.ok().flatten().map(|appended| appended.seq);
                    oracle.record(&key, seq, None);
                    sync_if_configured(store, oracle, seq);
                }
            },
            72..76 => sync(store, oracle, oracle.acknowledged),
            76 if snapshots.len() < 2 => snapshots.extend(store.snapshot()),
            77 => drop(snapshots.pop()),
            78 if step % 4 == 0 => drop(store.ordered_snapshot(BUCKETS[step as usize % BUCKETS.len()])),
            _ => {
                let _ = store.maintain(NOW_SECS);
            }
        }
        // A background sync counts as soon as the store reports it.
        if oracle.acknowledged > 0 && store.is_synced(oracle.acknowledged) {
            oracle.synced_seq = oracle.acknowledged;
        }
    }
}

fn sync_if_configured(store: &dyn Backend, oracle: &mut Oracle, seq: Option<u64>) {
    if let Some(seq) = seq.filter(|_| store.sync_each_write()) {
        sync(store, oracle, seq);
    }
}

fn sync(store: &dyn Backend, oracle: &mut Oracle, seq: u64) {
    if seq > 0 && store.sync(seq).is_ok() {
        oracle.synced_seq = oracle.synced_seq.max(seq);
    }
}

/// Totals over all lives of a test.
#[derive(Default)]
struct Totals {
    crashes: AtomicU64,
    /// The crashes among them that were during a start.
    starts_cut: AtomicU64,
    merges: AtomicU64,
    damaged: AtomicU64,
}

fn loss_of(random: &mut Random) -> Loss {
    [Loss::Everything, Loss::Some, Loss::Some, Loss::Nothing][random.below(4) as usize]
}

/// Stops some starts at any of their calls. Returns how many, and whether the machine kept its
/// power all the time.
fn cut_starts(disk: &mut Disk, random: &mut Random) -> (u64, bool) {
    let (mut count, mut had_power) = (0, true);
    while count < STARTS_CUT_MAX && random.below(3) == 0 {
        let loss = loss_of(random);
        let ledgers = Ledgers::watch(&disk.fs, &disk.root());
        disk.fs.cut_power_at(1 + random.below(START_CALLS_MAX));
        drop(disk.open());
        if loss != Loss::Nothing {
            had_power = false;
            ledgers.lock().unwrap().crash(random);
        }
        disk.restart(loss);
        count += 1;
    }
    (count, had_power)
}

/// One life of a disk: several losses of power, each followed by merging and a clean restart. With
/// `corrupts_ledgers`, the last loss also corrupts ledgers.
fn live(seed: u64, options: Options, corrupts_ledgers: bool, totals: &Totals) {
    let mut random = Random::new(seed);
    let mut disk = Disk::new(options, seed);
    let mut oracle = Oracle::default();
    for generation in 0..GENERATIONS {
        let loss = loss_of(&mut random);
        let when = format!("generation {generation}, loss {loss:?}");
        let ledgers = Ledgers::watch(&disk.fs, &disk.root());
        disk.fs.cut_power_at(1 + random.below(CALLS_MAX));
        if let Some(store) = disk.open() {
            // What a start found is durable, as `check_seqs` checks.
            work(&disk, &*store, &mut oracle, &mut random, 200, true);
            totals.merges.fetch_add(store.status().merges, Ordering::Relaxed);
        }
        let durable = if loss == Loss::Nothing { oracle.acknowledged } else { oracle.synced_seq };
        totals.crashes.fetch_add(1, Ordering::Relaxed);
        // After a kill, the library's files are as it left them.
        if loss != Loss::Nothing {
            ledgers.lock().unwrap().crash(&mut random);
        }
        disk.restart(loss);
        let (starts_cut, had_power) = cut_starts(&mut disk, &mut random);
        totals.crashes.fetch_add(starts_cut, Ordering::Relaxed);
        totals.starts_cut.fetch_add(starts_cut, Ordering::Relaxed);
        let durable = if had_power { durable } else { oracle.synced_seq };
        let when = format!("{when}, {starts_cut} starts cut");
        if corrupts_ledgers && generation + 1 == GENERATIONS {
            let damage = ledgers.lock().unwrap().rot(&mut random);
            return check_rotten(&mut disk, oracle, durable, &format!("{when}, {damage}"), totals);
        }
        let store = disk.must_open(&when);
        oracle.check_seqs(&*store, durable, &when);
        oracle.check(&*store, durable, &when);
        assert!(store.complete(), "{when}: a crash was taken for rot");
        for _ in 0..6 {
            store.maintain(NOW_SECS).unwrap();
        }
        oracle.check_exactly(&*store, &format!("{when}, after merging"));
        // Whatever was there after the restart must be there after another one, merged or not.
        if random.below(2) == 0 {
            store.close().unwrap();
        }
        drop(store);
        disk.restart(Loss::Everything);
        let store = disk.must_open(&when);
        oracle.check_exactly(&*store, &format!("{when}, after a second loss"));
    }
}

/// A store with corrupted ledgers serves nothing wrong, and nothing is silently absent. If the
/// journal has everything, everything is there again after at most one more start; otherwise the
/// store may refuse to open.
fn check_rotten(disk: &mut Disk, mut oracle: Oracle, durable: u64, when: &str, totals: &Totals) {
    let may_refuse = disk.options.kind.has_data_in_ledger();
    let mut is_whole = true;
    for start in 0..2 {
        let when = format!("{when}, start {start} after it");
        let store = match disk.options.open(&disk.fs, &disk.root()) {
            Ok(store) => store,
            Err(StorageError::Unusable { .. }) if may_refuse => {
                is_whole = false;
                break;
            }
            Err(error) => panic!("{when}: {error}"),
        };
        if start == 1 && !may_refuse {
            oracle.check(&*store, durable, &when);
            oracle.check_exactly(&*store, &when);
            break;
        }
        is_whole &= oracle.check_damaged(&*store, durable, &when);
        for _ in 0..3 {
            let _ = store.maintain(NOW_SECS);
        }
        oracle::read_in_order(&*store);
        is_whole &= oracle.check_damaged(&*store, durable, &when);
        drop(store);
        disk.restart(Loss::Everything);
    }
    totals.damaged.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// Runs lives until this test has its share of all crashes.
fn lives(kind: Kind, corrupts_ledgers: bool) {
    let share_percent =
        LIVE_SHARES.iter().find(|share| (share.0, share.1) == (kind, corrupts_ledgers)).expect("each has a share").2;
    let totals = Totals::default();
    let one = |seed: u64| {
        let strategies = [SyncStrategy::OSync, SyncStrategy::None, SyncStrategy::Interval(Duration::ZERO)];
        let options = Options::of_seed(kind, strategies[seed as usize % 3], seed / 3);
        let life = std::panic::AssertUnwindSafe(|| live(seed, options, corrupts_ledgers, &totals));
        if let Err(panic) = std::panic::catch_unwind(life) {
            eprintln!("{kind:?}: OMBAK_CRASH_SEED={seed} runs this life alone ({options:?})");
            std::panic::resume_unwind(panic);
        }
    };
    if let Some(seed) = number_of("OMBAK_CRASH_SEED") {
        return one(seed);
    }
    let wanted = (number_of("OMBAK_CRASH_POINTS").unwrap_or(CRASH_POINTS) * share_percent).div_ceil(100);
    for seed in 0.. {
        if totals.crashes.load(Ordering::Relaxed) >= wanted {
            break;
        }
        one(seed);
    }
    let Totals { crashes, starts_cut, merges, damaged } = totals;
    let [crashes, starts_cut, merges, damaged] = [crashes, starts_cut, merges, damaged].map(AtomicU64::into_inner);
    println!(
        "{kind:?}: {crashes} crashes, {starts_cut} of them during a start, {merges} merges, {damaged} stores with damage that showed"
    );
    assert!(crashes >= wanted && starts_cut > crashes / 10, "{crashes} crashes, {starts_cut} during a start");
    assert!(kind == Kind::Leveldb || merges * 10 > crashes, "only {merges} merges: the histories are too tame");
    assert!(!corrupts_ledgers || !kind.has_data_in_ledger() || damaged > 0, "no damage showed");
}

/// The shares of the tests below add up to all crashes.
#[test]
fn shares_are_the_whole() {
    assert_eq!(LIVE_SHARES.iter().map(|share| share.2).sum::<u64>(), 100);
    assert!(Kind::ALL.iter().all(|kind| {
        [false, true]
            .iter()
            .all(|corrupts_ledgers| LIVE_SHARES.iter().any(|share| (share.0, share.1) == (*kind, *corrupts_ledgers)))
    }));
}

#[test]
fn bitcask_survives() {
    lives(Kind::Bitcask, false);
}

#[test]
fn bitcask_survives_damage_to_its_order() {
    lives(Kind::Bitcask, true);
}

#[test]
fn leveled_survives() {
    lives(Kind::Leveled, false);
}

#[test]
fn leveled_survives_damage_to_its_ledger() {
    lives(Kind::Leveled, true);
}

#[test]
fn leveldb_survives() {
    lives(Kind::Leveldb, false);
}

#[test]
fn leveldb_survives_damage_to_its_ledger() {
    lives(Kind::Leveldb, true);
}

#[test]
fn multi_survives() {
    lives(Kind::Multi, false);
}

#[test]
fn multi_survives_damage_to_its_ledgers() {
    lives(Kind::Multi, true);
}

/// A fixed history with closed files, hint files, merges, flushed ledgers and a close, cut at each
/// of its calls.
#[test]
fn power_may_go_at_every_call() {
    for kind in Kind::ALL {
        let options = Options::of_seed(kind, SyncStrategy::None, 0);
        let run = |disk: &Disk, oracle: &mut Oracle| {
            let Some(store) = disk.open() else { return };
            work(disk, &*store, oracle, &mut Random::new(7), 60, true);
            for _ in 0..6 {
                let _ = store.maintain(NOW_SECS);
            }
            if store.close().is_ok() {
                oracle.synced_seq = oracle.acknowledged;
            }
        };
        let whole = Disk::new(options, 3);
        run(&whole, &mut Oracle::default());
        let calls = whole.fs.calls();
        assert!(calls > 100, "{calls}");
        for call in 1..=calls + 1 {
            for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
                let when = format!("{kind:?}, call {call}, loss {loss:?}");
                let mut disk = Disk::new(options, call);
                let mut oracle = Oracle::default();
                let ledgers = Ledgers::watch(&disk.fs, &disk.root());
                disk.fs.cut_power_at(call);
                run(&disk, &mut oracle);
                let durable = if loss == Loss::Nothing { oracle.acknowledged } else { oracle.synced_seq };
                if loss != Loss::Nothing {
                    ledgers.lock().unwrap().crash(&mut Random::new(call));
                }
                disk.restart(loss);
                let store = disk.must_open(&when);
                oracle.check(&*store, durable, &when);
                for _ in 0..8 {
                    store.maintain(NOW_SECS).unwrap();
                }
                oracle.check_exactly(&*store, &format!("{when}, after merging"));
            }
        }
    }
}

/// A drop that a loss of power interrupts leaves the whole store, or none of it.
#[test]
fn a_drop_happens_or_does_not() {
    for kind in [Kind::Bitcask, Kind::Leveled, Kind::Leveldb] {
        let options = Options::of_seed(kind, SyncStrategy::OSync, 0);
        for call in 1..40 {
            for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
                let mut disk = Disk::new(options, call);
                let store = disk.must_open("new");
                for n in 0..30 {
                    put(&*store, format!("key {n}").as_bytes(), &[b'v'; 300]).unwrap();
                }
                store.sync(30).unwrap();
                store.maintain(NOW_SECS).unwrap();
                disk.fs.cut_power_at(call);
                let dropped = store.drop_partition().is_ok();
                drop(store);
                disk.restart(loss);
                let when = format!("{kind:?}, call {call}, loss {loss:?}");
                let store = disk.must_open(&when);
                let keys = store.status().keys;
                assert!(if dropped { keys == 0 } else { keys == 0 || keys == 30 }, "{when}: {keys} keys");
                assert!(store.complete(), "{when}");
                let names = disk.fs.list(Path::new(&disk.root())).unwrap();
                assert!(names.iter().all(|name| !name.contains("dropped")), "{names:?}");
                if keys == 0 {
                    put(&*store, b"key", b"value").unwrap();
                    assert_eq!(store.status().keys, 1);
                }
            }
        }
    }
}
