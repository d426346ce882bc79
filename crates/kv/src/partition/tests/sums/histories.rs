//! Random histories: after each step, sums that count as exact are those of the store.

use super::world::{BEGIN_SECS, Kind, NAMES, World, raw, storage_key, value};
use crate::partition::appends::Clocks;
use crate::partition::{Access, MergeRules};
use crate::sums::{SumsState, SumsStep, SumsWalk};
use ombak_storage::{IndexedVersion, Previous, ReadMode, Scope};
use ombak_types::names::encode_bucket_prefix;
use ombak_types::{Actor, Bucket, Object, Sibling, VectorClock};
use proptest::prelude::*;
use serde_json::json;

const BUCKETS: [&str; 2] = ["a", "b"];
const NS: [u32; 2] = [2, 3];

#[derive(Clone, Debug)]
enum Op {
    Put { key: u8, expires: Option<u8>, is_blind: bool },
    Delete(u8),
    Receive { key: u8, events: u8, expires: Option<u8> },
    Reap(u8),
    RemoveProven(u8),
    Grow(u8),
    DropIf(u8),
    DropBucket(u8),
    SetAside(bool),
    TakeBack(u8),
    DropSetAside(u8),
    SetN { bucket: u8, n: u8 },
    SetBackend { bucket: u8, backend: u8 },
    Tick(u8),
    Overwrite(u8),
    Begin(u8),
    Step(u8),
    Abandon,
    Restart { is_clean: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0u8..8;
    let expires = || prop::option::of(any::<u8>());
    prop_oneof![
        12 => (key(), expires(), any::<bool>()).prop_map(|(key, expires, is_blind)| Op::Put { key, expires, is_blind }),
        4 => key().prop_map(Op::Delete),
        6 => (key(), 1u8..6, expires()).prop_map(|(key, events, expires)| Op::Receive { key, events, expires }),
        4 => key().prop_map(Op::Reap),
        3 => key().prop_map(Op::RemoveProven),
        4 => key().prop_map(Op::Grow),
        2 => key().prop_map(Op::DropIf),
        1 => (0u8..2).prop_map(Op::DropBucket),
        1 => any::<bool>().prop_map(Op::SetAside),
        2 => key().prop_map(Op::TakeBack),
        2 => key().prop_map(Op::DropSetAside),
        1 => (0u8..2, 2u8..4).prop_map(|(bucket, n)| Op::SetN { bucket, n }),
        1 => (0u8..2, 0u8..2).prop_map(|(bucket, backend)| Op::SetBackend { bucket, backend }),
        3 => any::<u8>().prop_map(Op::Tick),
        2 => key().prop_map(Op::Overwrite),
        5 => (0u8..2).prop_map(Op::Begin),
        9 => (1u8..6).prop_map(Op::Step),
        1 => Just(Op::Abandon),
        2 => any::<bool>().prop_map(|is_clean| Op::Restart { is_clean }),
    ]
}

struct History {
    world: World,
    walk: Option<SumsWalk>,
    steps: u64,
}

impl History {
    fn key(number: u8) -> Vec<u8> {
        storage_key(BUCKETS[usize::from(number % 2)], &format!("k{number}"))
    }

    /// A key whose versions only stores understand.
    fn raw_key(number: u8) -> Vec<u8> {
        storage_key(BUCKETS[usize::from(number % 2)], &format!("raw{number}"))
    }

    fn sibling(expires: Option<u8>) -> Sibling {
        value(expires.map(|slots| BEGIN_SECS as u32 + u32::from(slots) * 40))
    }

    fn receive(&self, key: &[u8], events: u8, expires: Option<u8>) {
        let (mut clock, now) = (VectorClock::new(), self.world.now());
        let actor = Actor::new(b"elsewhere");
        let dots: Vec<_> = (0..events).map(|_| clock.increment(&actor, now)).collect();
        let mut sibling = Self::sibling(expires);
        (sibling.meta.dot, sibling.meta.last_modified) = (dots.last().cloned(), Some(now));
        sibling.value = events.to_string().into();
        let mut locked = self.world.lock(key);
        locked.load_for(&clock, false).unwrap();
        let rules: MergeRules<'_> = self.world.rules().merging();
        locked.merge(Object { clock, siblings: vec![sibling] }, &rules).unwrap();
    }

    /// Adds to a value that becomes large enough to have parts.
    fn grow(&self, key: &[u8], digest: u64) {
        if self.world.kind == Kind::MemoryWithSize {
            // The value would have no room.
            return;
        }
        let partition = self.world.partition();
        let piece: &[&[u8]] = &[&[7; 5_000]];
        let write = raw(key, piece, digest, 0);
        match partition.read(key, Access::Blocking).unwrap().and_then(|found| found.body) {
            Some(body) => {
                let kept = (body.len() as u64, ReadMode::Blocking);
                partition.extend(&write, kept, Clocks::default()).unwrap()
            }
            None => partition.put(&write, true, Clocks::default()).unwrap(),
        };
    }

    /// A put over an entry of an index that is damaged, so that its receipt names no version.
    fn overwrite_unknown(&self, key: &[u8], digest: u64) {
        let Some(sums) = self.world.partition().sums() else { return };
        let appended = self.world.partition().store().put(&raw(key, &[b"v"], digest, 0)).unwrap();
        let after = IndexedVersion { digest, seq: appended.seq, expires_secs: appended.expires_secs };
        sums.changed(key, Previous::Unknown, Some(after));
    }

    fn removal(&self, op: &Op) {
        let world = &self.world;
        let partition = world.partition();
        match *op {
            Op::Reap(key) => {
                let key = Self::key(key);
                if let Some(digest) = world.digest_of(&key) {
                    world.lock(&key).reap(digest, world.now()).unwrap();
                }
            }
            Op::RemoveProven(key) => {
                let key = Self::key(key);
                if let Some(digest) = world.digest_of(&key) {
                    assert!(world.lock(&key).remove_proven(digest).unwrap());
                }
            }
            Op::DropIf(key) => {
                let key = Self::key(key);
                if let Some(found) = partition.store().get_with_expired(&key, ReadMode::Blocking).unwrap() {
                    assert!(partition.store().drop_if(&key, found.digest).unwrap());
                }
            }
            Op::DropBucket(bucket) => {
                let mut prefix = Vec::new();
                encode_bucket_prefix(&Bucket::untyped(BUCKETS[usize::from(bucket)]), &mut prefix);
                partition.store().drop_scope(&Scope::prefix(&prefix)).unwrap();
            }
            Op::TakeBack(key) => {
                let key = Self::key(key);
                if let Some(found) = partition.read_set_aside(&key).unwrap() {
                    world.lock(&key).take_back(found.digest, world.now()).unwrap();
                }
            }
            Op::DropSetAside(key) => {
                let key = Self::key(key);
                if let Some(found) = partition.read_set_aside(&key).unwrap() {
                    assert!(world.lock(&key).drop_set_aside(found.digest).unwrap());
                }
            }
            _ => unreachable!("no removal"),
        }
    }

    fn walk(&mut self, op: &Op) {
        match *op {
            Op::Begin(n) if self.walk.is_none() => {
                self.walk = self.world.partition().begin_sums_walk(NS[usize::from(n)]).unwrap();
            }
            Op::Step(count) => {
                let Some(walk) = &mut self.walk else { return };
                if let SumsStep::Ended(end) = walk.step(usize::from(count)).unwrap() {
                    assert_eq!(end.differences, 0);
                    self.walk = None;
                }
            }
            Op::Abandon => self.walk = None,
            _ => {}
        }
    }

    fn apply(&mut self, op: &Op) {
        self.steps += 1;
        let digest = self.steps << 1;
        match *op {
            Op::Put { key, expires, is_blind } => {
                let (key, sibling) = (Self::key(key), Self::sibling(expires));
                if is_blind {
                    self.world.put(&key, sibling, &VectorClock::new());
                } else {
                    self.world.put_over(&key, sibling);
                }
            }
            Op::Delete(key) => {
                self.world.put_over(&Self::key(key), Sibling::tombstone());
            }
            Op::Receive { key, events, expires } => self.receive(&Self::key(key), events, expires),
            Op::Grow(key) => self.grow(&Self::raw_key(key), digest),
            Op::Overwrite(key) => self.overwrite_unknown(&storage_key("a", &format!("lost{key}")), digest),
            Op::SetAside(is_set) => {
                let seq = if is_set { self.world.partition().store().last_seq() } else { 0 };
                self.world.partition().set_aside(seq);
            }
            Op::SetN { bucket, n } => self.world.set_bucket(BUCKETS[usize::from(bucket)], "n_val", json!(n)),
            Op::SetBackend { bucket, backend } if self.world.kind == Kind::Multi => {
                let name = NAMES[usize::from(backend)];
                self.world.set_bucket(BUCKETS[usize::from(bucket)], "backend", json!(name));
            }
            Op::SetBackend { .. } => {}
            Op::Tick(secs) => {
                self.world.now_secs += u64::from(secs);
                self.world.partition().store().maintain(self.world.now_secs).unwrap();
            }
            Op::Restart { is_clean } => {
                self.walk = None;
                self.world.restart(is_clean);
            }
            Op::Begin(_) | Op::Step(_) | Op::Abandon => self.walk(op),
            _ => self.removal(op),
        }
    }
}

fn run(kind: Kind, ops: &[Op]) {
    let mut history = History { world: World::new(kind), walk: None, steps: 0 };
    for op in ops {
        history.apply(op);
        NS.iter().for_each(|n| history.world.check(*n));
    }
    history.walk = None;
    for n in NS {
        assert_eq!(history.world.walk(n).differences, 0);
        assert_eq!(history.world.partition().sums_state(n), SumsState::Exact);
        history.world.check(n);
    }
}

fn histories(kind: Kind) {
    let config = ProptestConfig { cases: 24, ..ProptestConfig::default() };
    proptest!(config, |(ops in prop::collection::vec(op(), 1..80))| run(kind, &ops));
}

#[test]
fn sums_of_a_memory_store_are_exact() {
    histories(Kind::Memory);
}

#[test]
fn sums_of_memory_stores_that_remove_by_themselves_are_exact() {
    histories(Kind::MemoryWithAge);
    histories(Kind::MemoryWithSize);
}

#[test]
fn sums_of_bitcask_are_exact() {
    histories(Kind::Bitcask);
}

#[test]
fn sums_of_bitcask_with_an_age_are_exact() {
    histories(Kind::BitcaskWithAge);
}

#[test]
fn sums_of_leveled_are_exact() {
    histories(Kind::Leveled);
}

#[test]
fn sums_of_leveled_with_an_age_are_exact() {
    histories(Kind::LeveledWithAge);
}

#[test]
fn sums_of_leveldb_are_exact() {
    histories(Kind::Leveldb);
}

#[test]
fn sums_of_several_stores_are_exact() {
    histories(Kind::Multi);
}
