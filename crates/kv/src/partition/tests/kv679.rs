//! The scenarios that Riak's tests call kv679, with partitions as replicas
//! (docs/riak/riak-test.md). An acknowledged write must not be mistaken for an event that was seen
//! before.

use super::replica::Replica;
use ombak_types::{BucketProps, Sibling, VectorClock};

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

/// Fallbacks with different versions hand off to a primary that had lost its copy; the older
/// version comes last.
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

/// A replica stores what arrives, in any order, and never drops siblings
/// (docs/design/replication.md §11).
#[test]
fn replicas_merge_and_never_reduce() {
    let [a, b, mut c] = replicas();
    c.set_props(BucketProps::default());
    let (x, y) = (a.put("x", &VectorClock::new()), b.put("y", &VectorClock::new()));
    c.receive(&x);
    c.receive(&y);
    c.receive(&x);
    assert_eq!(c.values(), ["x", "y"], "allow_mult is false here, and that is for coordinators");
}
