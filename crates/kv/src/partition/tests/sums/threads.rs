//! Threads that write while others walk over a class and cut its sums.

use super::world::{Kind, World, storage_key, value};
use crate::sums::{ClassCut, Sums, SumsStep};
use ombak_storage::IndexedVersion;
use ombak_types::{Object, VectorClock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const WRITERS: u64 = 3;
const WRITES: u64 = 1_500;
/// The keys of each writer.
const KEYS: u64 = 40;

fn key(writer: u64, number: u64) -> Vec<u8> {
    storage_key("a", &format!("{writer}-{}", number % KEYS))
}

/// Walks over the class while others write. A wrong sum ends the test (`note_differences`).
fn walk_until(world: &World, is_over: &AtomicBool) -> u64 {
    let mut walks = 0;
    while walks == 0 || !is_over.load(Ordering::SeqCst) {
        let Some(mut walk) = world.partition().begin_sums_walk(3).unwrap() else { continue };
        let end = loop {
            if let SumsStep::Ended(end) = walk.step(16).unwrap() {
                break end;
            }
        };
        assert_eq!((end.is_current, end.differences), (true, 0));
        walks += 1;
    }
    walks
}

fn write(world: &World, writer: u64, now_secs: &AtomicU64) {
    for number in 0..WRITES {
        let key = key(writer, number.wrapping_mul(7));
        if number % 5 == 0 {
            if let Some(digest) = world.digest_of(&key) {
                // A store with an age may have removed it meanwhile.
                world.lock(&key).remove_proven(digest).unwrap();
            }
        } else {
            world.put_over(&key, value((number % 3 == 0).then_some(1_900_000_000)));
        }
        if number % 50 == 0 {
            now_secs.fetch_add(20, Ordering::SeqCst);
        }
    }
}

fn walks_beside_writers(kind: Kind) {
    let world = World::new(kind);
    let (is_over, now_secs) = (AtomicBool::new(false), AtomicU64::new(world.now_secs));
    let (world, is_over, now_secs) = (&world, &is_over, &now_secs);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(world, writer, now_secs))).collect();
        let others = [
            scope.spawn(|| {
                let mut turns = 0;
                while turns == 0 || !is_over.load(Ordering::SeqCst) {
                    world.partition().store().maintain(now_secs.load(Ordering::SeqCst)).unwrap();
                    turns += 1;
                    thread::yield_now();
                }
                turns
            }),
            scope.spawn(|| walk_until(world, is_over)),
        ];
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        others.into_iter().for_each(|other| assert!(other.join().unwrap() > 0));
    });
    world.walk(3);
    world.check(3);
}

#[test]
fn walks_beside_writers_find_no_difference() {
    for kind in [Kind::Memory, Kind::MemoryWithAge, Kind::Bitcask, Kind::BitcaskWithAge, Kind::Leveled, Kind::Multi] {
        walks_beside_writers(kind);
    }
}

/// The sums after the first writes, up to a seq.
fn sums_at(log: &BTreeMap<u64, (Vec<u8>, u64)>, seq: u64) -> Sums {
    let mut present = BTreeMap::new();
    for (seq, (key, digest)) in log.range(..=seq) {
        present.insert(key, IndexedVersion { digest: *digest, seq: *seq, expires_secs: 0 });
    }
    let mut sums = Sums::default();
    present.iter().for_each(|(key, version)| sums.add(key, *version));
    sums
}

#[test]
fn a_cut_has_each_write_up_to_its_seq_and_no_later_one() {
    let world = World::new(Kind::Bitcask);
    world.walk(3);
    let (world, is_over) = (&world, &AtomicBool::new(false));
    let (log, cuts) = thread::scope(|scope| {
        let write = move |writer| {
            let once = |number| {
                let key = key(writer, number);
                let mut locked = world.lock(&key);
                locked.load_for(&VectorClock::new(), false).unwrap();
                let object = Object::new(value(None));
                let written = locked.coordinate(object, b"vtag", &world.rules()).unwrap();
                (written.seq, (key.clone(), written.digest))
            };
            (0..2 * KEYS).map(once).collect::<Vec<_>>()
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let cutter = scope.spawn(|| {
            let mut cuts: Vec<ClassCut> = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                cuts.push(world.partition().cut_of_class(3).unwrap());
                thread::yield_now();
            }
            cuts
        });
        let log: BTreeMap<_, _> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        is_over.store(true, Ordering::SeqCst);
        (log, cutter.join().unwrap())
    });
    assert_eq!(log.len() as u64, WRITERS * 2 * KEYS);
    for cut in cuts {
        assert!(cut.sums == sums_at(&log, cut.seq), "the cut at {}", cut.seq);
    }
    world.check(3);
}
