//! What a store lacks of the seqs that it has told.

use crate::exchange::exchanges::lacks;
use ombak_storage::fs::sim::{FaultyFs, Loss};
use ombak_storage::{Backend, BackendFactory, BitcaskFactory, JournalConfig, Write};
use std::path::Path;
use std::sync::Arc;

fn open(fs: &Arc<FaultyFs>) -> Arc<dyn Backend> {
    BitcaskFactory::new(fs.clone(), Path::new("/data"), JournalConfig::default()).unwrap().open(0).unwrap()
}

fn put(store: &dyn Backend) -> u64 {
    let (head, body) = (b"head", &[&b"body"[..]]);
    let write = Write { key: b"key", head, body, digest: 2, tstamp_secs: 1, expires_secs: 0, has_terms: false };
    let seq = store.put(&write).unwrap().seq;
    store.sync(seq).unwrap();
    seq
}

#[test]
fn a_store_that_was_set_back_is_found_out_also_after_later_appends() {
    let fs = FaultyFs::new(1);
    let store = open(&fs);
    let kept = put(&*store);
    let earlier = fs.snapshot();
    let told = put(&*store);
    assert!(!lacks(&*store, kept) && !lacks(&*store, told) && lacks(&*store, told + 1));
    drop(store);
    let store = open(&earlier);
    assert!(!lacks(&*store, kept) && lacks(&*store, told));
    let later = put(&*store);
    assert!(later > told && !lacks(&*store, later));
    assert!(!lacks(&*store, kept) && lacks(&*store, told), "its files are still those of an earlier moment");
    store.close().unwrap();
    drop(store);
    for _ in 0..2 {
        let store = open(&earlier);
        assert!(!lacks(&*store, kept) && !lacks(&*store, later) && lacks(&*store, told), "later runs know it, too");
        put(&*store);
    }
}

#[test]
fn a_store_that_lost_nothing_lacks_nothing_that_it_has_told() {
    let mut fs = FaultyFs::new(1);
    let mut told = vec![0];
    for is_closed in [true, false, true] {
        let store = open(&fs);
        assert!(told.iter().all(|seq| !lacks(&*store, *seq)));
        told.push(put(&*store));
        assert!(told.iter().all(|seq| !lacks(&*store, *seq)));
        if is_closed {
            store.close().unwrap();
        }
        drop(store);
        fs = fs.restart(Loss::Everything);
    }
}
