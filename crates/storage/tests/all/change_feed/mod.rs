//! Consumers of the change feed: that lag, restart, lose their cursor, meet merges, a lost tail, or
//! a store that was replaced.

mod consumer;
mod histories;
mod power_cuts;

use crate::common::*;
use consumer::{Consumer, fold};
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, ChangesQuery, ChangesSince, CursorLost, Detail, FeedCursor, FeedStep,
    JournalConfig, KeyState, LedgerConfig, LeveldbFactory, LeveledFactory, MemoryConfig, MemoryFactory, MultiFactory,
    NoTerms, Origin, Reach, ReadMode, Selector, StorageError, Write,
};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bitcask,
    /// With a limit of age.
    Forgetting,
    Leveled,
    Leveldb,
    Memory,
    /// Bitcask and leveled.
    Multi,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Bitcask, Self::Forgetting, Self::Leveled, Self::Leveldb, Self::Memory, Self::Multi];

    /// Whether a consumer goes on after a restart.
    fn lasts(self) -> bool {
        matches!(self, Self::Bitcask | Self::Leveled | Self::Multi)
    }
}

/// The length of the key selects the backend.
struct ByLength;

impl Selector for ByLength {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(key.len() % 2)
    }
}

fn factory(kind: Kind, fs: &Arc<FaultyFs>, dir: &Path) -> Arc<dyn BackendFactory> {
    let expiry_secs = (kind == Kind::Forgetting).then_some(100);
    let merge = ombak_storage::MergeConfig { threshold_small_file_bytes: 0, ..eager_merges() };
    let journal = JournalConfig {
        file_bytes_max: 4096,
        merge,
        opened_at_secs: NOW_SECS,
        expiry_secs,
        sweep_interval_secs: 0,
        ..JournalConfig::default()
    };
    let ledger = LedgerConfig { memory_bytes_max: 16 << 10, table_bytes: 16 << 10, ..LedgerConfig::default() };
    let terms = Arc::new(NoTerms);
    match kind {
        Kind::Bitcask | Kind::Forgetting => Arc::new(BitcaskFactory::new(fs.clone(), dir, journal).unwrap()),
        Kind::Leveled => Arc::new(LeveledFactory::new(fs.clone(), dir, journal, ledger, terms).unwrap()),
        Kind::Leveldb => Arc::new(LeveldbFactory::new(fs.clone(), dir, journal, ledger, terms).unwrap()),
        Kind::Memory => {
            let config = MemoryConfig { opened_at_secs: NOW_SECS, ttl_secs: Some(100), ..MemoryConfig::default() };
            Arc::new(MemoryFactory::new(config))
        }
        Kind::Multi => Arc::new(MultiFactory::new(
            vec![
                ("bitcask".into(), factory(Kind::Bitcask, fs, &dir.join("bitcask"))),
                ("leveled".into(), factory(Kind::Leveled, fs, &dir.join("leveled"))),
            ],
            Arc::new(ByLength),
        )),
    }
}

fn open(kind: Kind, fs: &Arc<FaultyFs>, dir: &Path) -> Arc<dyn Backend> {
    fs.create_dir_all(dir).unwrap();
    // The directory itself is durable.
    dir.ancestors().skip(1).for_each(|parent| fs.sync_dir(parent).unwrap());
    factory(kind, fs, dir).open(0).unwrap()
}

/// Maintains until merges have nothing to do.
fn maintain(store: &dyn Backend, now_secs: u64) {
    (0..20).for_each(|_| store.maintain(now_secs).unwrap());
}

/// Closes the active file, as a backup does, so that it can be merged.
fn close_file(store: &dyn Backend) {
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
}

fn extend(store: &dyn Backend, key: &[u8], before: &[u8], added: &[u8]) -> Vec<u8> {
    let whole = [before, added].concat();
    let (head, digest, body) = (head_of(&whole), digest_of(&whole), &[added]);
    let write =
        Write { key, head: &head, body, digest, tstamp_secs: NOW_SECS as u32, expires_secs: 0, has_terms: false };
    store.extend(&write, before.len() as u64, ReadMode::Blocking).unwrap();
    whole
}

/// What a walk from a cursor hands out.
fn changes(store: &dyn Backend, from: &FeedCursor, reach: Reach) -> Result<Vec<ombak_storage::Change>, CursorLost> {
    let query = ChangesQuery { from, detail: Detail::Keys, reach, with_removals: true };
    let mut walk = match store.changes_since(&query).unwrap() {
        ChangesSince::Found(walk) => walk,
        ChangesSince::Lost(why) => return Err(why),
    };
    let mut all = Vec::new();
    loop {
        match walk.next(3, u64::MAX).unwrap() {
            FeedStep::Some(some) => all.extend(some),
            FeedStep::End => return Ok(all),
            FeedStep::Lost(why) => return Err(why),
        }
    }
}

#[test]
fn a_walk_has_the_last_state_of_each_changed_key_and_nothing_else() {
    for kind in Kind::ALL {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        for key in ["old", "again", "gone"] {
            put(&*store, key.as_bytes(), b"value").unwrap();
        }
        let from = store.feed_cursor();
        assert!(changes(&*store, &from, Reach::Durable).unwrap().is_empty(), "{kind:?}");
        put(&*store, b"again", b"new value").unwrap();
        put(&*store, b"again", b"newest value").unwrap();
        put(&*store, b"more", b"value").unwrap();
        store.delete(b"gone").unwrap().unwrap();
        let mut seen: Vec<(String, bool)> = changes(&*store, &from, Reach::Durable)
            .unwrap()
            .iter()
            .map(|c| (String::from_utf8(c.key().to_vec()).unwrap(), matches!(c.state, KeyState::Removed { .. })))
            .collect();
        seen.sort();
        let expected = [("again", false), ("gone", true), ("more", false)].map(|(key, gone)| (key.to_owned(), gone));
        assert_eq!(seen, expected, "{kind:?}");
        assert_eq!(store.last_seq(), store.synced_seq(), "{kind:?}: what was handed out is durable");
    }
}

#[test]
fn values_that_were_added_to_come_whole() {
    for kind in Kind::ALL {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        let mut consumer = Consumer::default();
        consumer.catch_up(&*store, 10);
        let key = b"\x02large";
        let mut value = vec![1; 9000];
        put(&*store, key, &value).unwrap();
        for n in 0..5 {
            value = extend(&*store, key, &value, &[n; 5000]);
            assert_eq!(consumer.catch_up(&*store, 10), None, "{kind:?}");
            assert_eq!(consumer.known, fold(&*store), "{kind:?}");
        }
    }
}

/// A merge drops tombstones that hide nothing. It keeps those that a consumer needs.
#[test]
fn a_merge_keeps_removals_for_consumers_and_others_learn_that_they_missed_some() {
    for kind in [Kind::Bitcask, Kind::Leveled] {
        for is_kept in [true, false] {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = open(kind, &fs, dir.path());
            for n in 0..20 {
                put(&*store, format!("key {n}").as_bytes(), &[n; 300]).unwrap();
            }
            let mut consumer = Consumer::default();
            consumer.catch_up(&*store, 10);
            let at = consumer.cursor.as_ref().unwrap().seq;
            store.retain_removals(is_kept.then_some(at)).unwrap();
            for n in 0..19 {
                store.delete(format!("key {n}").as_bytes()).unwrap().unwrap();
            }
            for _ in 0..3 {
                close_file(&*store);
                maintain(&*store, NOW_SECS);
            }
            assert!(store.status().merges > 0, "{kind:?}");
            let lost = consumer.catch_up(&*store, 10);
            assert_eq!(lost, (!is_kept).then_some(CursorLost::RemovalsForgotten), "{kind:?}");
            assert_eq!(consumer.known, fold(&*store));
            // What no consumer needs any more goes.
            store.retain_removals(Some(consumer.cursor.as_ref().unwrap().seq)).unwrap();
            for _ in 0..3 {
                put(&*store, b"more", &[7; 300]).unwrap();
                close_file(&*store);
                maintain(&*store, NOW_SECS);
            }
            assert_eq!(consumer.catch_up(&*store, 10), None, "{kind:?}");
            assert_eq!(consumer.known, fold(&*store));
        }
    }
}

/// What consumers need does not make a file of tombstones worth a merge again and again.
#[test]
fn tombstones_that_are_kept_trigger_no_merge() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let store = open(Kind::Bitcask, &fs, dir.path());
    store.retain_removals(Some(0)).unwrap();
    for n in 0..10 {
        put(&*store, format!("key {n}").as_bytes(), &[n; 300]).unwrap();
        store.delete(format!("key {n}").as_bytes()).unwrap().unwrap();
    }
    close_file(&*store);
    maintain(&*store, NOW_SECS);
    let merges = store.status().merges;
    maintain(&*store, NOW_SECS);
    assert_eq!(store.status().merges, merges);
}

#[test]
fn versions_that_a_store_forgets_by_their_age_come_as_removals() {
    for kind in [Kind::Forgetting, Kind::Memory] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        put(&*store, b"k", b"value").unwrap();
        let mut consumer = Consumer::default();
        consumer.catch_up(&*store, 10);
        let from = consumer.cursor.clone().unwrap();
        maintain(&*store, NOW_SECS + 1000);
        let seen = changes(&*store, &from, Reach::Durable).unwrap();
        assert!(matches!(&seen[..], [change] if change.origin == Origin::Expiry && &change.key()[..] == b"k"));
        assert_eq!(consumer.catch_up(&*store, 10), None, "{kind:?}");
        assert!(consumer.known.is_empty() && fold(&*store).is_empty(), "{kind:?}");
    }
}

/// The journal does not show what the store forgot while it had a limit of age.
#[test]
fn a_limit_of_age_that_is_taken_away_does_not_hide_what_was_forgotten() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let store = open(Kind::Forgetting, &fs, dir.path());
    store.retain_removals(Some(0)).unwrap();
    put(&*store, b"k", b"value").unwrap();
    let mut consumer = Consumer::default();
    consumer.catch_up(&*store, 10);
    maintain(&*store, NOW_SECS + 1000);
    store.close().unwrap();
    drop(store);
    let store = open(Kind::Bitcask, &fs, dir.path());
    store.retain_removals(Some(0)).unwrap();
    assert_eq!(consumer.catch_up(&*store, 10), Some(CursorLost::RunEnded));
    assert_eq!(consumer.known, fold(&*store));
}

#[test]
fn a_consumer_goes_on_after_a_restart_if_the_journal_lasts() {
    for kind in Kind::ALL {
        for is_closed in [true, false] {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = open(kind, &fs, dir.path());
            store.retain_removals(Some(0)).unwrap();
            for key in ["aa", "b", "cc"] {
                put(&*store, key.as_bytes(), b"value").unwrap();
            }
            let mut consumer = Consumer::default();
            consumer.catch_up(&*store, 10);
            put(&*store, b"b", b"newer").unwrap();
            store.delete(b"aa").unwrap().unwrap();
            if is_closed {
                store.close().unwrap();
            }
            drop(store);
            let fs = if is_closed { fs } else { fs.restart(Loss::Nothing) };
            let store = open(kind, &fs, dir.path());
            store.retain_removals(Some(0)).unwrap();
            let expected = match kind {
                _ if kind.lasts() => None,
                Kind::Memory => Some(CursorLost::OtherStore),
                _ => Some(CursorLost::RunEnded),
            };
            assert_eq!(consumer.catch_up(&*store, 10), expected, "{kind:?}, closed: {is_closed}");
            assert_eq!(consumer.known, fold(&*store), "{kind:?}");
        }
    }
}

/// A store that dropped tombstones while nobody kept them for consumers says so in every later run.
#[test]
fn a_consumer_that_was_away_for_a_run_learns_that_it_missed_removals() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let store = open(Kind::Bitcask, &fs, dir.path());
    store.retain_removals(Some(0)).unwrap();
    for n in 0..10 {
        put(&*store, format!("key {n}").as_bytes(), &[n; 300]).unwrap();
    }
    let mut consumer = Consumer::default();
    store.retain_removals(Some(0)).unwrap();
    consumer.catch_up(&*store, 10);
    store.close().unwrap();
    drop(store);
    let store = open(Kind::Bitcask, &fs, dir.path());
    (0..10).for_each(|n| {
        store.delete(format!("key {n}").as_bytes()).unwrap().unwrap();
    });
    close_file(&*store);
    maintain(&*store, NOW_SECS);
    assert!(store.status().merges > 0);
    store.close().unwrap();
    drop(store);
    let store = open(Kind::Bitcask, &fs, dir.path());
    assert_eq!(consumer.catch_up(&*store, 10), Some(CursorLost::RemovalsForgotten));
    assert_eq!(consumer.known, fold(&*store));
}

/// Walks that may hand out what is not durable, and a machine that goes down: the cursor is beyond
/// the end of what the start finds, and below the numbers of later appends.
#[test]
fn a_lost_tail_is_noticed() {
    for kind in [Kind::Bitcask, Kind::Leveled] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        put(&*store, b"kept", b"value").unwrap();
        store.sync(store.last_seq()).unwrap();
        put(&*store, b"lost", b"value").unwrap();
        let unsynced = store.feed_cursor();
        drop(store);
        let fs = fs.restart(Loss::Everything);
        let store = open(kind, &fs, dir.path());
        assert_eq!(changes(&*store, &unsynced, Reach::Durable).unwrap_err(), CursorLost::LostTail, "{kind:?}");
        put(&*store, b"other", b"value").unwrap();
        put(&*store, b"other", b"another value").unwrap();
        assert!(store.last_seq() > unsynced.seq && unsynced.seq < store.first_seq());
        assert_eq!(changes(&*store, &unsynced, Reach::Durable).unwrap_err(), CursorLost::LostTail, "{kind:?}");
    }
}

#[test]
fn a_store_that_was_replaced_is_another_one() {
    for kind in [Kind::Bitcask, Kind::Leveled, Kind::Leveldb, Kind::Memory] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        put(&*store, b"k", b"value").unwrap();
        let mut consumer = Consumer::default();
        consumer.catch_up(&*store, 10);
        store.drop_partition().unwrap();
        drop(store);
        let store = open(kind, &fs, dir.path());
        store.retain_removals(Some(0)).unwrap();
        put(&*store, b"other", b"value").unwrap();
        assert_eq!(consumer.catch_up(&*store, 10), Some(CursorLost::OtherStore), "{kind:?}");
        assert_eq!(consumer.known, fold(&*store), "{kind:?}");
    }
}

/// A merge that runs while a walk reads moves versions from files that the walk has not read yet.
#[test]
fn a_walk_has_each_version_once_while_a_merge_moves_it() {
    for kind in [Kind::Bitcask, Kind::Leveled] {
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(kind, &fs, dir.path());
        let from = store.feed_cursor();
        for n in 0..60u8 {
            put(&*store, format!("key {}", n % 40).as_bytes(), &[n; 200]).unwrap();
        }
        close_file(&*store);
        let query = ChangesQuery { from: &from, detail: Detail::Keys, reach: Reach::Appended, with_removals: true };
        let ChangesSince::Found(mut walk) = store.changes_since(&query).unwrap() else { panic!("the cursor is new") };
        let mut seen = Vec::new();
        while let FeedStep::Some(changes) = walk.next(5, u64::MAX).unwrap() {
            seen.extend(changes.into_iter().map(|change| change.key().clone()));
            store.maintain(NOW_SECS).unwrap();
            put(&*store, b"key 7", &[seen.len() as u8; 200]).unwrap();
        }
        assert!(store.status().merges > 0, "{kind:?}");
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((seen.len(), count), (40, 40), "{kind:?}");
    }
}

/// A place that cannot be read may hide a change.
#[test]
fn damage_makes_a_cursor_useless_and_not_silently_incomplete() {
    let (fs, dir) = (FaultyFs::new(1), scratch_dir());
    let store = open(Kind::Bitcask, &fs, dir.path());
    let from = store.feed_cursor();
    (0..9).for_each(|n| {
        put(&*store, format!("key {n}").as_bytes(), &[n; 300]).unwrap();
    });
    store.sync(store.last_seq()).unwrap();
    let names = fs.list(&dir.path().join("0")).unwrap();
    let file = names.iter().find(|name| name.ends_with(".data") || name.ends_with(".fresh")).unwrap();
    // In the first record, before its body.
    fs.flip_bit(&dir.path().join("0").join(file), 8 * 60).unwrap();
    assert_eq!(changes(&*store, &from, Reach::Durable).unwrap_err(), CursorLost::Damaged);
    let end = store.feed_cursor();
    put(&*store, b"later", b"value").unwrap();
    assert_eq!(changes(&*store, &end, Reach::Durable).unwrap().len(), 1, "what follows the damage is read");
}
