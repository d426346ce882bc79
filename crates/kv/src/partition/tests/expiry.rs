//! Histories of expired versions.
//!
//! While a replica keeps an expired version, its clock keeps older copies away. Once the version is
//! reaped, or forgotten by a store with a configured age, the clock is gone: then later writes are
//! neither mistaken for older versions nor hidden by them (docs/design/replication.md §7).

use super::replica::Replica;
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
    a.forget_expired();
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
    a.forget_expired();
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
    a.forget_expired();
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
    assert_eq!(shown(&b, 10), ["1"]);
    b.set_time(11);
    b.forget_expired();
    // A copy that arrives too late is stored unchanged, but no reader sees it.
    b.receive(&object);
    assert_eq!((b.values(), shown(&b, 11)), (vec!["1".to_owned()], Vec::new()));
    assert_eq!(object.expires_secs(), Some(10));
}

/// B missed the version that expires, and still holds the one before it.
#[test]
fn an_expired_version_keeps_older_copies_away() {
    let (a, b) = (Replica::new(1), Replica::new(2));
    let first = a.put("1", &VectorClock::new());
    b.receive(&first);
    let second = a.write(expiring("2", 10), &first.clock);
    a.set_time(11);
    // B hands its copy over, or repairs A with it.
    a.receive(&b.get().unwrap());
    assert_eq!(shown(&a, 11), [""; 0]);
    assert_eq!(a.get().unwrap().clock, second.clock);
    b.receive(&a.get().unwrap());
    assert_eq!(shown(&b, 11), [""; 0]);
}

/// The new value replaces what had expired, so a replica that still shows the expired value drops
/// it when the new one arrives.
#[test]
fn a_write_over_an_expired_version_descends_it() {
    let (a, b) = (Replica::new(1), Replica::new(2));
    let first = a.write(expiring("1", 10), &VectorClock::new());
    b.receive(&first);
    a.set_time(11);
    let second = a.put("2", &VectorClock::new());
    assert_eq!((second.clock.dominates(&first.clock), a.values()), (true, vec!["2".to_owned()]));
    b.receive(&second);
    assert_eq!(b.values(), ["2"]);
    // The copy of the expired version that was on its way all the time.
    b.receive(&first);
    assert_eq!(b.values(), ["2"]);
}

/// A tombstone beside an expired value goes with it.
#[test]
fn a_write_over_an_expired_object_stands_alone() {
    let a = Replica::new(1);
    let first = a.write(expiring("1", 10), &VectorClock::new());
    a.write(expiring("2", 10), &first.clock);
    a.write(Sibling::tombstone(), &first.clock);
    assert_eq!(a.get().unwrap().siblings.len(), 2);
    a.set_time(11);
    a.put("3", &VectorClock::new());
    assert_eq!(a.values(), ["3"]);
}
