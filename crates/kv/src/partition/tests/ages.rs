//! From when the age of a version counts that is a copy, or is made of copies (docs/expiry.md).

use super::replica::Replica;
use ombak_types::{Sibling, VectorClock};

/// A replica whose clock shows so many seconds.
fn replica(id: u64, now_secs: u64) -> Replica {
    let replica = Replica::new(id);
    replica.set_time(now_secs);
    replica
}

#[test]
fn a_copy_of_a_copy_is_as_old_as_the_first() {
    let (a, b, c) = (replica(1, 10), replica(2, 50), replica(3, 90));
    let object = a.put("v", &VectorClock::new());
    assert_eq!(a.stored_secs(), Some(10));
    b.receive_stored_at(&object, a.stored_secs());
    c.receive_stored_at(&object, b.stored_secs());
    assert_eq!((b.stored_secs(), c.stored_secs()), (Some(10), Some(10)));
    c.receive_stored_at(&object, None);
    assert_eq!(c.stored_secs(), Some(10), "the same version changes nothing");
}

#[test]
fn a_copy_of_an_unknown_age_counts_from_its_arrival_and_no_copy_is_younger() {
    let (a, b, c) = (replica(1, 10), replica(2, 50), replica(3, 50));
    let object = a.put("v", &VectorClock::new());
    b.receive_stored_at(&object, None);
    c.receive_stored_at(&object, Some(2_000));
    assert_eq!((b.stored_secs(), c.stored_secs()), (Some(50), Some(50)));
}

#[test]
fn a_newer_version_has_its_own_age() {
    let (a, b) = (replica(1, 10), replica(2, 50));
    let first = a.put("1", &VectorClock::new());
    b.receive_stored_at(&first, Some(30));
    let second = a.put("2", &first.clock);
    b.receive_stored_at(&second, Some(20));
    assert_eq!((b.values(), b.stored_secs()), (vec!["2".to_owned()], Some(20)));
}

#[test]
fn what_is_made_of_two_versions_has_the_age_of_the_younger_one() {
    let (a, b) = (replica(1, 10), replica(2, 50));
    let (older, younger) = (a.put("1", &VectorClock::new()), b.put("2", &VectorClock::new()));
    a.set_time(90);
    a.receive_stored_at(&younger, b.stored_secs());
    b.set_time(90);
    b.receive_stored_at(&older, Some(10));
    assert_eq!((a.values().len(), b.values().len()), (2, 2));
    assert_eq!((a.stored_secs(), b.stored_secs()), (Some(50), Some(50)));
}

#[test]
fn a_tombstone_that_loses_its_time_is_no_younger() {
    let a = replica(1, 10);
    let value = a.put("v", &VectorClock::new());
    let tombstone = a.write(Sibling::tombstone(), &value.clock);
    a.set_time(90);
    a.take_time(&tombstone);
    assert!(!a.get().unwrap().has_timed_tombstone());
    assert_eq!(a.stored_secs(), Some(10));
}
