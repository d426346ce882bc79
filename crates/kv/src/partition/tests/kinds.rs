//! Values of a kind that lie in plain siblings, as the counters of Riak 1.4 do: replicas keep the
//! value of each event, and only operations and answers have them in one
//! (docs/design/replication.md §11).

use super::replica::Replica;
use crate::hooks::{ValueKind, merge_values};
use bytes::Bytes;
use ombak_types::{BucketProps, Dot, Error, Object, Sibling, VectorClock};
use std::collections::BTreeSet;

/// A set of letters, to which each operation adds some.
#[derive(Debug)]
struct Letters;

fn united(one: &Sibling, other: &Sibling) -> Vec<u8> {
    let all: BTreeSet<u8> = one.value.iter().chain(&other.value).copied().collect();
    all.into_iter().collect()
}

impl ValueKind for Letters {
    fn number(&self) -> u16 {
        9
    }

    fn serves(&self, _props: &BucketProps) -> bool {
        true
    }

    fn operation_of(&self, _props: &BucketProps, value: &Sibling) -> Option<Bytes> {
        Some(value.value.clone())
    }

    fn begins(&self, _props: &BucketProps, values: &[Sibling]) -> bool {
        values.is_empty()
    }

    fn apply(
        &self,
        _props: &BucketProps,
        values: &mut Vec<Sibling>,
        operation: &Sibling,
        _event: &Dot,
    ) -> Result<Sibling, Error> {
        let local = self.merge(std::mem::take(values)).pop();
        Ok(Sibling::new(united(operation, local.as_ref().unwrap_or(operation))))
    }

    fn merge(&self, values: Vec<Sibling>) -> Vec<Sibling> {
        let merge = |one: Sibling, other: Sibling| Sibling { value: united(&one, &other).into(), ..one };
        values.into_iter().reduce(merge).into_iter().collect()
    }

    fn show(&self, value: Sibling) -> Result<Sibling, Error> {
        Ok(value)
    }
}

fn replicas() -> [Replica; 3] {
    [1, 2, 3].map(|id| {
        let mut replica = Replica::new(id);
        replica.set_kind(Box::new(Letters));
        replica
    })
}

/// What a client is shown.
fn shown(replica: &Replica) -> String {
    let mut object = replica.get().unwrap();
    merge_values(&Letters, &mut object);
    let [value] = &object.siblings[..] else { panic!("{object:?}") };
    String::from_utf8(value.value.to_vec()).unwrap()
}

#[test]
fn a_replica_keeps_the_value_of_each_event() {
    let [a, b, c] = replicas();
    let (x, y) = (a.put("x", &VectorClock::new()), b.put("y", &VectorClock::new()));
    c.receive(&x);
    c.receive(&y);
    assert_eq!(shown(&c), "xy");
    // A has more than C, and nothing of B. A value with the dot of only one part would be taken
    // for a value that A has replaced.
    let more = a.put("z", &VectorClock::new());
    c.receive(&more);
    assert_eq!(shown(&c), "xyz");
    c.receive(&x);
    assert_eq!(c.values(), ["xz", "y"]);
    // An operation has all of them in one, and replaces them.
    let all: Object = c.put("w", &VectorClock::new());
    for replica in [&a, &b] {
        replica.receive(&all);
        assert_eq!(replica.values(), ["wxyz"]);
    }
}

/// What an older value of the key has seen of the actor would say that the new value's events are
/// known (docs/design/datatypes.md).
#[test]
fn a_value_that_begins_after_a_delete_has_an_actor_without_events_on_the_key() {
    let [a, b, _] = replicas();
    let dot = |object: &Object| object.siblings[0].meta.dot.clone().unwrap();
    let first = a.put("x", &VectorClock::new());
    let second = a.put("y", &VectorClock::new());
    assert_eq!(dot(&first).actor, dot(&second).actor, "a value goes on with its actor");
    let gone = a.write(Sibling::tombstone(), &second.clock);
    let anew = a.put("z", &VectorClock::new());
    assert!(!gone.clock.entries().iter().any(|entry| entry.actor == dot(&anew).actor), "{anew:?}");
    b.receive(&second);
    b.receive(&anew);
    assert_eq!(b.values(), ["z"]);
}

/// The client has read one replica and sends its operation to another one, which lacks the value.
#[test]
fn an_operation_replaces_only_what_its_coordinator_has() {
    let [a, b, c] = replicas();
    let x = a.put("x", &VectorClock::new());
    let y = b.put("y", &x.clock);
    c.receive(&x);
    c.receive(&y);
    assert_eq!(shown(&c), "xy");
    a.receive(&y);
    assert_eq!(shown(&a), "xy");
}
