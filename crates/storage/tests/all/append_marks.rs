//! What a file system loses while the machine runs on: the marks that stores keep outside of it
//! show that.

use crate::common::*;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{
    AppendMarks, Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory,
    NoTerms, SeqSource, StoreIdentity,
};
use std::sync::Arc;

const PARTITION: u32 = 3;

fn config() -> JournalConfig {
    JournalConfig { file_bytes_max: 4096, merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn open(fs: &Arc<FaultyFs>, marks: &Arc<AppendMarks>) -> Arc<dyn Backend> {
    let factory = BitcaskFactory::new(fs.clone(), "/data", config()).unwrap().with_append_marks(Some(marks.clone()));
    factory.open(PARTITION).unwrap()
}

fn lost(identity: &StoreIdentity) -> bool {
    identity.has_lost_writes()
}

/// The file system fails, so that nothing can be written to it, not even that it failed. The
/// process is killed, and the file system is mounted again.
#[test]
fn a_tail_that_is_lost_on_the_same_boot_is_noticed() {
    let (fs, marks) = (FaultyFs::new(1), AppendMarks::in_memory(8));
    let store = open(&fs, &marks);
    let synced = put(&*store, b"a", b"1").unwrap();
    store.sync(synced.seq).unwrap();
    put(&*store, b"b", b"1").unwrap();
    fs.shut_down();
    assert!(put(&*store, b"c", b"1").is_err());
    drop(store);
    let fs = fs.restart(Loss::Remount);
    let store = open(&fs, &marks);
    assert!(get(&*store, b"a").unwrap().is_some() && get(&*store, b"b").unwrap().is_none());
    assert!(lost(&store.identity()), "{:?}", store.identity());
    // The loss was said once. The next start has lost nothing more.
    put(&*store, b"d", b"1").unwrap();
    drop(store);
    let identity = open(&fs.restart(Loss::Nothing), &marks).identity();
    assert!(!lost(&identity) && identity.lost_writes_boot == Some(2), "{identity:?}");
}

#[test]
fn a_kill_and_a_clean_close_lose_nothing() {
    let (mut fs, marks) = (FaultyFs::new(1), AppendMarks::in_memory(8));
    for run in 0..12_u32 {
        let store = open(&fs, &marks);
        let identity = store.identity();
        assert_eq!(identity.lost_writes_boot, None, "run {run}: {identity:?}");
        let mut seq = 0;
        for n in 0..40_u32 {
            let key = format!("key {}", n % 7);
            seq = if n % 5 == 4 {
                store.delete(key.as_bytes()).unwrap().map_or(seq, |it| it.seq)
            } else {
                put(&*store, key.as_bytes(), &[1; 300]).unwrap().seq
            };
            if n % 11 == run % 11 {
                store.sync(seq).unwrap();
            }
            if n % 13 == run % 13 {
                store.maintain(NOW_SECS + u64::from(run * 100 + n)).unwrap();
            }
        }
        if run % 3 == 0 {
            store.close().unwrap();
        }
        drop(store);
        // What was closed cleanly is synced, so it is safe from everything.
        fs = fs.restart(if run % 3 == 0 { Loss::Remount } else { Loss::Nothing });
    }
}

/// Whatever a file system has lost of what was not synced: also in the middle, and of a file that
/// was followed by another one.
#[test]
fn a_hole_before_what_is_still_there_is_noticed() {
    let (mut seen_hole, mut seen_whole) = (false, false);
    for seed in 1..300 {
        let (fs, marks) = (FaultyFs::new(seed), AppendMarks::in_memory(8));
        let store = open(&fs, &marks);
        let synced = put(&*store, b"first", b"1").unwrap();
        store.sync(synced.seq).unwrap();
        let keys: Vec<String> = (0..1 + seed % 20).map(|n| format!("key {n}")).collect();
        for key in &keys {
            put(&*store, key.as_bytes(), &[1; 500]).unwrap();
        }
        drop(store);
        let store = open(&fs.restart(Loss::PartialRemount), &marks);
        let is_there = |key: &String| matches!(get(&*store, key.as_bytes()), Ok(Some(_)));
        let missing = keys.iter().filter(|key| !is_there(key)).count();
        let identity = store.identity();
        let is_counted_as_damage = store.status().lost_ranges > 0;
        assert!(
            lost(&identity) || missing == 0 || is_counted_as_damage,
            "seed {seed}: {missing} are missing: {identity:?}"
        );
        assert!(!lost(&identity) || missing > 0, "seed {seed}: {identity:?}");
        seen_hole |= missing > 0 && keys.last().is_some_and(is_there) && lost(&identity);
        seen_whole |= missing == 0;
    }
    assert!(seen_hole && seen_whole, "{seen_hole} {seen_whole}");
}

#[test]
fn a_disk_that_is_set_back_on_the_same_boot_is_noticed() {
    let (fs, marks) = (FaultyFs::new(1), AppendMarks::in_memory(8));
    let store = open(&fs, &marks);
    put(&*store, b"a", b"1").unwrap();
    store.close().unwrap();
    drop(store);
    let earlier = fs.snapshot();
    let store = open(&fs, &marks);
    let appended = put(&*store, b"b", b"1").unwrap();
    store.sync(appended.seq).unwrap();
    drop(store);
    let identity = open(&earlier, &marks).identity();
    assert!(lost(&identity) && !identity.was_clean, "{identity:?}");
}

/// A failure that the disk did not take a note of: the page cache may hold what is not on the disk.
#[test]
fn a_failure_that_cannot_be_noted_on_the_disk_is_remembered() {
    let (fs, marks) = (FaultyFs::new(1), AppendMarks::in_memory(8));
    let store = open(&fs, &marks);
    let appended = put(&*store, b"key", b"one").unwrap();
    fs.fail_at(Call::SyncData, 1);
    fs.fail_at(Call::Open, 1);
    assert!(store.sync(appended.seq).is_err());
    drop(store);
    let store = open(&fs.restart(Loss::Nothing), &marks);
    assert!(lost(&store.identity()), "{:?}", store.identity());
    assert_eq!(get(&*store, b"key").unwrap().unwrap(), b"one");
}

#[test]
fn marks_of_another_store_say_nothing() {
    let marks = AppendMarks::in_memory(8);
    let first = open(&FaultyFs::new(1), &marks);
    for n in 0..5_u8 {
        put(&*first, &[n], b"1").unwrap();
    }
    // Another disk with a store of its own, in the place of the first.
    let fs = FaultyFs::new(2);
    let plain = || BitcaskFactory::new(fs.clone(), "/data", config()).unwrap().open(PARTITION).unwrap();
    put(&*plain(), b"a", b"1").unwrap();
    drop(first);
    let fs = fs.restart(Loss::Nothing);
    let store = open(&fs, &marks);
    assert_eq!(store.identity().lost_writes_boot, None);
    // A store that was removed and began anew.
    put(&*store, b"b", b"1").unwrap();
    store.drop_partition().unwrap();
    drop(store);
    let store = open(&fs, &marks);
    assert!(store.identity().is_new());
    put(&*store, b"c", b"1").unwrap();
    drop(store);
    assert_eq!(open(&fs.restart(Loss::Nothing), &marks).identity().lost_writes_boot, None);
}

/// A start on a full disk cannot record what it has found missing. It must not forget it.
#[test]
fn a_loss_that_a_full_disk_did_not_record_is_noticed_again() {
    let (fs, marks) = (FaultyFs::new(1), AppendMarks::in_memory(8));
    let store = open(&fs, &marks);
    let synced = put(&*store, b"a", b"1").unwrap();
    store.sync(synced.seq).unwrap();
    put(&*store, b"b", b"1").unwrap();
    drop(store);
    let fs = fs.restart(Loss::Remount);
    fs.set_free_bytes(Some(0));
    assert!(lost(&open(&fs, &marks).identity()));
    let fs = fs.restart(Loss::Nothing);
    assert!(lost(&open(&fs, &marks).identity()));
}

/// Stores that share their sequence numbers, and stores with a ledger: the count is each store's
/// own.
#[test]
fn every_backend_notices() {
    for (name, loss) in ["bitcask", "leveled", "leveldb"]
        .iter()
        .flat_map(|name| [Loss::Remount, Loss::Nothing].map(|loss| (*name, loss)))
    {
        let trees = tempfile::tempdir().unwrap();
        let (fs, marks) = (FaultyFs::new(1), AppendMarks::in_memory(8));
        let open = |fs: &Arc<FaultyFs>| -> Arc<dyn Backend> {
            let (fs, root, ledger, terms) = (fs.clone(), trees.path(), LedgerConfig::default(), Arc::new(NoTerms));
            fs.create_dir_all(root).unwrap();
            root.ancestors().for_each(|dir| fs.sync_dir(dir).unwrap());
            let factory: Box<dyn BackendFactory> = match name {
                "bitcask" => {
                    Box::new(BitcaskFactory::new(fs, root, config()).unwrap().with_append_marks(Some(marks.clone())))
                }
                "leveled" => {
                    let factory = LeveledFactory::new(fs, root, config(), ledger, terms).unwrap();
                    Box::new(factory.with_append_marks(Some(marks.clone())))
                }
                _ => {
                    let factory = LeveldbFactory::new(fs, root, config(), ledger, terms).unwrap();
                    Box::new(factory.with_append_marks(Some(marks.clone())))
                }
            };
            let seqs = SeqSource::default();
            factory.open_in(PARTITION, &seqs).unwrap()
        };
        let store = open(&fs);
        for n in 0..30_u32 {
            let appended = put(&*store, format!("key {}", n % 9).as_bytes(), &[1; 300]).unwrap();
            match n {
                10 => store.sync(appended.seq).unwrap(),
                15 => store.maintain(NOW_SECS + 100).unwrap(),
                _ => {}
            }
        }
        drop(store);
        let identity = open(&fs.restart(loss)).identity();
        assert_eq!(lost(&identity), loss == Loss::Remount, "{name}, {loss:?}: {identity:?}");
    }
}
