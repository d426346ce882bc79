//! Power losses and kills at random moments, on bitcask stores over a simulated file system that
//! loses everything unsynced. Over many restarts no acknowledged write is lost, siblings stay
//! complete, and no event id names two values.

use crate::support::random::Random;
use crate::support::{bucket, map};
use bytes::Bytes;
use ombak_kv::{DeleteMode, GetReply, Kv, KvConfig, OpenError, PutOptions, PutRequest};
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{BitcaskFactory, JournalConfig, SyncStrategy};
use ombak_types::{Object, Sibling, VectorClock};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const KEYS: [&str; 3] = ["a", "b", "c"];
const BOOTS: usize = 5;
const PUTS: usize = 12;

/// The values that one key may hold and must hold.
#[derive(Default)]
struct Oracle {
    acknowledged: BTreeSet<Bytes>,
    /// Values that a later put had seen, acknowledged or not: they may be gone.
    superseded: BTreeSet<Bytes>,
    /// The value of each event (actor, counter).
    events: BTreeMap<(Vec<u8>, u64), Bytes>,
}

impl Oracle {
    fn check(&mut self, object: &Object) {
        for sibling in &object.siblings {
            let dot = sibling.meta.dot.as_ref().expect("every value has its event");
            let value =
                self.events.entry((dot.actor.as_bytes().to_vec(), dot.counter)).or_insert(sibling.value.clone());
            assert_eq!(*value, sibling.value, "one event, two values");
        }
    }

    fn check_nothing_lost(&mut self, object: Option<&Object>) {
        object.into_iter().for_each(|o| self.check(o));
        let held: BTreeSet<Bytes> = values(object).collect();
        for value in self.acknowledged.difference(&self.superseded) {
            assert!(held.contains(value), "{value:?} was acknowledged and is lost; there is {held:?}");
        }
    }
}

fn values(object: Option<&Object>) -> impl Iterator<Item = Bytes> {
    object.into_iter().flat_map(|o| &o.siblings).map(|s| s.value.clone())
}

fn open(fs: &Arc<FaultyFs>, dir: &Path, sync: SyncStrategy) -> Result<Kv, OpenError> {
    let fs: Arc<dyn FileSystem> = fs.clone();
    let bitcask = JournalConfig { sync, ..JournalConfig::default() };
    let stores = BitcaskFactory::new(fs.clone(), dir.join("bitcask"), bitcask)
        .map_err(|source| OpenError::Store { partition: 0, source })?;
    let mut config = KvConfig::new("riak@127.0.0.1", dir, Arc::new(stores));
    config.fs = fs;
    config.ring_size = 8;
    config.delete_mode = DeleteMode::Keep;
    config.default_props = map(json!({"allow_mult": true, "dvv_enabled": true}));
    config.io_threads = 1;
    // Background work would make the moment of the power cut depend on the machine.
    config.maintain_interval = Duration::from_secs(3600);
    Kv::open(config)
}

async fn read(kv: &Kv, key: &str) -> Result<Option<Object>, ombak_types::Error> {
    let request =
        ombak_kv::GetRequest { bucket: bucket(), key: Bytes::from(key.to_owned()), options: Default::default() };
    Ok(match kv.get(request).await? {
        GetReply::Found(object) => Some(object),
        GetReply::NotFound { .. } => None,
    })
}

/// Makes puts until the power is cut, or `PUTS` of them.
async fn work(kv: &Kv, fs: &FaultyFs, random: &mut Random, oracles: &mut [Oracle], next_value: &mut u64) {
    for _ in 0..PUTS {
        let i = random.below(KEYS.len() as u64) as usize;
        let blind = random.below(3) == 0;
        let seen = if blind { None } else { read(kv, KEYS[i]).await.unwrap_or(None) };
        *next_value += 1;
        let value = Bytes::from(next_value.to_string());
        oracles[i].superseded.extend(values(seen.as_ref()));
        let clock = seen.map_or(VectorClock::new(), |o| o.clock);
        let object = Object { clock, siblings: vec![Sibling::new(value.clone())] };
        let options = PutOptions { return_body: true, ..PutOptions::default() };
        let put = PutRequest { bucket: bucket(), key: Some(Bytes::from(KEYS[i])), object, options };
        if let Ok(reply) = kv.put(put).await {
            oracles[i].acknowledged.insert(value);
            oracles[i].check(&reply.object.expect("return_body"));
        }
        if fs.is_off() {
            return;
        }
    }
}

async fn run(seed: u64, sync: SyncStrategy, losses: &[Loss]) {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut fs = FaultyFs::new(seed);
    let mut oracles: Vec<Oracle> = KEYS.iter().map(|_| Oracle::default()).collect();
    let mut next_value = 0;
    for _ in 0..BOOTS {
        if random.below(4) > 0 {
            fs.cut_power_at(fs.calls() + random.below(400));
        }
        if let Ok(kv) = open(&fs, dir.path(), sync) {
            if !fs.is_off() {
                work(&kv, &fs, &mut random, &mut oracles, &mut next_value).await;
            }
            if random.below(2) == 0 {
                kv.close();
            }
        }
        fs = fs.restart(losses[random.below(losses.len() as u64) as usize]);
        let kv = open(&fs, dir.path(), sync).unwrap_or_else(|e| panic!("seed {seed}: does not open again: {e}"));
        for (key, oracle) in KEYS.iter().zip(&mut oracles) {
            let object = read(&kv, key).await.unwrap_or_else(|e| panic!("seed {seed}: {key}: {e}"));
            oracle.check_nothing_lost(object.as_ref());
        }
    }
}

/// The factor by which `make soak` runs more rounds than `make test`.
fn soak_rounds() -> u64 {
    std::env::var("OMBAK_SOAK_ROUNDS").map_or(1, |rounds| rounds.parse().expect("OMBAK_SOAK_ROUNDS is a number"))
}

fn runs(seeds: std::ops::Range<u64>, sync: SyncStrategy, losses: &[Loss]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for seed in seeds {
        println!("seed {seed}");
        runtime.block_on(run(seed, sync, losses));
    }
}

#[test]
fn with_sync_on_a_loss_of_power_loses_nothing() {
    runs(0..200 * soak_rounds(), SyncStrategy::OSync, &[Loss::Everything, Loss::Some]);
}

#[test]
fn with_sync_off_a_kill_loses_nothing() {
    runs(1 << 32..(1 << 32) + 100 * soak_rounds(), SyncStrategy::None, &[Loss::Nothing]);
}

/// The same test in a configuration in which it must fail. It proves that the test can fail.
#[test]
#[should_panic = "was acknowledged and is lost"]
fn with_sync_off_a_loss_of_power_is_noticed() {
    runs(0..50, SyncStrategy::None, &[Loss::Everything]);
}
