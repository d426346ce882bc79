//! A tree over the digests stays exact while writers race with sweeps, merges and evictions.

use super::stores::*;
use super::{leaf, scratch_dir};
use crate::common::*;
use ombak_storage::fs::sim::FaultyFs;
use ombak_storage::{Appended, Backend, Detail, DropObserver, IndexedVersion, Scope, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const WRITERS: u64 = 3;
const WRITES: u64 = 1000;
/// A second passes when a writer has made this many writes, so that versions expire all the time.
const WRITES_PER_SEC: u64 = 50;
/// Keys of each writer. A key has one writer, as the caller of a store guarantees.
const KEYS: u64 = 20;

/// An XOR over the leaves of a store.
#[derive(Default)]
struct Tree {
    xor: AtomicU64,
    drops: AtomicU64,
}

impl Tree {
    fn toggle(&self, key: &[u8], digest: u64) {
        self.xor.fetch_xor(leaf(key, digest), Ordering::SeqCst);
    }
}

impl DropObserver for Tree {
    fn dropped(&self, key: &[u8], version: IndexedVersion) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        self.toggle(key, version.digest);
    }
}

fn write(store: &dyn Backend, tree: &Tree, writer: u64, now_secs: &AtomicU64) {
    let mut random = Random::new(writer + 1);
    for n in 0..WRITES {
        if n % WRITES_PER_SEC == 0 {
            now_secs.fetch_add(1, Ordering::SeqCst);
        }
        let bucket = BUCKETS[random.below(3) as usize];
        let key = [bucket, format!("{writer} {}", random.below(KEYS)).as_bytes()].concat();
        let receipt: Option<Appended> = if random.below(8) == 0 {
            store.delete(&key).unwrap()
        } else {
            let digest = (writer << 32 | n) << 1;
            let now_secs = now_secs.load(Ordering::SeqCst);
            let expires_secs = if random.below(4) == 0 { now_secs as u32 + 3 } else { 0 };
            let (body, tstamp_secs) = (vec![0; random.below(400) as usize], now_secs as u32);
            let body: &[&[u8]] = &[&body];
            let head = b"plain";
            let write = Write { key: &key, head, body, digest, tstamp_secs, expires_secs, has_terms: false };
            tree.toggle(&key, digest);
            Some(store.put(&write).unwrap())
        };
        if let Some(previous) = receipt.and_then(|receipt| receipt.previous.digest()) {
            tree.toggle(&key, previous);
        }
    }
}

/// `drops`: whether the store must have removed something by itself.
fn tree_is_exact(open: Opener, drops: bool) {
    let dir = scratch_dir();
    let factory = open(&dir.path().join("store"), FaultyFs::new(1), NOW_SECS).unwrap();
    let store = factory.open(0).unwrap();
    let tree = Arc::<Tree>::default();
    assert!(store.observe_drops(tree.clone()));
    let (now_secs, has_ended) = (AtomicU64::new(NOW_SECS), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let (store, tree, now_secs) = (&store, &tree, &now_secs);
                    move || write(&**store, tree, writer, now_secs)
                })
            })
            .collect();
        scope.spawn(|| {
            let in_class = |key: &[u8]| key.ends_with(b"7");
            while !has_ended.load(Ordering::SeqCst) {
                let now_secs = now_secs.load(Ordering::SeqCst);
                store.maintain(now_secs).unwrap();
                if now_secs % 16 == 0 {
                    store.drop_scope(&Scope { class: Some(&in_class), ..Scope::ALL }).unwrap();
                }
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        has_ended.store(true, Ordering::SeqCst);
        assert!(results.iter().all(Result::is_ok), "a writer failed");
    });
    for n in 1..20 {
        store.maintain(now_secs.load(Ordering::SeqCst) + n).unwrap();
    }
    let (mut found, mut snapshot) = (0, store.snapshot().unwrap());
    loop {
        let batch = snapshot.next(&Scope::EVERYTHING, Detail::Keys, 100).unwrap();
        if batch.is_empty() {
            break;
        }
        found = batch.iter().fold(found, |found, entry| found ^ leaf(&entry.key, entry.digest));
    }
    assert_eq!(tree.xor.load(Ordering::SeqCst), found);
    assert!(!drops || tree.drops.load(Ordering::SeqCst) > 0);
}

#[test]
fn a_tree_stays_exact_while_writers_race_with_background_work() {
    for (open, drops) in [
        (aging_memory as Opener, true),
        (small_memory, true),
        (aging_bitcask, true),
        (aging_leveled, true),
        (aging_leveldb, true),
        (bitcask, false),
        (leveled, false),
        (multi, false),
    ] {
        tree_is_exact(open, drops);
    }
}
