//! When sums do not count as exact, and what a walk does about it.

use super::world::{Kind, World, raw, storage_key, value};
use crate::sums::{SumsState, SumsStep};
use ombak_storage::{IndexedVersion, Previous};
use ombak_types::VectorClock;
use serde_json::json;

fn filled(kind: Kind) -> World {
    let world = World::new(kind);
    for number in 0..20 {
        world.put_over(&storage_key("a", &format!("k{number}")), value(None));
    }
    world
}

#[test]
fn a_class_is_counted_from_its_first_walk_on() {
    let world = filled(Kind::Memory);
    assert_eq!((world.partition().sums_state(3), world.partition().cut_of_class(3)), (SumsState::Unknown, None));
    let mut walk = world.begin(3);
    assert_eq!(world.partition().sums_state(3), SumsState::Behind(4_096));
    assert_eq!(walk.step(7).unwrap(), SumsStep::More);
    // The walk does not see this: it comes after the snapshot.
    world.put_over(&storage_key("a", "k3"), value(None));
    world.put_over(&storage_key("a", "new"), value(Some(1_900_000_000)));
    assert_eq!(world.partition().cut_of_class(3), None);
    while walk.step(7).unwrap() == SumsStep::More {}
    let SumsStep::Ended(end) = walk.step(7).unwrap() else { panic!("it has ended") };
    assert_eq!((end.is_current, end.versions, end.differences), (true, 20, 0));
    assert_eq!(world.partition().cut_of_class(3).unwrap().sums.total().versions, 21);
    world.check(3);
    world.walk(2);
    assert_eq!(world.partition().cut_of_class(2).unwrap().sums.total().versions, 0);
}

#[test]
fn one_walk_at_a_time_and_one_that_is_given_up_changes_nothing() {
    let world = filled(Kind::Bitcask);
    let mut walk = world.begin(3);
    walk.step(7).unwrap();
    assert!(world.partition().begin_sums_walk(3).unwrap().is_none());
    assert!(world.partition().begin_sums_walk(2).unwrap().is_some(), "another class");
    drop(walk);
    assert_eq!(world.partition().sums_state(3), SumsState::Behind(4_096));
    assert_eq!(world.walk(3).differences, 0);
    world.check(3);
    // A walk that has ended does not end the turn of the next one.
    let mut ended = world.begin(3);
    while ended.step(7).unwrap() == SumsStep::More {}
    let _next = world.begin(3);
    drop(ended);
    assert!(world.partition().begin_sums_walk(3).unwrap().is_none());
}

#[test]
fn a_walk_over_a_store_that_fails_leaves_the_sums_behind() {
    let world = filled(Kind::Bitcask);
    let mut walk = world.begin(3);
    world.partition().store().close().unwrap();
    assert!(walk.step(7).is_err());
    drop(walk);
    assert_eq!(world.partition().sums_state(3), SumsState::Behind(4_096));
    assert!(world.partition().begin_sums_walk(3).is_err());
}

/// Without a record of such a drop, the new sums would lack it, or have it twice.
#[test]
fn a_drop_while_the_snapshot_is_taken_puts_the_walk_off() {
    let world = filled(Kind::Memory);
    let (key, store) = (storage_key("a", "k3"), world.partition().store());
    let digest = world.digest_of(&key).unwrap();
    let sums = world.partition().sums().unwrap();
    let begun = sums.begin_walk(3, store.last_seq(), || {
        let snapshot = world.partition().snapshot();
        assert!(store.drop_if(&key, digest).unwrap());
        snapshot
    });
    assert!(begun.unwrap().is_none());
    assert_eq!(world.walk(3).differences, 0);
    world.check(3);
}

#[test]
fn a_version_that_a_receipt_does_not_name_leaves_its_range_behind() {
    let world = filled(Kind::Memory);
    world.walk(3);
    let key = storage_key("a", "lost");
    let put = |previous, digest| {
        let appended = world.partition().store().put(&raw(&key, &[b"v"], digest, 5_000)).unwrap();
        let after = IndexedVersion { digest, seq: appended.seq, expires_secs: 5_000 };
        world.partition().sums().unwrap().changed(&key, previous, Some(after));
    };
    put(Previous::Nothing, 2);
    world.check(3);
    put(Previous::Unknown, 4);
    assert_eq!((world.partition().sums_state(3), world.partition().cut_of_class(3)), (SumsState::Behind(1), None));
    let mut walk = world.begin(3);
    // The walk that is under way knows nothing of the second one.
    put(Previous::Unknown, 6);
    while walk.step(7).unwrap() == SumsStep::More {}
    assert_eq!(world.partition().sums_state(3), SumsState::Behind(1));
    assert_eq!(world.walk(3).differences, 0, "the reason is known");
    assert_eq!(world.partition().sums_state(3), SumsState::Exact);
    world.check(3);
}

/// The sums are the evidence of a loss, so they stay wrong until somebody has noted it.
#[test]
fn a_wrong_sum_is_found_counted_and_corrected_when_that_was_noted() {
    let world = World::with_differences(Kind::Memory);
    world.put_over(&storage_key("a", "k3"), value(None));
    world.walk(3);
    assert!(world.partition().cut_of_class(3).unwrap().is_checked);
    world.partition().sums().unwrap().damage(3, &storage_key("a", "k3"));
    for found in 1..=2 {
        let end = world.walk(3);
        assert_eq!((end.differences, end.seq), (1, world.partition().store().last_seq()));
        assert_eq!(world.partition().sums_differences(), found);
        assert!(!world.partition().cut_of_class(3).unwrap().is_checked, "nobody has noted it");
    }
    let mut walk = world.begin(3);
    while walk.step(7).unwrap() == SumsStep::More {}
    // This write is not lost.
    world.put_over(&storage_key("a", "later"), value(None));
    walk.accept();
    walk.accept();
    assert!(world.partition().cut_of_class(3).unwrap().is_checked);
    world.check(3);
    assert_eq!(world.walk(3).differences, 0);
}

#[test]
#[should_panic(expected = "not those of its store")]
#[cfg(debug_assertions)]
fn a_wrong_sum_ends_a_test() {
    let world = filled(Kind::Memory);
    world.walk(3);
    world.partition().sums().unwrap().damage(3, &storage_key("a", "k3"));
    world.walk(3);
}

/// Only the classes that some key enters or leaves are summed up anew.
#[test]
fn another_type_leaves_the_sums_of_other_classes_alone() {
    let world = filled(Kind::Memory);
    world.walk(3);
    world.walk(2);
    world.run().registry.create_type(b"t", json!({"n_val": 2}).as_object().unwrap()).unwrap();
    let state = |n| world.partition().sums_state(n);
    assert_eq!((state(3), state(2)), (SumsState::Exact, SumsState::Unknown));
    world.put_over(&storage_key("a", "k3"), value(None));
    world.check(3);
    world.walk(2);
    assert_eq!((state(3), state(2)), (SumsState::Exact, SumsState::Exact));
}

/// A write that comes while the bucket has another n is counted in another class.
#[test]
fn sums_do_not_count_again_when_an_n_is_set_back() {
    let world = filled(Kind::Memory);
    world.walk(3);
    world.set_bucket("a", "allow_mult", json!(true));
    assert_eq!(world.partition().sums_state(3), SumsState::Exact, "another property");
    let mut in_vain = world.begin(3);
    world.set_bucket("a", "n_val", json!(2));
    assert_eq!((world.partition().sums_state(3), world.partition().cut_of_class(3)), (SumsState::Unknown, None));
    world.put_over(&storage_key("a", "k3"), value(None));
    world.set_bucket("a", "n_val", json!(3));
    assert_eq!(world.partition().cut_of_class(3), None);
    while in_vain.step(7).unwrap() == SumsStep::More {}
    assert!(matches!(in_vain.step(7).unwrap(), SumsStep::Ended(end) if !end.is_current));
    assert_eq!(world.partition().cut_of_class(3), None);
    world.walk(3);
    world.check(3);
    assert_eq!(world.partition().sums_state(3), SumsState::Exact);
}

#[test]
fn what_is_set_aside_is_not_counted() {
    let world = filled(Kind::Memory);
    world.walk(3);
    world.partition().set_aside(world.partition().store().last_seq());
    assert_eq!(world.partition().sums_state(3), SumsState::Unknown);
    world.walk(3);
    assert_eq!(world.partition().cut_of_class(3).unwrap().sums.total().versions, 0);
    world.put(&storage_key("a", "k3"), value(None), &VectorClock::new());
    assert_eq!(world.partition().cut_of_class(3).unwrap().sums.total().versions, 1);
    world.partition().set_aside(world.partition().set_aside_to());
    world.check(3);
    assert_eq!(world.partition().sums_state(3), SumsState::Exact, "nothing has changed");
}

#[test]
fn a_store_that_removes_by_itself_says_so_in_its_cut() {
    for (kind, removes_by_itself) in [(Kind::Memory, false), (Kind::MemoryWithAge, true), (Kind::LeveledWithAge, true)]
    {
        let world = filled(kind);
        world.walk(3);
        assert_eq!(world.partition().cut_of_class(3).unwrap().removes_by_itself, removes_by_itself);
    }
}
