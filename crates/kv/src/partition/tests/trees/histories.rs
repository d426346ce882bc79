//! Random histories: after each step, a tree that answers is that of a walk.

use super::check::{BUCKETS, KEYS, build, is_answered_as_by_a_walk, name_of};
use crate::kept_trees::{BuildStep, TreeBuild};
use crate::partition::MergeRules;
use crate::partition::tests::sums::world::{BEGIN_SECS, Kind, NAMES, World, storage_key, value};
use ombak_storage::ReadMode;
use ombak_types::{Actor, Object, Sibling, VectorClock};
use proptest::prelude::*;
use serde_json::json;
use std::cell::Cell;

const NS: [u32; 2] = [2, 3];

#[derive(Clone, Debug)]
enum Op {
    Put { key: u8, expires: bool, is_blind: bool },
    Delete(u8),
    Receive { key: u8, events: u8 },
    Reap(u8),
    RemoveProven(u8),
    Unread(u8),
    DropIf(u8),
    SetAside(bool),
    TakeBack(u8),
    DropSetAside(u8),
    SetN { bucket: u8, n: u8 },
    Exclude { bucket: u8, is_excluded: bool },
    SetBackend { bucket: u8, backend: u8 },
    Tick(u8),
    Begin(u8),
    Step(u8),
    Abandon,
    KeepOnly(u8),
    Restart { is_clean: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0u8..KEYS;
    let bucket = || 0u8..3;
    prop_oneof![
        16 => (key(), prop::bool::weighted(0.03), any::<bool>())
            .prop_map(|(key, expires, is_blind)| Op::Put { key, expires, is_blind }),
        5 => key().prop_map(Op::Delete),
        7 => (key(), 1u8..6).prop_map(|(key, events)| Op::Receive { key, events }),
        5 => key().prop_map(Op::Reap),
        4 => key().prop_map(Op::RemoveProven),
        1 => key().prop_map(Op::Unread),
        1 => key().prop_map(Op::DropIf),
        1 => any::<bool>().prop_map(Op::SetAside),
        2 => key().prop_map(Op::TakeBack),
        2 => key().prop_map(Op::DropSetAside),
        1 => (bucket(), 2u8..4).prop_map(|(bucket, n)| Op::SetN { bucket, n }),
        1 => (bucket(), any::<bool>()).prop_map(|(bucket, is_excluded)| Op::Exclude { bucket, is_excluded }),
        1 => (bucket(), 0u8..2).prop_map(|(bucket, backend)| Op::SetBackend { bucket, backend }),
        2 => any::<u8>().prop_map(Op::Tick),
        6 => (0u8..2).prop_map(Op::Begin),
        14 => (1u8..6).prop_map(Op::Step),
        1 => Just(Op::Abandon),
        1 => (0u8..2).prop_map(Op::KeepOnly),
        2 => any::<bool>().prop_map(|is_clean| Op::Restart { is_clean }),
    ]
}

struct History {
    world: World,
    build: Option<TreeBuild>,
}

impl History {
    fn key(number: u8) -> Vec<u8> {
        let (bucket, key) = name_of(number);
        storage_key(bucket, &key)
    }

    fn receive(&self, key: &[u8], events: u8) {
        let (mut clock, now) = (VectorClock::new(), self.world.now());
        let actor = Actor::new(b"elsewhere");
        let dots: Vec<_> = (0..events).map(|_| clock.increment(&actor, now)).collect();
        let mut sibling = value(None);
        (sibling.meta.dot, sibling.meta.last_modified) = (dots.last().cloned(), Some(now));
        sibling.value = events.to_string().into();
        let mut locked = self.world.lock(key);
        locked.load_for(&clock, false).unwrap();
        let rules: MergeRules<'_> = self.world.rules().merging();
        locked.merge(Object { clock, siblings: vec![sibling] }, &rules).unwrap();
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
            // As if the version could not be read.
            Op::Unread(key) => {
                let key = Self::key(key);
                if let Some(digest) = world.digest_of(&key) {
                    assert!(partition.remove_unread(&key, digest).unwrap());
                }
            }
            Op::DropIf(key) => {
                let key = Self::key(key);
                if let Some(found) = partition.store().get_with_expired(&key, ReadMode::Blocking).unwrap() {
                    assert!(partition.store().drop_if(&key, found.digest).unwrap());
                }
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

    fn build(&mut self, op: &Op) {
        let partition = self.world.partition();
        match *op {
            Op::Begin(n) if self.build.is_none() => {
                self.build = partition.begin_tree(NS[usize::from(n)]).unwrap();
            }
            Op::Step(count) => {
                let Some(mut build) = self.build.take() else { return };
                if build.step(usize::from(count)).unwrap() == BuildStep::Visited {
                    let end = partition.end_tree(build);
                    assert!(end.is_none_or(|end| end.differences == 0));
                } else {
                    self.build = Some(build);
                }
            }
            Op::Abandon => self.build = None,
            Op::KeepOnly(n) => partition.keep_only_trees_of(|other| other == NS[usize::from(n)]),
            _ => {}
        }
    }

    fn apply(&mut self, op: &Op) {
        let set = |bucket: u8, property: &str, value: serde_json::Value| {
            self.world.set_bucket(BUCKETS[usize::from(bucket)], property, value);
        };
        match *op {
            Op::Put { key, expires, is_blind } => {
                let (key, sibling) = (Self::key(key), value(expires.then_some(BEGIN_SECS as u32 + 300)));
                if is_blind {
                    self.world.put(&key, sibling, &VectorClock::new());
                } else {
                    self.world.put_over(&key, sibling);
                }
            }
            Op::Delete(key) => {
                self.world.put_over(&Self::key(key), Sibling::tombstone());
            }
            Op::Receive { key, events } => self.receive(&Self::key(key), events),
            Op::SetAside(is_set) => {
                let seq = if is_set { self.world.partition().store().last_seq() } else { 0 };
                self.world.partition().set_aside(seq);
            }
            Op::SetN { bucket, n } => set(bucket, "n_val", json!(n)),
            Op::Exclude { bucket, is_excluded } => set(bucket, "aae_tree_exclude", json!(is_excluded)),
            Op::SetBackend { bucket, backend } if self.world.kind == Kind::Multi => {
                set(bucket, "backend", json!(NAMES[usize::from(backend)]));
            }
            Op::SetBackend { .. } => {}
            Op::Tick(secs) => {
                self.world.now_secs += u64::from(secs);
                self.world.partition().store().maintain(self.world.now_secs).unwrap();
            }
            Op::Restart { is_clean } => {
                self.build = None;
                self.world.restart(is_clean);
            }
            Op::Begin(_) | Op::Step(_) | Op::Abandon | Op::KeepOnly(_) => self.build(op),
            _ => self.removal(op),
        }
    }
}

/// Returns how often a tree has answered.
fn run(kind: Kind, ops: &[Op]) -> u32 {
    let mut history = History { world: World::new(kind), build: None };
    let mut answered = 0;
    for op in ops {
        history.apply(op);
        for n in NS {
            answered += u32::from(is_answered_as_by_a_walk(&history.world, n));
        }
    }
    history.build = None;
    for n in NS {
        assert_eq!(build(&history.world, n).differences, 0);
        assert!(history.world.partition().has_kept_tree(n));
        is_answered_as_by_a_walk(&history.world, n);
    }
    answered
}

fn histories(kind: Kind) {
    let answered = Cell::new(0);
    let config = ProptestConfig { cases: 24, ..ProptestConfig::default() };
    proptest!(config, |(ops in prop::collection::vec(op(), 1..100))| answered.set(answered.get() + run(kind, &ops)));
    assert!(answered.get() > 100, "{kind:?}: trees have answered {} times", answered.get());
}

#[test]
fn trees_of_a_memory_store_are_those_of_a_walk() {
    histories(Kind::Memory);
}

#[test]
fn trees_of_bitcask_are_those_of_a_walk() {
    histories(Kind::Bitcask);
}

#[test]
fn trees_of_leveled_are_those_of_a_walk() {
    histories(Kind::Leveled);
}

#[test]
fn trees_of_leveldb_are_those_of_a_walk() {
    histories(Kind::Leveldb);
}

#[test]
fn trees_of_several_stores_are_those_of_a_walk() {
    histories(Kind::Multi);
}

/// Nobody would tell the clocks of what such a store removes.
#[test]
fn a_store_that_removes_by_itself_keeps_no_tree() {
    for kind in [Kind::MemoryWithAge, Kind::MemoryWithSize, Kind::BitcaskWithAge, Kind::LeveledWithAge] {
        let world = World::new(kind);
        world.put_over(&storage_key("a", "k"), value(None));
        assert!(!world.partition().may_keep_trees());
        assert!(world.partition().begin_tree(3).unwrap().is_none() && !is_answered_as_by_a_walk(&world, 3));
    }
}

/// A walk visits such a version until its time has come.
#[test]
fn a_class_with_a_version_that_expires_is_walked_until_it_is_gone() {
    let world = World::new(Kind::Bitcask);
    let key = storage_key("a", "expires");
    world.put_over(&storage_key("a", "k"), value(None));
    assert_eq!(build(&world, 3).versions, 1);
    assert!(is_answered_as_by_a_walk(&world, 3));
    world.put_over(&key, value(Some(BEGIN_SECS as u32 + 10_000)));
    assert!(world.partition().has_kept_tree(3) && !is_answered_as_by_a_walk(&world, 3));
    assert_eq!(build(&world, 3).versions, 2);
    assert!(!is_answered_as_by_a_walk(&world, 3), "a build finds it, too");
    world.put_over(&key, value(None));
    assert!(is_answered_as_by_a_walk(&world, 3));
}

/// A tree that was made anew is compared with the one before it.
#[test]
#[should_panic(expected = "a kept tree is not that of its store")]
fn a_wrong_tree_is_noticed_when_it_is_made_anew() {
    let world = World::new(Kind::Memory);
    build(&world, 3);
    world.partition().trees().unwrap().damage(3);
    build(&world, 3);
}

#[test]
fn a_wrong_tree_is_replaced_when_it_is_made_anew() {
    let world = World::with_differences(Kind::Memory);
    world.put_over(&storage_key("a", "k"), value(None));
    build(&world, 3);
    world.partition().trees().unwrap().damage(3);
    assert_eq!(build(&world, 3).differences, 1);
    assert!(is_answered_as_by_a_walk(&world, 3));
    assert_eq!(build(&world, 3).differences, 0);
}
