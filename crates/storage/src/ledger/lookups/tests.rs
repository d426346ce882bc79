//! Looking many keys up at once finds what looking up each finds.

use super::*;
use crate::backend::NoTerms;
use crate::journal::{JournalConfig, Position, Version};
use crate::ledger::LedgerConfig;
use crate::ledger::index::LedgerShared;
use crate::ledger::tree::TreeShared;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

type Index = LedgerIndex<false>;

fn open(dir: &Path) -> Index {
    let limits = LedgerConfig { table_bytes: 4096, block_bytes: 512, ..LedgerConfig::default() }.tree_limits();
    let (trees, journal) = (TreeShared::new(limits), JournalConfig::default());
    let shared = Arc::new(LedgerShared::new(trees, Arc::new(NoTerms), 1 << 20, 1 << 30, journal));
    Index::open(&dir.join("ledger"), &shared).unwrap()
}

fn put(index: &Index, key: &[u8], seq: u64) {
    let position = Position { file_id: 1, offset: seq as u32, size: 9, head_units: 1, has_terms: false };
    let entry = Entry { position, expires_secs: 0, seq, digest: seq * 7 };
    let version = Version { head: b"head", body: &[], tstamp_secs: 5, expires_secs: 0 };
    index.put(key, &entry, &version, index.read_before_write(key).unwrap());
}

fn remove(index: &Index, key: &[u8]) {
    index.remove(key, index.read_before_write(key).unwrap());
}

fn flush(index: &Index) {
    index.tree.rotate();
    index.tree.flush().unwrap();
}

/// The key with a number. Keys are in the order of their numbers, and a few are longer than the
/// library takes.
fn key(number: u32) -> Vec<u8> {
    let mut key = format!("key {number:06}").into_bytes();
    if number % 100 == 77 {
        key.resize(70_000, b'x');
    }
    key
}

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(|key| &key[..]).collect()
}

fn seqs(index: &Index, keys: &[Vec<u8>], view: &LedgerView) -> Vec<Option<u64>> {
    let found = index.entries_at(&slices(keys), view).unwrap();
    found.into_iter().map(|entry| entry.map(|entry| entry.seq)).collect()
}

/// How many of these keys, which are in order, the first walk answers.
fn answered_by_a_walk(index: &Index, numbers: impl Iterator<Item = u32>) -> usize {
    let keys: Vec<Vec<u8>> = numbers.map(|number| format!("key {number:06}").into_bytes()).collect();
    let (keys, view) = (slices(&keys), index.view(0).unwrap());
    let mut lookups = Lookups::new(&keys);
    index.walk_beside(&mut lookups, &view).unwrap();
    lookups.answered
}

#[derive(Clone, Debug)]
enum Step {
    /// Changes `count` keys from the first one on, each `stride` apart.
    Put(u32, u32, u32),
    Remove(u32, u32, u32),
    Flush,
    Compact,
    /// Takes the snapshot in which the keys are looked up.
    Snapshot,
}

fn some_numbers() -> impl Strategy<Value = (u32, u32, u32)> {
    (0..600u32, prop_oneof![Just(1u32), 2..40u32], 1..200u32)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => some_numbers().prop_map(|(first, stride, count)| Step::Put(first, stride, count)),
        2 => some_numbers().prop_map(|(first, stride, count)| Step::Remove(first, stride, count)),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Snapshot),
    ]
}

fn numbers((first, stride, count): (u32, u32, u32)) -> impl Iterator<Item = u32> {
    (0..count).map(move |n| (first + n * stride) % 700)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_look_ups_find_what_each_finds(
        steps in prop::collection::vec(step(), 1..20),
        wanted in prop::collection::vec(some_numbers(), 1..4),
        is_shuffled in any::<bool>(),
        is_present in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let index = open(dir.path());
        let (mut view, mut seq) = (index.view(0).unwrap(), 0);
        for step in steps {
            match step {
                Step::Put(first, stride, count) => numbers((first, stride, count)).for_each(|number| {
                    seq += 1;
                    put(&index, &key(number), seq);
                }),
                Step::Remove(first, stride, count) => {
                    numbers((first, stride, count)).for_each(|number| remove(&index, &key(number)));
                }
                Step::Flush => flush(&index),
                Step::Compact => {
                    index.tree.compact().unwrap();
                }
                Step::Snapshot => view = index.view(0).unwrap(),
            }
        }
        let mut keys: Vec<Vec<u8>> = wanted.into_iter().flat_map(numbers).map(key).collect();
        if is_present {
            // Without entries that the snapshot does not show, more is walked.
            view = index.view(0).unwrap();
        }
        if is_shuffled {
            keys.sort_by_key(|key| crate::key_hash(key));
        }
        let each: Vec<Option<Entry>> = keys.iter().map(|key| index.entry_at(key, &view).unwrap()).collect();
        prop_assert_eq!(index.entries_at(&slices(&keys), &view).unwrap(), each);
    }
}

#[test]
fn keys_that_lie_close_together_are_answered_by_a_walk_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    (0..5000).filter(|number| number % 100 != 77).for_each(|number| put(&index, &key(number), u64::from(number)));
    flush(&index);
    assert_eq!(answered_by_a_walk(&index, 100..900), 800, "absent keys among them, too");
    assert_eq!(answered_by_a_walk(&index, (0..5000).step_by(3)), 1667);
    assert_eq!(answered_by_a_walk(&index, 4990..6000), 1010, "nothing is behind the last entry");
    assert_eq!(answered_by_a_walk(&index, (0..5000).step_by(100)), 1);
    let then_far_apart = (0..100).chain((1000..5000).step_by(100));
    assert_eq!(answered_by_a_walk(&index, then_far_apart), 100, "a long walk does not go far for the next key");
}

/// The library passes removed entries, and versions that a snapshot does not show, inside.
#[test]
fn no_walk_leads_through_many_entries_that_are_not_visible() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    (0..3000).for_each(|number| put(&index, format!("key {number:06}").as_bytes(), 1));
    flush(&index);
    let apart = || (0..50).chain(2900..2950);
    assert_eq!(answered_by_a_walk(&index, apart()), 50);
    (50..2900).for_each(|number| remove(&index, format!("key {number:06}").as_bytes()));
    assert_eq!(answered_by_a_walk(&index, apart()), 0, "the removals are in memory");
    index.tree.rotate();
    assert_eq!(answered_by_a_walk(&index, apart()), 0, "the removals are about to be written");
    index.tree.flush().unwrap();
    assert_eq!(answered_by_a_walk(&index, apart()), 0, "the removals are in a table");
    let keys: Vec<Vec<u8>> = apart().map(|number| format!("key {number:06}").into_bytes()).collect();
    assert_eq!(seqs(&index, &keys, &index.view(0).unwrap()), vec![Some(1); 100]);
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    (0..100).for_each(|number| put(&index, format!("key {number:06}").as_bytes(), 1));
    assert_eq!(answered_by_a_walk(&index, 0..100), 100);
    let oldest = index.view(0).unwrap();
    (0..1000).for_each(|seq| put(&index, b"key 000050", seq));
    assert_eq!(answered_by_a_walk(&index, 0..100), 0, "the old versions stay for another snapshot");
    drop(oldest);
    assert_eq!(answered_by_a_walk(&index, 0..100), 100);
}

#[test]
fn an_unreadable_entry_that_nobody_wants_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let index = open(dir.path());
    (0..100).for_each(|number| put(&index, format!("key {number:06}").as_bytes(), 1));
    index.tree.apply([(LedgerKey::of_key(b"key 000050").bytes, Some(bytes::Bytes::from_static(b"no entry")))]);
    let view = index.view(0).unwrap();
    let but_one: Vec<Vec<u8>> =
        (0..100).filter(|n| *n != 50).map(|number: u32| format!("key {number:06}").into_bytes()).collect();
    assert_eq!(seqs(&index, &but_one, &view), vec![Some(1); 99]);
    let with_it = [slices(&but_one), vec![&b"key 000050"[..]]].concat();
    assert!(index.entries_at(&with_it, &view).unwrap_err().is_unreadable_version());
}
