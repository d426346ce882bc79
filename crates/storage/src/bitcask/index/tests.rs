use super::*;
use std::collections::{BTreeMap, BTreeSet};

fn entry(seq: u64) -> Entry {
    let position = Position {
        file_id: (seq % 7) as u32,
        offset: seq as u32,
        size: if seq.is_multiple_of(5) { 1 << 31 | 7 } else { 100 },
        head_units: 1,
        has_terms: seq.is_multiple_of(2),
    };
    let expires_secs = if seq.is_multiple_of(3) { seq as u32 } else { 0 };
    Entry { position, expires_secs, seq, digest: seq * 3 }
}

type Model = BTreeMap<Vec<u8>, Entry>;

/// A small random generator: the tests need variety, not quality.
fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn costs_at_most_42_bytes_beyond_what_keys_do_not_share() {
    // Right after the hash tables have doubled, they waste the most memory; 1,000,000 is a size
    // from practice.
    for keys in [940_000u64, 1_000_000] {
        let index = Index::new();
        for n in 0..keys {
            let plain =
                Entry { position: Position { size: 100, ..entry(n + 1).position }, expires_secs: 0, ..entry(n + 1) };
            index.put(HashedKey::new(format!("\x02\0\x06bucket{n:014}").as_bytes()), &plain);
        }
        let sizes = index.sizes();
        assert_eq!(sizes.keys, keys);
        let per_key = (sizes.bytes - 14 * keys) as f64 / keys as f64;
        println!("{keys} keys: {per_key:.2} bytes a key beyond the 14 of its name");
        assert!(per_key <= 42.0, "{per_key} bytes a key");
    }
}

#[test]
fn agrees_with_a_map_and_snapshots_see_their_moment() {
    let index = Index::new();
    let mut model = Model::new();
    let mut snapshots: Vec<(SnapshotSlot, Model, Vec<Vec<u8>>)> = Vec::new();
    let mut random = 0x9E37_79B9_7F4A_7C15;
    for seq in 1..60_000u64 {
        let number = next_random(&mut random) % 3000;
        // Keys of more buckets than a shard has prefixes for, and some that are not storage keys.
        let bucket = if number.is_multiple_of(3) { String::new() } else { format!("\x02\0\x03{:03}", number % 200) };
        let key = format!("{bucket}{number}{}", "x".repeat((number % 300) as usize)).into_bytes();
        match next_random(&mut random) % 100 {
            0..55 => {
                assert_eq!(index.put(HashedKey::new(&key), &entry(seq)), model.insert(key, entry(seq)));
            }
            55..90 => assert_eq!(index.remove_if(HashedKey::new(&key), |_| true), model.remove(&key)),
            90 if snapshots.len() < 5 => {
                snapshots.push((index.begin_snapshot(seq).unwrap(), model.clone(), Vec::new()));
            }
            91..96 => {
                if let Some((slot, seen, found)) = snapshots.first_mut() {
                    assert_eq!(index.get_at(HashedKey::new(&key), slot), seen.get(&key).copied());
                    let mut left = 150;
                    let more = index.walk(slot, KeyHashRange::ALL, |key, entry| {
                        assert_eq!(seen.get(key), Some(entry));
                        found.push(key.to_vec());
                        left -= 1;
                        left > 0
                    });
                    if !more {
                        found.sort();
                        assert!(found.iter().eq(seen.keys()), "{} of {}", found.len(), seen.len());
                        index.end_snapshot(&snapshots.remove(0).0);
                    }
                }
            }
            96 => index.compact_some(),
            _ => assert_eq!(index.get(HashedKey::new(&key)), model.get(&key).copied()),
        }
        assert_eq!(index.get(HashedKey::new(b"never")), None);
    }
    snapshots.iter().for_each(|(slot, ..)| index.end_snapshot(slot));
    assert_eq!(index.sizes().keys, model.len() as u64);
    assert_eq!(index.sizes().key_bytes, model.keys().map(|key| key.len() as u64).sum::<u64>());
    for (key, entry) in &model {
        assert_eq!(index.remove_if(HashedKey::new(key), |_| true), Some(*entry));
    }
    for _ in 0..SHARDS {
        index.compact_some();
    }
    assert_eq!(index.sizes().keys, 0);
    assert!(index.sizes().bytes < 2_000_000, "nothing of ended snapshots stays: {:?}", index.sizes());
}

#[test]
fn loading_in_any_order_ends_with_the_newest() {
    let index = Index::new();
    let tombstone = |seq| Entry { position: Position { size: 0, ..entry(seq).position }, ..entry(seq) };
    let key = HashedKey::new(b"k");
    assert_eq!(index.load(key, &entry(5)), Loaded::Newest(None));
    assert_eq!(index.load(key, &entry(3)), Loaded::Superseded);
    assert_eq!(index.load(key, &tombstone(9)), Loaded::Newest(Some(entry(5))));
    assert_eq!(index.load(key, &entry(8)), Loaded::Superseded);
    assert_eq!(index.load(HashedKey::new(b"l"), &entry(1)), Loaded::Newest(None));
    index.finish_load();
    assert_eq!(index.get(key), None);
    assert_eq!(index.sizes().keys, 1);
}

#[test]
fn long_keys_fit() {
    let index = Index::new();
    for length in [0usize, 1, 16_349, 16_350, 16_351, 70_000, 200_000] {
        let key = vec![b'k'; length];
        index.put(HashedKey::new(&key), &entry(length as u64 + 1));
        assert_eq!(index.get(HashedKey::new(&key)), Some(entry(length as u64 + 1)));
    }
    assert_eq!(index.sizes().keys, 7);
}

#[test]
fn a_version_that_a_merge_makes_shorter_stays_in_its_place() {
    let index = Index::new();
    let key = HashedKey::new(b"key");
    let long = Position { file_id: 1, offset: 40, size: 20 << 20, head_units: 1, has_terms: true };
    let short = Position { file_id: 2, offset: 40, size: 1000, ..long };
    let entry = Entry { position: long, expires_secs: 0, seq: 1, digest: 7 };
    index.put(key, &entry);
    assert!(index.relocate(key, long, short));
    assert_eq!(index.get(key), Some(Entry { position: short, ..entry }));
    let next = Entry { position: Position { file_id: 3, ..short }, seq: 2, ..entry };
    assert_eq!(index.put(key, &next), Some(Entry { position: short, ..entry }));
    assert_eq!((index.get(key), index.sizes().keys), (Some(next), 1));
}

#[test]
fn a_walk_of_all_there_is_keeps_one_version_of_a_key_however_often_it_changes() {
    let index = Index::new();
    let key = HashedKey::new(b"key");
    index.put(key, &entry(1));
    let mut walk = index.begin_snapshot(crate::limits::SEQ_MAX).unwrap();
    index.put(key, &entry(2));
    let bytes = index.sizes().bytes;
    for seq in 3..10_000 {
        index.put(key, &entry(seq));
    }
    let grown = index.sizes().bytes - bytes;
    assert!(grown < 1000, "{grown} bytes");
    let mut met = 0;
    index.walk(&mut walk, KeyHashRange::ALL, |_, _| {
        met += 1;
        true
    });
    assert!(met > 0);
    index.end_snapshot(&walk);
}

/// A compaction moves the entries of a shard. A place of before would lie in the middle of one.
#[test]
fn walks_without_a_snapshot_go_on_after_a_compaction() {
    let index = Index::new();
    let key = |number: u64| format!("\x02\0\x01b{number:09}").into_bytes();
    for number in 1..=40_000 {
        index.put(HashedKey::new(&key(number)), &Entry { expires_secs: 5, ..entry(number) });
    }
    let (mut place, mut sweep) = (KeyPlace::default(), SweepCursor::default());
    let mut met: BTreeSet<Bytes> = index.keys_from(&mut place, 700).into_iter().collect();
    let mut swept: BTreeSet<Bytes> = index.expired(10, &mut sweep, 700).into_iter().collect();
    assert_eq!((met.len(), sweep.is_done), (700, false));
    for number in (1..=40_000).filter(|number| number % 4 != 0) {
        index.remove_if(HashedKey::new(&key(number)), |_| true);
    }
    let before = index.sizes().bytes;
    (0..SHARDS).for_each(|_| index.compact_some());
    assert!(index.sizes().bytes < before);
    while !place.is_end() {
        met.extend(index.keys_from(&mut place, 100));
    }
    while !sweep.is_done {
        swept.extend(index.expired(10, &mut sweep, 1_000));
    }
    for number in (1..=40_000).filter(|number| number % 4 == 0) {
        assert!(met.contains(&key(number)[..]) && swept.contains(&key(number)[..]), "{number}");
    }
}

/// A thread that walks may give way to others. While it waits for a shard, gets come in.
#[test]
fn gets_do_not_wait_behind_a_walk_that_waits() {
    let index = Index::new();
    let mut walk = index.begin_snapshot(crate::limits::SEQ_MAX).unwrap();
    let held = index.shards[0].read();
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::sync_channel(0);
        let index = &index;
        scope.spawn(move || {
            tell.send(()).unwrap();
            index.walk(&mut walk, KeyHashRange::ALL, |_, _| true);
            index.end_snapshot(&walk);
        });
        told.recv().unwrap();
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_millis(3) {
            assert!(index.shards[0].try_read().is_some());
        }
        drop(held);
    });
}
