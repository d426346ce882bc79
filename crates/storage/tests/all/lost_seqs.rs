//! How high the seqs of lost records can have been, by what is left on the disk
//! (`Status::lost_up_to`). Without such a bound, damage to an old record would cast doubt on
//! everything that was written since.

use crate::common::*;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::fs::{FileSystem, OpenMode};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, ReadMode};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "/data/0";

fn open_with(fs: &Arc<FaultyFs>, config: JournalConfig) -> Arc<dyn Backend> {
    BitcaskFactory::new(fs.clone(), Path::new("/data"), config).unwrap().open(0).unwrap()
}

fn open(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    open_with(fs, JournalConfig::default())
}

/// Two records in each file.
fn pairs() -> JournalConfig {
    JournalConfig { file_records_max: 2, ..JournalConfig::default() }
}

fn key(number: u32) -> Vec<u8> {
    format!("key {number:02}").into_bytes()
}

/// Puts keys, each synced before the next one, and returns their seqs.
fn put_all(store: &dyn Backend, keys: Range<u32>) -> Vec<u64> {
    keys.map(|number| {
        let seq = put(store, &key(number), b"some value").unwrap().seq;
        store.sync(seq).unwrap();
        seq
    })
    .collect()
}

/// Closes the active file, as a backup does, and completes its hint file.
fn close_file(store: &dyn Backend) {
    let mut backup = store.begin_backup().unwrap().unwrap();
    backup.cut();
    backup.finish().unwrap();
}

/// The data files in the order of their ids.
fn data_files(fs: &FaultyFs) -> Vec<PathBuf> {
    let mut names = fs.list(Path::new(DIR)).unwrap();
    names.sort();
    names.iter().filter(|name| name.ends_with(".data")).map(|name| Path::new(DIR).join(name)).collect()
}

/// The data file with the last record of a key, and where the key is in it.
fn place_of(fs: &FaultyFs, number: u32) -> (PathBuf, usize) {
    let key = key(number);
    let found = data_files(fs).into_iter().rev().find_map(|path| {
        let mut bytes = vec![0; fs.length(&path).unwrap() as usize];
        fs.open(&path, OpenMode::Read).unwrap().read_at(&mut bytes, 0, ReadMode::Blocking).unwrap();
        bytes.windows(key.len()).rposition(|window| window == key).map(|at| (path, at))
    });
    found.expect("a record of it")
}

/// Damages the key in the last record of a key, so that nobody can say which key it is of.
fn damage(fs: &FaultyFs, number: u32) {
    let (path, at) = place_of(fs, number);
    fs.flip_bit(&path, at as u64 * 8).unwrap();
}

/// The number of lost ranges, and the bound of their seqs.
fn lost(store: &dyn Backend) -> (u64, u64) {
    let status = store.status();
    (status.lost_ranges, status.lost_up_to)
}

#[test]
fn a_store_that_has_lost_nothing_has_no_bound() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    put_all(&*store, 0..3);
    assert_eq!(lost(&*store), (0, 0));
    drop(store);
    assert_eq!(lost(&*open(&fs.restart(Loss::Nothing))), (0, 0));
}

#[test]
fn what_was_lost_before_an_append_is_older_than_it() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    let seqs = put_all(&*store, 0..10);
    // The store is not closed, as after a kill: the start reads the file.
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    damage(&fs, 2);
    damage(&fs, 4);
    let store = open(&fs);
    assert_eq!(lost(&*store), (2, seqs[5] - 1));
    // The next start finds only their number. The appends since then are in another file.
    let new = put_all(&*store, 10..11)[0];
    drop(store);
    let (ranges, up_to) = lost(&*open(&fs.restart(Loss::Nothing)));
    assert!(ranges == 2 && (seqs[5] - 1..new).contains(&up_to), "{ranges}, {up_to}");
}

#[test]
fn what_was_lost_at_the_end_of_a_file_is_older_than_the_appends_of_the_next_one() {
    let fs = FaultyFs::new(1);
    let store = open_with(&fs, pairs());
    let seqs = put_all(&*store, 0..6);
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    assert_eq!(data_files(&fs).len(), 3);
    damage(&fs, 3);
    assert_eq!(lost(&*open_with(&fs, pairs())), (1, seqs[4] - 1));
}

/// The inventory promises the length up to which the file was synced.
#[test]
fn what_was_lost_at_the_end_of_the_last_file_may_be_newer_than_everything() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    put_all(&*store, 0..4);
    (0..3).for_each(|_| store.maintain(NOW_SECS).unwrap());
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    damage(&fs, 3);
    let store = open(&fs);
    assert_eq!(lost(&*store), (1, store.last_seq()));
}

/// A store whose first file is the output of a merge, with appends in the next one. Returns the
/// seqs of the keys in the first one, and the first seq of the next one.
fn with_a_merged_file() -> (Arc<FaultyFs>, Vec<u64>, u64) {
    let fs = FaultyFs::new(1);
    let config = JournalConfig { merge: eager_merges(), opened_at_secs: NOW_SECS, ..JournalConfig::default() };
    let store = open_with(&fs, config);
    let seqs = put_all(&*store, 0..6);
    for number in [1, 3] {
        store.delete(&key(number)).unwrap();
    }
    close_file(&*store);
    (0..20).for_each(|_| store.maintain(NOW_SECS).unwrap());
    assert!(store.status().merges > 0);
    let next = put_all(&*store, 6..8)[0];
    drop(store);
    let fs = fs.restart(Loss::Nothing);
    fs.remove_file(&Path::new(DIR).join("inventory")).unwrap();
    let [merged, appended] = [0, 6].map(|number| place_of(&fs, number).0);
    assert!(merged < appended);
    (fs, seqs, next)
}

/// The copies of a merge are in any order, so the one behind the damage says nothing.
#[test]
fn what_a_merged_file_has_lost_is_older_than_the_appends_of_later_files() {
    let (fs, seqs, next) = with_a_merged_file();
    damage(&fs, 2);
    // The start reads the data, because the list of the records is damaged, too.
    fs.flip_bit(&place_of(&fs, 0).0.with_extension("hint"), 40 * 8).unwrap();
    assert!(seqs[4] < next - 1);
    assert_eq!(lost(&*open(&fs)), (1, next - 1));
}

#[test]
fn the_hint_file_tells_the_seqs_of_what_a_file_has_lost() {
    let (fs, seqs, next) = with_a_merged_file();
    let (path, _) = place_of(&fs, 0);
    let length = fs.length(&path).unwrap();
    fs.open(&path, OpenMode::Write).unwrap().truncate(length - 3).unwrap();
    let (ranges, up_to) = lost(&*open(&fs));
    assert!(ranges == 1 && (seqs[5]..next - 1).contains(&up_to), "{ranges}, {up_to}");
}

#[test]
fn a_file_without_a_header_is_older_than_the_appends_of_the_next_one() {
    let fs = FaultyFs::new(1);
    let store = open_with(&fs, pairs());
    let seqs = put_all(&*store, 0..6);
    store.close().unwrap();
    drop(store);
    // Beyond what a start corrects.
    [3, 12, 21].into_iter().for_each(|bit| fs.flip_bit(&data_files(&fs)[0], bit).unwrap());
    assert_eq!(lost(&*open_with(&fs, pairs())), (1, seqs[2] - 1));
}

#[test]
fn a_file_that_is_gone_is_older_than_the_appends_of_the_next_one() {
    let fs = FaultyFs::new(1);
    let store = open_with(&fs, pairs());
    let seqs = put_all(&*store, 0..6);
    store.close().unwrap();
    drop(store);
    fs.remove_file(&data_files(&fs)[0]).unwrap();
    fs.remove_file(&Path::new(DIR).join("inventory")).unwrap();
    let store = open_with(&fs, pairs());
    assert_eq!(lost(&*store), (1, seqs[2] - 1));
    drop(store);
    // The note of the loss does not say when it was.
    let store = open_with(&fs, pairs());
    assert_eq!(lost(&*store), (1, store.last_seq()));
}

#[test]
fn nobody_knows_how_new_a_loss_is_that_is_only_noted() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    put_all(&*store, 0..3);
    store.note_loss(1).unwrap();
    assert_eq!(lost(&*store), (1, u64::MAX));
    store.close().unwrap();
    drop(store);
    let store = open(&fs);
    assert_eq!(lost(&*store), (1, store.last_seq()));
}
