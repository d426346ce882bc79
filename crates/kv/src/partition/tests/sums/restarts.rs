//! Which sums outlive a stop.

use super::world::{Kind, World, storage_key, value};
use crate::deliberate_faults::{BrokenRule, break_rule};
use crate::sums::{SumsState, remove_saved_sums};
use ombak_storage::fs::RealFs;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

fn file(world: &World) -> PathBuf {
    world.dir.path().join("sums").join("0.sums")
}

fn put(world: &World, name: &str) {
    world.put_over(&storage_key("a", name), value(Some(1_900_000_000)));
}

/// A partition with exact sums.
fn summed(kind: Kind) -> World {
    let world = World::new(kind);
    put(&world, "one");
    world.walk(3);
    put(&world, "two");
    world
}

fn is_exact(world: &World) -> bool {
    world.check(3);
    world.partition().sums_state(3) == SumsState::Exact
}

#[test]
fn sums_outlive_an_orderly_stop() {
    for kind in [Kind::Bitcask, Kind::Leveled, Kind::Leveldb, Kind::Multi] {
        let mut world = summed(kind);
        for _ in 0..3 {
            world.restart(true);
            assert!(is_exact(&world), "{kind:?}");
            assert!(!file(&world).exists(), "a start takes the file away");
            assert_eq!(world.partition().sums_state(2), SumsState::Unknown);
        }
        put(&world, "three");
        assert!(is_exact(&world));
        world.restart(true);
        assert!(is_exact(&world), "{kind:?}");
        assert_eq!(world.partition().cut_of_class(3).unwrap().sums.total().versions, 3);
        assert_eq!(world.walk(3).differences, 0);
    }
}

/// A start takes what the last run has saved for evidence, and not for what is there.
#[test]
fn saved_sums_are_compared_with_the_index_before_they_count() {
    let mut world = World::with_differences(Kind::Bitcask);
    put(&world, "one");
    put(&world, "two");
    world.walk(3);
    world.restart(true);
    let is_checked = |world: &World| world.partition().cut_of_class(3).unwrap().is_checked;
    assert!(!is_checked(&world));
    assert_eq!(world.walk(3).differences, 0);
    assert!(is_checked(&world));
    // A record goes without a write, and nobody looks before the stop.
    assert!(world.partition().store().delete(&storage_key("a", "one")).unwrap().is_some());
    world.restart(true);
    assert!(!is_checked(&world));
    // One range, and the slot of its expiry.
    assert_eq!(world.walk(3).differences, 2);
    // Nobody has noted it, so the evidence outlives the next stop, too.
    world.restart(true);
    assert_eq!(world.walk(3).differences, 2);
}

/// A partition with one version that is set aside, and exact sums of two others. Returns the seq up
/// to which versions are set aside.
fn set_aside() -> (World, u64) {
    let world = World::with_differences(Kind::Bitcask);
    put(&world, "aside");
    let seq = world.partition().store().last_seq();
    world.partition().set_aside(seq);
    put(&world, "one");
    put(&world, "two");
    world.walk(3);
    (world, seq)
}

/// What a store that was set back held then may be set aside for as long as the store lives. Its
/// later losses must be noticed nevertheless.
#[test]
fn sums_outlive_an_orderly_stop_while_versions_are_set_aside() {
    let (mut world, seq) = set_aside();
    for _ in 0..2 {
        world.restart(true);
        assert_eq!(world.partition().sums_state(3), SumsState::Unknown, "nobody has said what is set aside");
        world.partition().set_aside(seq);
        assert!(is_exact(&world));
        assert_eq!(world.partition().cut_of_class(3).unwrap().sums.total().versions, 2);
        assert_eq!(world.walk(3).differences, 0);
    }
    assert!(world.partition().store().delete(&storage_key("a", "one")).unwrap().is_some());
    world.restart(true);
    world.partition().set_aside(seq);
    assert_eq!(world.walk(3).differences, 2, "one range, and the slot of its expiry");
}

#[test]
fn saved_sums_are_of_no_use_if_other_versions_are_set_aside_now() {
    let runs: [fn(&World, u64); 4] = [
        |_, _| (),
        |world, seq| world.partition().set_aside(seq + 1),
        |world, seq| [seq, 0].iter().for_each(|seq| world.partition().set_aside(*seq)),
        |world, seq| {
            put(world, "three");
            world.partition().set_aside(seq);
        },
    ];
    for (number, run) in runs.into_iter().enumerate() {
        let (mut world, seq) = set_aside();
        world.restart(true);
        run(&world, seq);
        assert_eq!(world.partition().sums_state(3), SumsState::Unknown, "{number}");
        assert_eq!(world.walk(3).differences, 0, "{number}");
        assert!(is_exact(&world), "{number}");
    }
    let mut world = summed(Kind::Bitcask);
    world.restart(true);
    world.partition().set_aside(1);
    assert_eq!(world.partition().sums_state(3), SumsState::Unknown);
}

#[test]
fn without_the_check_at_openings_a_loss_is_not_noticed() {
    let mut world = World::with_differences(Kind::Bitcask);
    put(&world, "one");
    put(&world, "two");
    world.walk(3);
    assert!(world.partition().store().delete(&storage_key("a", "one")).unwrap().is_some());
    world.stop(true);
    break_rule(Some(BrokenRule::SumsAreCheckedAtOpening));
    world.start(true);
    break_rule(None);
    assert_eq!(world.walk(3).differences, 0);
    assert!(world.partition().cut_of_class(3).unwrap().is_checked);
}

#[test]
fn an_offline_repair_removes_what_was_saved() {
    let mut world = summed(Kind::Leveled);
    world.stop(true);
    assert!(file(&world).exists());
    for _ in 0..2 {
        remove_saved_sums(&RealFs, world.dir.path(), 0).unwrap();
        assert!(!file(&world).exists());
    }
    world.start(true);
    assert_eq!(world.partition().sums_state(3), SumsState::Unknown);
}

#[test]
fn sums_end_with_a_process_that_is_killed() {
    for kind in [Kind::Bitcask, Kind::Leveled] {
        let mut world = summed(kind);
        world.restart(false);
        assert!(!is_exact(&world), "{kind:?}");
        // The file of an earlier stop must not be there any more.
        world.walk(3);
        world.restart(true);
        assert!(is_exact(&world));
        put(&world, "three");
        world.restart(false);
        assert!(!is_exact(&world), "{kind:?}");
    }
}

#[test]
fn memory_stores_and_stores_that_remove_by_themselves_save_nothing() {
    for kind in [Kind::Memory, Kind::MemoryWithAge, Kind::BitcaskWithAge, Kind::LeveledWithAge] {
        let mut world = summed(kind);
        world.stop(true);
        assert!(!file(&world).exists(), "{kind:?}");
        world.start(true);
        assert_eq!(world.partition().sums_state(3), SumsState::Unknown, "{kind:?}");
    }
}

#[test]
fn sums_that_are_behind_are_not_saved() {
    let mut world = World::new(Kind::Bitcask);
    put(&world, "one");
    let mut walk = world.begin(3);
    walk.step(1).unwrap();
    drop(walk);
    world.stop(true);
    assert!(!file(&world).exists());
}

/// A crash, or an operator, may leave a file of an earlier run. `run` is what happened since.
fn stale_file(kind: Kind, run: impl FnOnce(&mut World)) -> World {
    let mut world = summed(kind);
    world.stop(true);
    let saved = fs::read(file(&world)).unwrap();
    run(&mut world);
    fs::create_dir_all(file(&world).parent().unwrap()).unwrap();
    fs::write(file(&world), saved).unwrap();
    world.start(true);
    world
}

#[test]
fn a_file_of_an_earlier_run_is_not_taken() {
    for kind in [Kind::Bitcask, Kind::Leveled, Kind::Multi] {
        for is_clean in [true, false] {
            let world = stale_file(kind, |world| {
                // A version of the program that keeps no sums.
                world.start(false);
                put(world, "three");
                world.stop(is_clean);
            });
            assert!(!is_exact(&world), "{kind:?}, closed cleanly: {is_clean}");
        }
        // A run that has written nothing may have recorded its start. Then the file is not taken
        // either; if it is taken, it is right.
        let world = stale_file(kind, |world| {
            world.start(false);
            world.stop(true);
        });
        world.check(3);
        let world = stale_file(kind, |world| {
            world.start(false);
            let key = storage_key("a", "one");
            let digest = world.digest_of(&key).unwrap();
            assert!(world.lock(&key).remove_proven(digest).unwrap());
            put(world, "one");
            world.stop(true);
        });
        assert!(!is_exact(&world), "{kind:?}: as many keys as before");
    }
}

#[test]
fn a_file_of_another_store_and_a_damaged_one_are_not_taken() {
    let world = stale_file(Kind::Bitcask, |world| {
        fs::remove_dir_all(world.dir.path().join("stores")).unwrap();
    });
    assert!(!is_exact(&world));
    let mut world = summed(Kind::Bitcask);
    world.stop(true);
    let mut bytes = fs::read(file(&world)).unwrap();
    bytes[100] ^= 1;
    fs::write(file(&world), bytes).unwrap();
    world.start(true);
    assert!(!is_exact(&world) && !file(&world).exists());
}

#[test]
fn sums_wait_for_the_class_map_of_their_run() {
    let changed_between = |run: fn(&World)| {
        let mut world = summed(Kind::Bitcask);
        world.stop(true);
        world.set_bucket_while_stopped("other", "n_val", json!(2));
        world.start(true);
        assert_eq!(world.partition().sums_state(3), SumsState::Unknown);
        run(&world);
        // The node hears what its cluster has decided.
        world.set_bucket("other", "n_val", json!(3));
        world
    };
    assert!(is_exact(&changed_between(|_| ())));
    let written = changed_between(|world| put(world, "three"));
    assert!(!is_exact(&written), "nobody knows in which class this counts");
    written.walk(3);
    written.check(3);
    let walked = changed_between(|world| assert!(world.walk(3).is_current));
    walked.walk(3);
    walked.check(3);
}
