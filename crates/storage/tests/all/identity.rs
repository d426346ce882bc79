//! The identity of a store: over losses of power, on full disks, and after everything in the store
//! was merged away.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{
    Backend, BackendFactory, BitcaskFactory, JournalConfig, LedgerConfig, LeveldbFactory, LeveledFactory, NoTerms,
    StorageError, StoreIdentity,
};
use std::path::Path;
use std::sync::Arc;

const PARTITION: u32 = 3;

fn config() -> JournalConfig {
    JournalConfig { file_bytes_max: 4096, merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

fn bitcask(fs: &Arc<FaultyFs>) -> Result<Arc<dyn Backend>, StorageError> {
    BitcaskFactory::new(fs.clone(), "/data", config())?.open(PARTITION)
}

/// Wherever the power is cut: the boot number rises, the mark of a clean close counts for one
/// start, and a store that wrote without a clean close knows that it may have lost writes.
#[test]
fn the_power_may_go_at_every_call() {
    let mut seen = (false, false);
    for call in 1..100 {
        for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
            let when = format!("call {call}, {loss:?}");
            let fs = FaultyFs::new(call);
            let store = bitcask(&fs).unwrap();
            put(&*store, b"key", b"one").unwrap();
            store.close().unwrap();
            let first = store.identity();
            drop(store);

            fs.cut_power_at(call);
            let (mut wrote, mut closed) = (false, false);
            if let Ok(store) = bitcask(&fs) {
                assert_eq!((store.identity().boot, store.identity().was_clean), (2, true));
                wrote = put(&*store, b"key", b"two").is_ok();
                closed = store.close().is_ok();
            }
            let fs = fs.restart(loss);
            let store = bitcask(&fs).unwrap();
            let identity = store.identity();
            assert_eq!(identity.store_id, first.store_id, "{when}");
            assert!(identity.boot == 3 || (identity.boot == 2 && !wrote), "{when}: {identity:?}");
            assert!(!closed || (identity.was_clean && identity.boot == 3), "{when}: {identity:?}");
            // The mark is valid even if the close that wrote it did not see its success.
            let is_whole = !wrote || get(&*store, b"key").unwrap().unwrap() == b"two";
            assert!(!identity.was_clean || is_whole, "{when}: {identity:?}");
            let lost = !identity.was_clean && loss != Loss::Nothing;
            assert_eq!(identity.lost_writes_boot, lost.then_some(identity.boot), "{when}");
            seen = (seen.0 | (wrote && !closed), seen.1 | closed);
        }
    }
    assert_eq!(seen, (true, true), "the cuts reach from the start to behind the end");
}

#[test]
fn on_a_full_disk_a_store_reads_and_begins_with_the_first_write_that_has_room() {
    let fs = FaultyFs::new(1);
    let store = bitcask(&fs).unwrap();
    put(&*store, b"key", b"one").unwrap();
    store.close().unwrap();
    drop(store);
    fs.set_free_bytes(Some(0));
    let store = bitcask(&fs).unwrap();
    assert_eq!(get(&*store, b"key").unwrap().unwrap(), b"one");
    let refused = put(&*store, b"key", b"two").unwrap_err();
    assert!(matches!(refused, StorageError::DiskFull { .. }), "{refused}");
    drop(store);
    let store = bitcask(&fs).unwrap();
    assert!(store.identity().was_clean, "nothing was written since the clean end");
    fs.set_free_bytes(None);
    put(&*store, b"key", b"two").unwrap();
    drop(store);
    let identity = bitcask(&fs.restart(Loss::Nothing)).unwrap().identity();
    assert_eq!((identity.boot, identity.was_clean), (3, false));
}

#[test]
fn a_failed_sync_is_remembered_although_the_machine_runs_on() {
    let fs = FaultyFs::new(1);
    let store = bitcask(&fs).unwrap();
    let appended = put(&*store, b"key", b"one").unwrap();
    fs.fail_at(Call::SyncData, 1);
    assert!(store.sync(appended.seq).is_err());
    assert!(store.close().is_err());
    drop(store);
    let identity = bitcask(&fs.restart(Loss::Nothing)).unwrap().identity();
    assert_eq!((identity.was_clean, identity.lost_writes_boot), (false, Some(2)));
}

/// Statements about a store by sequence number (marks, or what a peer still needs) must stay true.
#[test]
fn the_append_order_goes_on_when_nothing_is_left() {
    let fs = FaultyFs::new(1);
    let store = bitcask(&fs).unwrap();
    for n in 0..20 {
        put(&*store, format!("key {n}").as_bytes(), &[1; 200]).unwrap();
    }
    for n in 0..20 {
        store.delete(format!("key {n}").as_bytes()).unwrap();
    }
    let last = store.last_seq();
    store.close().unwrap();
    drop(store);
    let store = bitcask(&fs).unwrap();
    while store.status().files > 0 {
        store.maintain(NOW_SECS).unwrap();
    }
    drop(store);
    let store = bitcask(&fs.restart(Loss::Everything)).unwrap();
    assert_eq!(store.last_seq(), last);
    let first = store.first_seq();
    assert!(first > last);
    assert_eq!(put(&*store, b"key", b"v").unwrap().seq, first);
}

/// A store in a copied directory, or with a damaged identity file, is not the same store.
#[test]
fn copies_of_a_directory_are_told_apart() {
    type Open = fn(&Path) -> Arc<dyn Backend>;
    let opens: [(Open, &str); 3] = [
        (
            |root| BitcaskFactory::new(Arc::new(ombak_storage::fs::RealFs), root, config()).unwrap().open(1).unwrap(),
            "bitcask",
        ),
        (|root| ledger::<false>(root), "leveled"),
        (|root| ledger::<true>(root), "leveldb"),
    ];
    for (open, name) in opens {
        let dir = tempfile::tempdir().unwrap();
        let (original, copy, moved) = (dir.path().join("original"), dir.path().join("copy"), dir.path().join("moved"));
        let store = open(&original);
        put(&*store, b"key", b"value").unwrap();
        store.close().unwrap();
        let first = store.identity();
        drop(store);
        copy_dir(&original, &copy);
        std::fs::rename(&original, &moved).unwrap();
        let identity_of = |root: &Path| -> StoreIdentity {
            let store = open(root);
            assert_eq!(get(&*store, b"key").unwrap().unwrap(), b"value", "{name}");
            store.identity()
        };
        let (moved, copy) = (identity_of(&moved), identity_of(&copy));
        assert_eq!((moved.store_id, moved.boot, moved.was_clean), (first.store_id, 2, true), "{name}: a move is none");
        assert_ne!(copy.store_id, first.store_id, "{name}");
        assert_eq!((copy.boot, copy.was_clean, copy.is_restored), (1, false, true), "{name}");
    }
}

fn ledger<const INLINE: bool>(root: &Path) -> Arc<dyn Backend> {
    let fs = Arc::new(ombak_storage::fs::RealFs);
    let (ledger, terms) = (LedgerConfig::default(), Arc::new(NoTerms));
    if INLINE {
        LeveldbFactory::new(fs, root, config(), ledger, terms).unwrap().open(1).unwrap()
    } else {
        LeveledFactory::new(fs, root, config(), ledger, terms).unwrap().open(1).unwrap()
    }
}
