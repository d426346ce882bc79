//! Guards of merging and of hint files. Their absence shows only after an unclean stop.

use crate::common::*;
use ombak_storage::fs::FileSystem;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, LeveledFactory, MergeConfig, NoTerms};
use std::path::Path;
use std::sync::Arc;

fn open(backend: &str, fs: &Arc<FaultyFs>, dir: &Path, config: JournalConfig) -> Arc<dyn Backend> {
    fs.create_dir_all(dir).unwrap();
    // The directory itself is durable.
    dir.ancestors().skip(1).for_each(|parent| fs.sync_dir(parent).unwrap());
    if backend == "bitcask" {
        return BitcaskFactory::new(fs.clone(), dir, config).unwrap().open(0).unwrap();
    }
    let ledger = ombak_storage::LedgerConfig::default();
    LeveledFactory::new(fs.clone(), dir, config, ledger, Arc::new(NoTerms)).unwrap().open(0).unwrap()
}

fn eager() -> JournalConfig {
    JournalConfig { merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() }
}

/// Closes the active file, as a backup does, and completes its hint file.
fn close_file(store: &dyn Backend) {
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
}

fn data_files(fs: &FaultyFs, dir: &Path) -> usize {
    fs.list(&dir.join("0")).unwrap().iter().filter(|name| name.ends_with(".data")).count()
}

/// The last append is a tombstone that hides nothing any more. A merge drops it, and with it the
/// last record that shows its sequence number.
#[test]
fn a_number_is_not_given_again_when_a_merge_has_dropped_the_newest_tombstone() {
    for backend in ["bitcask", "leveled"] {
        for loss in [Loss::Nothing, Loss::Everything] {
            let (fs, dir) = (FaultyFs::new(1), scratch_dir());
            let store = open(backend, &fs, dir.path(), eager());
            put(&*store, b"kept", b"value").unwrap();
            close_file(&*store);
            put(&*store, b"key", b"value").unwrap();
            let last = store.delete(b"key").unwrap().unwrap().seq;
            // The versions that stay are older than those that are removed, and in a file of their
            // own.
            close_file(&*store);
            (0..20).for_each(|_| store.maintain(NOW_SECS).unwrap());
            store.delete(b"kept").unwrap();
            let last = last.max(store.last_seq());
            close_file(&*store);
            (0..20).for_each(|_| store.maintain(NOW_SECS).unwrap());
            assert!(store.status().merges > 0 && data_files(&fs, dir.path()) == 0, "{backend}: {:?}", store.status());
            // The store is not closed, as after a kill or a loss of power.
            drop(store);
            let store = open(backend, &fs.restart(loss), dir.path(), eager());
            assert!(store.last_seq() >= last, "{backend}, {loss:?}: {} after {last}", store.last_seq());
            assert!(put(&*store, b"new", b"value").unwrap().seq > last, "{backend}, {loss:?}");
        }
    }
}

/// A tombstone right after the only version that it hides. That version is in another file, which
/// is not merged with it.
#[test]
fn a_tombstone_stays_while_the_append_before_it_is_in_another_file() {
    let merge = MergeConfig {
        threshold_fragmentation_percent: u8::MAX,
        threshold_dead_bytes: u64::MAX,
        // Only the file of the tombstone takes part.
        threshold_small_file_bytes: 1000,
        ..eager_merges()
    };
    for backend in ["bitcask", "leveled"] {
        let config = JournalConfig { merge, file_bytes_max: 2000, ..eager() };
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), config);
        let hidden = put(&*store, b"key", &[1; 2000]).unwrap().seq;
        let tombstone = store.delete(b"key").unwrap().unwrap().seq;
        assert_eq!(tombstone, hidden + 1);
        close_file(&*store);
        assert_eq!(data_files(&fs, dir.path()), 2);
        for _ in 0..20 {
            store.maintain(NOW_SECS).unwrap();
        }
        assert!(store.status().merges > 0, "{backend}: {:?}", store.status());
        drop(store);
        // A lost ledger is rebuilt from the data files, so it must find the tombstone there.
        let _ = std::fs::remove_dir_all(dir.path().join("0.ledger"));
        let store = open(backend, &fs.restart(Loss::Everything), dir.path(), config);
        assert_eq!(get(&*store, b"key").unwrap(), None, "{backend}: a deleted key is back");
        assert!(store.complete(), "{backend}");
    }
}

/// A hint file proves that its whole data file was synced. Once a slice of work has written the
/// hint file, it also survives a loss of power.
#[test]
fn a_hint_keeps_its_name_when_the_power_goes() {
    for backend in ["bitcask", "leveled"] {
        let config = JournalConfig { file_bytes_max: 2000, ..eager() };
        let (fs, dir) = (FaultyFs::new(1), scratch_dir());
        let store = open(backend, &fs, dir.path(), config);
        for n in 0..12 {
            put(&*store, format!("key {n}").as_bytes(), &[n; 900]).unwrap();
        }
        store.sync(store.last_seq()).unwrap();
        let hints = |fs: &FaultyFs| -> Vec<String> {
            let names = fs.list(&dir.path().join("0")).unwrap();
            names.into_iter().filter(|name| name.ends_with(".hint")).collect()
        };
        assert!(hints(&fs).is_empty());
        store.maintain(NOW_SECS).unwrap();
        let before = hints(&fs);
        assert!(!before.is_empty(), "{backend}");
        drop(store);
        assert_eq!(hints(&fs.restart(Loss::Everything)), before, "{backend}");
    }
}
