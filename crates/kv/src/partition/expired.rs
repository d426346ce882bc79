//! Histories in which a replica has forgotten an expired key together with its clock
//! (docs/design/replication.md §7). Later writes are neither mistaken for older versions nor hidden
//! by them.

use super::test_replica::Replica;
use ombak_types::time::UnixMicros;
use ombak_types::{Object, Sibling, VectorClock};

fn expiring(value: &'static str, expires_secs: u32) -> Sibling {
    let mut sibling = Sibling::new(value);
    sibling.meta.expires_secs = Some(expires_secs);
    sibling
}

/// The values that a client sees at `now_secs`.
fn shown(replica: &Replica, now_secs: u64) -> Vec<String> {
    let mut object = replica.get().unwrap_or_default();
    object.drop_expired(UnixMicros::from_secs(now_secs));
    let mut values: Vec<_> = object.siblings.iter().map(|s| String::from_utf8(s.value.to_vec()).unwrap()).collect();
    values.sort();
    values
}

/// B's time is behind A's: B still holds the version that A has forgotten.
#[test]
fn a_late_copy_of_an_expired_version_does_not_hide_what_was_written_since() {
    let (a, b) = (Replica::new(1), Replica::new(2));
    let first = a.write(expiring("1", 10), &VectorClock::new());
    let second = a.write(expiring("2", 10), &first.clock);
    b.receive(&second);
    a.set_time(11);
    assert_eq!(a.get(), None, "forgotten");
    let third = a.put("3", &VectorClock::new());
    b.receive(&third);
    assert!(b.values().contains(&"3".to_owned()), "its event is not one that B has seen");
    a.receive(&b.get().unwrap());
    for replica in [&a, &b] {
        assert_eq!(shown(replica, 11), ["3"]);
    }
    // The next write removes the expired sibling, on every replica.
    let fourth = a.put("4", &third.clock);
    b.receive(&fourth);
    assert_eq!(b.values(), ["4"]);
}

/// The client read before the key expired and writes afterwards: its clock names events that A no
/// longer knows.
#[test]
fn a_client_that_saw_the_expired_version_writes_something_new() {
    let (a, b) = (Replica::new(1), Replica::new(2));
    let seen = a.write(expiring("1", 10), &VectorClock::new());
    a.set_time(11);
    let mine = a.put("mine", &seen.clock);
    assert!(mine.clock.dominates(&seen.clock));
    // Another client overwrote version 1 at another replica: event 2 of A's first epoch, as a store
    // that was set back would issue it.
    let concurrent = b.put("theirs", &seen.clock);
    a.receive(&concurrent);
    b.receive(&mine);
    assert_eq!((a.values(), b.values()), (vec!["mine".into(), "theirs".into()], vec!["mine".into(), "theirs".into()]));
}

/// A forgets the key and writes it again under a new event. Then the copies that B still has arrive
/// one by one, the latest first.
#[test]
fn events_after_expiry_are_never_those_from_before() {
    let (a, b) = (Replica::new(1), Replica::new(2));
    let mut before: Vec<Object> = Vec::new();
    let mut seen = VectorClock::new();
    for value in ["1", "2", "3"] {
        let object = a.write(expiring(value, 10), &seen);
        seen = object.clock.clone();
        b.receive(&object);
        before.push(object);
    }
    a.set_time(11);
    for round in 0..3 {
        let fresh = a.put("fresh", &VectorClock::new());
        for old in &before {
            assert!(!old.clock.descends(&fresh.clock), "round {round}: it would be taken for seen");
        }
        if let Some(old) = before.pop() {
            a.receive(&old);
        }
        assert!(shown(&a, 11).iter().all(|value| value == "fresh"));
        assert!(!shown(&a, 11).is_empty());
    }
}

/// Both replicas agree on the moment of expiry, whenever they received their copy, because the
/// moment is part of the object.
#[test]
fn a_copy_ends_when_the_original_does() {
    let (a, b) = (Replica::new(1), Replica::new(2));
    let object = a.write(expiring("1", 10), &VectorClock::new());
    b.set_time(9);
    b.receive(&object);
    b.set_time(10);
    assert_eq!(b.values(), ["1"]);
    b.set_time(11);
    assert_eq!(b.get(), None);
    // A copy that arrives too late is stored unchanged, but no reader sees it.
    b.receive(&object);
    assert_eq!(b.get(), None);
    assert_eq!(object.expires_secs(), Some(10));
}
