//! Values that a newer tombstone hides (docs/design/replication.md §6).

use super::replica::Replica;
use ombak_types::{Object, Sibling, VectorClock};

fn newest(replica: &Replica) -> Object {
    let mut object = replica.get().unwrap();
    object.keep_newest();
    object
}

/// History 11: a value is hidden by a deletion, and another one is newer than the deletion. Nobody
/// has seen anything of the others.
#[test]
fn a_tombstone_that_is_written_anew_hides_nothing_that_is_newer() {
    let (one, two, three) = (Replica::new(1), Replica::new(2), Replica::new(3));
    let blind = VectorClock::new();
    one.put("hidden", &blind);
    two.set_time(5);
    let deleted = two.write(Sibling::tombstone(), &blind);
    three.set_time(7);
    let newer = three.put("newer", &blind);
    one.receive(&deleted);
    let seen = one.get().unwrap().clock;
    one.set_time(9);
    let anew = one.replace_hidden().unwrap();
    assert!(anew.is_deleted() && anew.clock.descends(&seen) && !seen.descends(&anew.clock));
    assert_eq!(anew.last_modified(), deleted.last_modified());
    one.receive(&newer);
    assert_eq!(newest(&one).siblings[0].value, "newer");
    assert!(one.replace_hidden().is_none(), "the newest is a value");
    // Whoever had the hidden value takes the new tombstone for its descendant.
    three.receive(&anew);
    assert_eq!(newest(&three).siblings[0].value, "newer");
}

#[test]
fn a_tombstone_alone_and_a_newer_value_stay_as_they_are() {
    let (one, two) = (Replica::new(1), Replica::new(2));
    assert!(one.replace_hidden().is_none());
    let deleted = one.write(Sibling::tombstone(), &VectorClock::new());
    assert!(one.replace_hidden().is_none());
    two.set_time(5);
    two.put("value", &VectorClock::new());
    two.receive(&deleted);
    assert!(two.replace_hidden().is_none());
    assert_eq!(two.get().unwrap().siblings.len(), 2);
}
