//! The scenarios that Riak's tests call kv679, with partitions as replicas (spec/riak-test.md): an acknowledged write must
//! not be taken for something that was seen before.

use super::{Access, ActorSource, Partition, WriteRules};
use crate::config::ObjectLimits;
use ombak_storage::{BackendFactory, MemoryConfig, MemoryFactory};
use ombak_types::names::encode_storage_key;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, BucketProps, Object, Sibling, VectorClock};
use std::sync::Arc;

struct Replica {
    partition: Partition,
    props: BucketProps,
    key: Vec<u8>,
}

impl Replica {
    fn new(id: u64) -> Self {
        let store = MemoryFactory::new(MemoryConfig::default()).open(0).unwrap();
        let partition = Partition::new(0, store, Arc::new(ActorSource::new(id << 32)), 0);
        let props = BucketProps { allow_mult: true, dvv_enabled: true, ..BucketProps::default() };
        let mut key = Vec::new();
        encode_storage_key(&Bucket::untyped("b"), b"k", &mut key);
        Self { partition, props, key }
    }

    fn rules<'a>(&'a self, limits: &'a ObjectLimits) -> WriteRules<'a> {
        WriteRules { props: &self.props, limits, now: UnixMicros(1) }
    }

    fn write(&self, sibling: Sibling, seen: &VectorClock) -> Object {
        let limits = ObjectLimits::default();
        let mut locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        locked.load_for(seen, false).unwrap();
        let incoming = Object { clock: seen.clone(), siblings: vec![sibling] };
        locked.coordinate(incoming, b"vtag", &self.rules(&limits)).unwrap().object
    }

    fn put(&self, value: &'static str, seen: &VectorClock) -> Object {
        self.write(Sibling::new(value), seen)
    }

    fn receive(&self, object: &Object) {
        let limits = ObjectLimits::default();
        let mut locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        locked.load_for(&object.clock, false).unwrap();
        locked.merge(object.clone(), &self.rules(&limits)).unwrap();
    }

    fn get(&self) -> Option<Object> {
        self.partition.get(&self.key, Access::Blocking).unwrap()
    }

    fn values(&self) -> Vec<String> {
        let object = self.get().unwrap_or_default();
        let mut values: Vec<_> = object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect();
        values.sort();
        values
    }

    /// The disk forgot the key.
    fn lose(&self) {
        self.partition.store().delete(&self.key).unwrap();
    }

    /// Removes the key if it is exactly this tombstone.
    fn reap(&self, tombstone: &Object) -> bool {
        let locked = self.partition.lock(&self.key, Access::Blocking).unwrap();
        locked.reap(super::digest(tombstone)).unwrap()
    }
}

fn replicas() -> [Replica; 3] {
    [Replica::new(1), Replica::new(2), Replica::new(3)]
}

#[test]
fn kv679_dataloss() {
    let [a, b, _] = replicas();
    let mut seen = VectorClock::new();
    for value in ["1", "2", "3"] {
        let object = a.put(value, &seen);
        b.receive(&object);
        seen = object.clock;
    }
    a.lose();
    let fresh = a.put("new", &VectorClock::new());
    b.receive(&fresh);
    a.receive(&b.get().unwrap());
    assert_eq!(a.values(), ["3", "new"]);
    assert_eq!(b.values(), ["3", "new"]);
}

#[test]
fn kv679_dataloss_fb() {
    let [a, fallback, b] = replicas();
    let first = a.put("1", &VectorClock::new());
    fallback.receive(&first);
    let second = a.put("2", &first.clock);
    b.receive(&second);
    a.lose();
    a.receive(&first);
    let third = a.put("3", &first.clock);
    b.receive(&third);
    assert_eq!(b.values(), ["2", "3"], "2 was acknowledged and nobody had seen it");
    a.receive(&b.get().unwrap());
    assert_eq!(a.values(), ["2", "3"]);
}

/// Fallbacks with different versions hand off to a primary that had lost its copy, the older one last.
#[test]
fn kv679_dataloss_fb2() {
    let [a, f1, f2] = replicas();
    let first = a.put("1", &VectorClock::new());
    f1.receive(&first);
    let second = a.put("2", &first.clock);
    f2.receive(&second);
    a.lose();
    let acked = a.put("3", &VectorClock::new());
    f1.receive(&acked);
    a.receive(&f2.get().unwrap());
    a.receive(&f1.get().unwrap());
    let next = a.put("4", &VectorClock::new());
    f2.receive(&next);
    assert_eq!(a.values(), ["2", "3", "4"]);
    f2.receive(&a.get().unwrap());
    assert_eq!(f2.values(), ["2", "3", "4"]);
}

#[test]
fn kv679_tombstone() {
    let [a, b, fallback] = replicas();
    let first = a.put("1", &VectorClock::new());
    b.receive(&first);
    let tombstone = a.write(Sibling::tombstone(), &first.clock);
    b.receive(&tombstone);
    fallback.receive(&tombstone);
    assert!(a.reap(&tombstone) && b.reap(&tombstone));
    let new = a.put("new", &VectorClock::new());
    b.receive(&new);
    // The fallback hands off its tombstone.
    b.receive(&fallback.get().unwrap());
    a.receive(&fallback.get().unwrap());
    for replica in [a, b] {
        let object = replica.get().unwrap();
        assert!(!object.is_deleted());
        assert!(replica.values().contains(&"new".to_owned()), "{object:?}");
    }
}

#[test]
fn kv679_uid() {
    let [a, b, c] = replicas();
    let actors: Vec<_> = [&a, &b, &c]
        .iter()
        .map(|r| r.put("v", &VectorClock::new()).clock.entries()[0].actor.as_bytes()[..8].to_vec())
        .collect();
    assert!(actors[0] != actors[1] && actors[1] != actors[2] && actors[0] != actors[2]);
}

#[test]
fn a_tombstone_is_reaped_only_as_it_was() {
    let a = Replica::new(1);
    let first = a.put("1", &VectorClock::new());
    let tombstone = a.write(Sibling::tombstone(), &first.clock);
    let again = a.write(Sibling::tombstone(), &tombstone.clock);
    assert!(!a.reap(&tombstone));
    a.put("2", &again.clock);
    assert!(!a.reap(&again));
    assert_eq!(a.values(), ["2"]);
}

/// A replica stores what arrives, whatever order it arrives in, and never reduces (design: replication rules §11).
#[test]
fn replicas_merge_and_never_reduce() {
    let [a, b, mut c] = replicas();
    c.props = BucketProps::default();
    let (x, y) = (a.put("x", &VectorClock::new()), b.put("y", &VectorClock::new()));
    c.receive(&x);
    c.receive(&y);
    c.receive(&x);
    assert_eq!(c.values(), ["x", "y"], "allow_mult is false here, and that is for coordinators");
}
