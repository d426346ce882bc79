//! Losses of power and kills at random and at all moments: what was acknowledged as durable is there, nothing is torn,
//! and nothing that was superseded durably comes back.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use common::*;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, MergeConfig, SyncStrategy};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const KEYS: u64 = 12;
const PARTITION: u32 = 5;

fn config(sync: SyncStrategy, is_eager: bool) -> JournalConfig {
    // Lazy merging leaves dead versions in files outside, for tombstones to hide.
    let (trigger_fragmentation_percent, threshold_fragmentation_percent) = if is_eager { (30, 10) } else { (60, 50) };
    JournalConfig {
        sync,
        file_bytes_max: 3000,
        merge: MergeConfig {
            check_interval_secs: 0,
            trigger_fragmentation_percent,
            threshold_fragmentation_percent,
            threshold_small_file_bytes: 0,
            io_bytes_per_sec: 1 << 40,
            ..MergeConfig::default()
        },
        open_files_max: 3,
        opened_at_secs: NOW_SECS,
        ..JournalConfig::default()
    }
}

fn open(fs: &Arc<FaultyFs>, sync: SyncStrategy) -> Option<Arc<dyn Backend>> {
    open_with(fs, config(sync, true))
}

fn open_with(fs: &Arc<FaultyFs>, config: JournalConfig) -> Option<Arc<dyn Backend>> {
    let factory = BitcaskFactory::new(fs.clone(), "/data", config).ok()?;
    factory.open(PARTITION).ok()
}

/// One thing that happened to a key.
#[derive(Clone, Debug)]
struct Event {
    /// None for a call that failed: it may have happened or not.
    seq: Option<u64>,
    value: Option<Vec<u8>>,
}

/// What may be found of each key: everything from its last durable event on.
#[derive(Default)]
struct Oracle {
    events: BTreeMap<Vec<u8>, Vec<Event>>,
    synced_seq: u64,
    acknowledged: u64,
}

impl Oracle {
    fn record(&mut self, key: &[u8], seq: Option<u64>, value: Option<Vec<u8>>) {
        self.acknowledged = self.acknowledged.max(seq.unwrap_or(0));
        self.events.entry(key.to_vec()).or_default().push(Event { seq, value });
    }

    /// Compares a store with what may be there; what is found is the truth from now on.
    fn check(&mut self, store: &dyn Backend, durable_seq: u64, when: &str) {
        for number in 0..KEYS {
            let key = format!("key {number}").into_bytes();
            let found = get(store, &key).unwrap_or_else(|error| panic!("{when}: {error}"));
            let events = self.events.entry(key).or_default();
            let durable = events.iter().rposition(|event| event.seq.is_some_and(|seq| seq <= durable_seq));
            let allowed = &events[durable.unwrap_or(0)..];
            let is_allowed = allowed.iter().any(|event| event.value == found) || (durable.is_none() && found.is_none());
            let short = |value: &Option<Vec<u8>>| {
                value.as_ref().map(|v| String::from_utf8_lossy(&v[..v.len().min(8)]).into_owned())
            };
            assert!(
                is_allowed,
                "{when}: key {number} is {:?}, durable up to {durable_seq}, history {:?}",
                short(&found),
                events.iter().map(|event| (event.seq, short(&event.value))).collect::<Vec<_>>()
            );
            *events = vec![Event { seq: Some(0), value: found }];
        }
        (self.synced_seq, self.acknowledged) = (0, 0);
    }

    /// What is there now, exactly.
    fn check_exactly(&self, store: &dyn Backend, when: &str) {
        for (key, events) in &self.events {
            assert_eq!(&get(store, key).unwrap(), &events.last().unwrap().value, "{when}");
        }
        let present: Vec<_> = self.events.iter().filter(|(_, events)| events.last().unwrap().value.is_some()).collect();
        assert_eq!(fold(&mut *store.snapshot().unwrap(), b"", 5).len(), present.len(), "{when}");
    }
}

/// Runs operations until the power goes or `steps` are done.
fn work(fs: &FaultyFs, store: &dyn Backend, oracle: &mut Oracle, random: &mut Random, steps: u64, generation: u64) {
    let mut snapshots = Vec::new();
    for step in 0..steps {
        if fs.is_off() {
            return;
        }
        let key = format!("key {}", random.below(KEYS)).into_bytes();
        match random.below(100) {
            0..55 => {
                let length = random.below(700) as usize;
                let value = format!("{generation}.{step}.{}", "x".repeat(length)).into_bytes();
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
            _ => {
                let _ = store.maintain(NOW_SECS);
            }
        }
        // A background sync counts as soon as the store says so.
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

/// One life of a disk: several losses of power, each followed by merging and a clean restart.
fn live(seed: u64, strategy: SyncStrategy) -> u64 {
    let config = config(strategy, seed.is_multiple_of(2));
    let mut random = Random::new(seed);
    let mut fs = FaultyFs::new(seed);
    let mut oracle = Oracle::default();
    let mut merges = 0;
    for generation in 0..3 {
        let loss = [Loss::Everything, Loss::Some, Loss::Some, Loss::Nothing][random.below(4) as usize];
        let when = format!("seed {seed}, {strategy:?}, generation {generation}, loss {loss:?}");
        let steps = 100 + random.below(200);
        fs.cut_power_at(1 + random.below(700));
        let mut seq_base = 0;
        if let Some(store) = open_with(&fs, config) {
            // What a start found is durable: it says so itself.
            work(&fs, &*store, &mut oracle, &mut random, steps, generation);
            merges += store.status().merges;
            seq_base = oracle.synced_seq;
        }
        let durable = if loss == Loss::Nothing { oracle.acknowledged } else { seq_base };
        fs = fs.restart(loss);
        let store = open_with(&fs, config).unwrap_or_else(|| panic!("{when}: does not open"));
        oracle.check(&*store, durable, &when);
        assert!(store.complete(), "{when}: a crash was taken for rot");
        for _ in 0..20 {
            store.maintain(NOW_SECS).unwrap();
        }
        oracle.check_exactly(&*store, &format!("{when}, after merging"));
        // Merged or not, what was there after the restart must be there after another.
        if random.below(2) == 0 {
            store.close().unwrap();
        }
        drop(store);
        fs = fs.restart(Loss::Everything);
        let store = open_with(&fs, config).unwrap();
        oracle.check_exactly(&*store, &format!("{when}, after a second loss"));
    }
    merges
}

/// How many times more than in `make test`: `make soak` sets it.
fn soak_rounds() -> u64 {
    std::env::var("OMBAK_SOAK_ROUNDS").map_or(1, |rounds| rounds.parse().expect("OMBAK_SOAK_ROUNDS is a number"))
}

#[test]
fn synced_writes_survive_any_loss_of_power() {
    let merges: u64 = (0..400 * soak_rounds()).map(|seed| live(seed, SyncStrategy::OSync)).sum();
    assert!(merges > 100, "only {merges} merges: the histories are too tame");
}

#[test]
fn unsynced_writes_are_lost_whole_or_not_at_all() {
    let merges: u64 = (1 << 32..(1 << 32) + 400 * soak_rounds()).map(|seed| live(seed, SyncStrategy::None)).sum();
    assert!(merges > 100, "only {merges} merges: the histories are too tame");
}

#[test]
fn at_an_interval_only_what_came_after_the_last_sync_is_lost() {
    for seed in 2 << 32..(2 << 32) + 250 * soak_rounds() {
        live(seed, SyncStrategy::Interval(Duration::ZERO));
    }
}

/// A fixed history with rolls, hints, a merge and a close, cut at each of its calls.
#[test]
fn power_may_go_at_every_call() {
    let run = |fs: &Arc<FaultyFs>, oracle: &mut Oracle| {
        let Some(store) = open(fs, SyncStrategy::None) else { return };
        let mut random = Random::new(7);
        work(fs, &*store, oracle, &mut random, 60, 0);
        for _ in 0..6 {
            let _ = store.maintain(NOW_SECS);
        }
        if store.close().is_ok() {
            oracle.synced_seq = oracle.acknowledged;
        }
    };
    let whole = FaultyFs::new(3);
    run(&whole, &mut Oracle::default());
    let calls = whole.calls();
    assert!(calls > 100, "{calls}");
    for call in 1..=calls + 1 {
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let fs = FaultyFs::new(call);
            let mut oracle = Oracle::default();
            fs.cut_power_at(call);
            run(&fs, &mut oracle);
            let durable = if loss == Loss::Nothing { oracle.acknowledged } else { oracle.synced_seq };
            let fs = fs.restart(loss);
            let store = open(&fs, SyncStrategy::None).unwrap();
            oracle.check(&*store, durable, &format!("call {call}, loss {loss:?}"));
            for _ in 0..8 {
                store.maintain(NOW_SECS).unwrap();
            }
            oracle.check_exactly(&*store, &format!("call {call}, loss {loss:?}, after merging"));
        }
    }
}

/// A drop that the power interrupts leaves the whole store or none of it, once the drop was begun.
#[test]
fn a_drop_happens_or_does_not() {
    for call in 1..40 {
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let fs = FaultyFs::new(call);
            let store = open(&fs, SyncStrategy::OSync).unwrap();
            for n in 0..30 {
                put(&*store, format!("key {n}").as_bytes(), &[b'v'; 300]).unwrap();
            }
            store.sync(30).unwrap();
            fs.cut_power_at(call);
            let dropped = store.drop_partition().is_ok();
            drop(store);
            let fs = fs.restart(loss);
            let store = open(&fs, SyncStrategy::OSync).unwrap();
            let keys = store.status().keys;
            assert!(if dropped { keys == 0 } else { keys == 0 || keys == 30 }, "call {call}: {keys} keys");
            let names = ombak_storage::fs::FileSystem::list(&*fs, std::path::Path::new("/data")).unwrap();
            assert!(names.iter().all(|name| !name.contains("dropped")), "{names:?}");
        }
    }
}
