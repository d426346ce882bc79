//! Trees while many threads write.

use super::check::{begin, build, is_answered_as_by_a_walk};
use crate::kept_trees::BuildStep;
use crate::partition::tests::sums::world::{Kind, World, storage_key, value};
use ombak_types::Sibling;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const WRITERS: u64 = 3;
const KEYS: u64 = 60;
const BUILDS: u64 = 40;
const WRITES: u64 = 2_000;

/// Ends the writers, also when the test fails.
struct EndsWriters<'a>(&'a AtomicBool);

impl Drop for EndsWriters<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Puts, deletes and reaps one of the keys that all threads write to.
fn write(world: &World, op: u64) {
    let key = storage_key("a", &format!("k{}", op * 7 % KEYS));
    match op % 5 {
        3 => drop(world.put_over(&key, Sibling::tombstone())),
        4 => {
            if let Some(digest) = world.digest_of(&key) {
                world.lock(&key).reap(digest, world.now()).unwrap();
            }
        }
        _ => drop(world.put_over(&key, value(None))),
    }
}

#[test]
fn builds_beside_writes_give_the_tree_of_a_walk() {
    for kind in [Kind::Memory, Kind::Bitcask, Kind::Leveled] {
        let world = World::new(kind);
        let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|threads| {
            for writer in 0..WRITERS {
                let (world, is_over, written) = (&world, &is_over, &written);
                threads.spawn(move || {
                    for op in 0.. {
                        if is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        write(world, op * 11 + writer);
                        written.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let _ends = EndsWriters(&is_over);
            let mut builds = 0;
            while builds < BUILDS || written.load(Ordering::SeqCst) < WRITES {
                builds += 1;
                let mut build = begin(&world, 3);
                while build.step(7).unwrap() != BuildStep::Visited {
                    thread::yield_now();
                }
                // The tree of the build before has counted all changes in its own way.
                assert_eq!(world.partition().end_tree(build).unwrap().differences, 0);
            }
        });
        assert!(is_answered_as_by_a_walk(&world, 3));
        assert_eq!(build(&world, 3).differences, 0);
    }
}
