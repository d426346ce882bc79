//! Closing a store while other threads write to it. If the store says that it was closed cleanly,
//! everything that was acknowledged is there after a loss of power.

use crate::common::*;
use ombak_storage::fs::sim::{Call, FaultyFs, Loss};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, MultiFactory, Selector, StorageError};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const ROUNDS: u64 = 200;
const WRITERS: usize = 3;

type Open = fn(&Arc<FaultyFs>) -> Arc<dyn Backend>;

fn factory(fs: &Arc<FaultyFs>, root: &str) -> Arc<dyn BackendFactory> {
    let config = JournalConfig { file_bytes_max: 32 << 10, opened_at_secs: NOW_SECS, ..JournalConfig::default() };
    Arc::new(BitcaskFactory::new(fs.clone(), Path::new("/data").join(root), config).unwrap())
}

fn bitcask(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    factory(fs, "bitcask").open(0).unwrap()
}

/// The last byte of the key selects the store.
struct ByLastByte;

impl Selector for ByLastByte {
    fn select(&self, key: &[u8]) -> Result<usize, StorageError> {
        Ok(usize::from(key.last().copied().unwrap_or(0)) % 2)
    }
}

fn multi(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    let backends = ["one", "other"].map(|name| (name.to_owned(), factory(fs, name)));
    MultiFactory::new(backends.to_vec(), Arc::new(ByLastByte)).open(0).unwrap()
}

/// Puts keys one after another until the store is closed, and returns the keys that were
/// acknowledged.
fn put_until_closed(store: &dyn Backend, writer: usize, acknowledged: &AtomicUsize) -> Vec<String> {
    let mut keys = Vec::new();
    for n in 0.. {
        let key = format!("{writer}/{n}");
        match put(store, key.as_bytes(), key.as_bytes()) {
            Ok(_) => keys.push(key),
            Err(StorageError::Closed) => break,
            Err(error) => panic!("{key}: {error}"),
        }
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    keys
}

fn puts_race_a_close(open: Open) {
    for round in 0..ROUNDS {
        let fs = FaultyFs::new(round + 1);
        let store = open(&fs);
        let acknowledged = AtomicUsize::new(0);
        let keys = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (store, acknowledged, keys) = (&store, &acknowledged, &keys);
                scope.spawn(move || {
                    let mine = put_until_closed(&**store, writer, acknowledged);
                    keys.lock().unwrap().extend(mine);
                });
            }
            while acknowledged.load(Ordering::SeqCst) < (round % 50) as usize {
                thread::yield_now();
            }
            store.close().unwrap();
        });
        drop(store);
        let store = open(&fs.restart(Loss::Everything));
        assert!(store.identity().is_as_closed(), "round {round}");
        for key in keys.into_inner().unwrap() {
            let found = get(&*store, key.as_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(key.as_bytes()), "round {round}: {key} was acknowledged");
        }
    }
}

#[test]
fn a_clean_mark_never_stands_over_unsynced_puts() {
    puts_race_a_close(bitcask);
}

#[test]
fn a_clean_mark_of_several_stores_never_stands_over_unsynced_puts() {
    puts_race_a_close(multi);
}

/// From the first step of a close on, writes are refused and reads go on. A caller that waits for a
/// sync gets its result.
#[test]
fn a_close_refuses_writes_before_it_syncs() {
    let fs = FaultyFs::new(1);
    let store = bitcask(&fs);
    let before = put(&*store, b"before", b"1").unwrap();
    fs.hold(Call::SyncData);
    let (written, deleted, read, closed, synced) = thread::scope(|scope| {
        let closing = scope.spawn(|| store.close());
        fs.wait_for_held(Call::SyncData);
        let waiting = scope.spawn(|| store.sync(before.seq));
        let (written, deleted) = (put(&*store, b"after", b"2"), store.delete(b"before"));
        let read = get(&*store, b"before");
        fs.release(Call::SyncData);
        (written, deleted, read, closing.join().unwrap(), waiting.join().unwrap())
    });
    assert!(matches!(written, Err(StorageError::Closed)), "{written:?}");
    assert!(matches!(deleted, Err(StorageError::Closed)), "{deleted:?}");
    assert_eq!(read.unwrap().unwrap(), b"1");
    closed.unwrap();
    synced.unwrap();
    assert!(store.is_synced(before.seq));
    assert!(matches!(get(&*store, b"before"), Err(StorageError::Closed)));
    drop(store);
    let store = bitcask(&fs.restart(Loss::Everything));
    assert!(store.identity().was_clean);
    assert_eq!(get(&*store, b"before").unwrap().unwrap(), b"1");
    assert!(get(&*store, b"after").unwrap().is_none());
}
