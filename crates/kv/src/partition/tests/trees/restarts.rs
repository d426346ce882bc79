//! Which trees outlive a stop.

use super::check::{build, is_answered_as_by_a_walk};
use crate::kept_trees::remove_saved_trees;
use crate::partition::tests::sums::world::{Kind, World, storage_key, value};
use ombak_storage::fs::RealFs;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

fn file(world: &World) -> PathBuf {
    world.dir.path().join("trees").join("0.trees")
}

fn put(world: &World, name: &str) {
    world.put_over(&storage_key("a", name), value(None));
}

/// A partition with a tree.
fn kept(kind: Kind) -> World {
    let world = World::new(kind);
    put(&world, "one");
    build(&world, 3);
    put(&world, "two");
    world
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

#[test]
fn trees_outlive_an_orderly_stop() {
    for kind in [Kind::Bitcask, Kind::Leveled, Kind::Leveldb, Kind::Multi] {
        let mut world = kept(kind);
        for name in ["three", "four"] {
            world.restart(true);
            assert!(is_answered_as_by_a_walk(&world, 3), "{kind:?}");
            assert!(!file(&world).exists(), "a start takes the file away");
            assert!(!world.partition().has_kept_tree(2));
            put(&world, name);
            assert!(is_answered_as_by_a_walk(&world, 3), "{kind:?}");
        }
        assert_eq!(build(&world, 3).differences, 0);
    }
}

#[test]
fn trees_do_not_outlive_a_crash_or_damage_of_their_file() {
    let mut world = kept(Kind::Bitcask);
    world.restart(false);
    assert!(!is_answered_as_by_a_walk(&world, 3));
    build(&world, 3);
    world.stop(true);
    let mut bytes = fs::read(file(&world)).unwrap();
    bytes[60] ^= 1;
    fs::write(file(&world), bytes).unwrap();
    world.start(true);
    assert!(!is_answered_as_by_a_walk(&world, 3) && !file(&world).exists());
    build(&world, 3);
    world.stop(true);
    remove_saved_trees(&RealFs, world.dir.path(), 0).unwrap();
    remove_saved_trees(&RealFs, world.dir.path(), 0).unwrap();
    world.start(true);
    assert!(!is_answered_as_by_a_walk(&world, 3));
}

/// The file of trees is of a later run than the store.
#[test]
fn trees_of_a_store_that_was_set_back_are_not_taken() {
    for kind in [Kind::Bitcask, Kind::Leveled, Kind::Leveldb] {
        let mut world = kept(kind);
        world.stop(true);
        let (stores, earlier) = (world.dir.path().join("stores"), world.dir.path().join("earlier"));
        copy(&stores, &earlier);
        world.start(true);
        put(&world, "three");
        assert!(is_answered_as_by_a_walk(&world, 3));
        world.stop(true);
        fs::remove_dir_all(&stores).unwrap();
        copy(&earlier, &stores);
        world.start(true);
        assert!(!is_answered_as_by_a_walk(&world, 3), "{kind:?}");
        assert_eq!(build(&world, 3).versions, 2);
        assert!(is_answered_as_by_a_walk(&world, 3));
    }
}

/// A run without trees, as of an earlier version of the program, leaves the file as it is.
#[test]
fn trees_from_before_a_run_that_kept_none_are_not_taken() {
    let mut world = kept(Kind::Bitcask);
    world.stop(true);
    world.start(false);
    put(&world, "three");
    world.restart(true);
    assert!(!is_answered_as_by_a_walk(&world, 3));
}

#[test]
fn trees_outlive_a_stop_only_if_they_have_the_same_keys() {
    for (property, value) in [("n_val", json!(2)), ("aae_tree_exclude", json!(true))] {
        let mut world = kept(Kind::Bitcask);
        world.stop(true);
        world.set_bucket_while_stopped("a", property, value);
        world.start(true);
        assert!(!is_answered_as_by_a_walk(&world, 3), "{property}");
        put(&world, "three");
        assert!(!is_answered_as_by_a_walk(&world, 3), "{property}");
        build(&world, 3);
        assert!(is_answered_as_by_a_walk(&world, 3));
    }
}

#[test]
fn what_is_set_aside_is_in_no_tree_after_a_restart() {
    let mut world = kept(Kind::Bitcask);
    let seq = world.partition().store().last_seq();
    world.partition().set_aside(seq);
    assert!(!is_answered_as_by_a_walk(&world, 3));
    assert_eq!(build(&world, 3).versions, 0);
    put(&world, "one");
    assert!(is_answered_as_by_a_walk(&world, 3));
    world.restart(true);
    assert!(!is_answered_as_by_a_walk(&world, 3), "a start has not said yet what is set aside");
    world.partition().set_aside(seq);
    assert!(is_answered_as_by_a_walk(&world, 3));
    world.restart(true);
    put(&world, "two");
    assert!(!is_answered_as_by_a_walk(&world, 3), "something was written before the start said so");
    world.partition().set_aside(seq);
    assert!(!is_answered_as_by_a_walk(&world, 3));
}
