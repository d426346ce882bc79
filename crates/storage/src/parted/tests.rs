//! What the tests of all stores do not see: the parts themselves.

use super::layout::{Directory, Found, is_part, part_key, split_part_key};
use super::store::PartedStore;
use crate::backend::{Backend, BackendFactory, ReadMode, Stored, Write};
use crate::fold::{Detail, Expired, Scope};
use crate::memory::{MemoryConfig, MemoryFactory};
use crate::{DropObserver, IndexedVersion, StorageError};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;

const NOW_SECS: u64 = 1_800_000_000;
const KEY: &[u8] = b"\x02\x00\x01bkey";

/// A store over a memory store, whose content the tests see and change.
fn store() -> (Arc<dyn Backend>, PartedStore) {
    let config = MemoryConfig { opened_at_secs: NOW_SECS, ..MemoryConfig::default() };
    let inner = MemoryFactory::new(config).open(0).unwrap();
    (inner.clone(), PartedStore::over(inner))
}

fn write<'a>(key: &'a [u8], body: &'a [&'a [u8]]) -> Write<'a> {
    let tstamp_secs = NOW_SECS as u32;
    Write { key, head: b"head", body, digest: 6, tstamp_secs, expires_secs: 0, has_terms: false }
}

fn body(store: &dyn Backend) -> Result<Vec<u8>, StorageError> {
    store.get(KEY, ReadMode::Blocking).map(|found| found.unwrap().body.unwrap().to_vec())
}

/// Puts a value and adds to it until it has some parts. Returns the value.
fn grown(store: &PartedStore, additions: usize) -> Vec<u8> {
    let mut value = vec![b'a'; 10_000];
    store.put(&write(KEY, &[&value])).unwrap();
    for number in 0..additions {
        let added = vec![b'b' + number as u8; 3000];
        store.extend(&write(KEY, &[&added]), value.len() as u64, ReadMode::Blocking).unwrap();
        value.extend_from_slice(&added);
    }
    value
}

fn parts(inner: &dyn Backend) -> Vec<Bytes> {
    let scope = Scope { prefix: &[1], expired: Expired::All, ..Scope::ALL };
    let found = inner.snapshot().unwrap().next(&scope, Detail::Keys, 1000).unwrap();
    found.into_iter().map(|entry| entry.key).collect()
}

#[test]
fn the_bytes_of_this_version_stay() {
    let key = part_key(b"\x02k", 0x0102_0304, 7);
    assert_eq!(key, b"\x01\x02k\0\0\0\0\x01\x02\x03\x04\0\0\0\x07");
    assert_eq!(split_part_key(&key), Some((&b"\x02k"[..], 0x0102_0304, 7)));
    assert!(is_part(&key) && !is_part(KEY) && split_part_key(b"\x01short").is_none());
    let directory = Directory { generation: 258, parts: 2, bytes: 1027 };
    let head = directory.head_record(b"head");
    assert_eq!(head, b"\x50\x01\0\0\0\0\0\0\x01\x02\0\0\0\x02\0\0\0\0\0\0\x04\x03head");
    let stored =
        |head: &[u8]| Stored { head: Bytes::copy_from_slice(head), body: None, digest: 0, seq: 1, stored_secs: None };
    let Ok(Found::Parted(found, read)) = Found::of(stored(&head)) else { panic!("it has parts") };
    assert_eq!((&found.head[..], read), (&b"head"[..], directory));
    for unknown in [&b"\x50\x02"[..], &b"\x50"[..], &head[..20]] {
        assert!(matches!(Found::of(stored(unknown)), Err(StorageError::Incomplete(_))));
    }
}

#[test]
fn a_small_value_has_no_parts_and_a_large_one_is_not_written_anew() {
    let (inner, store) = store();
    store.put(&write(KEY, &[b"a"])).unwrap();
    store.extend(&write(KEY, &[b"b", b"c"]), 1, ReadMode::Cached).unwrap();
    assert_eq!((body(&store).unwrap(), parts(&*inner).len()), (b"abc".to_vec(), 0));
    let value = grown(&store, 10);
    assert_eq!(body(&store).unwrap(), value);
    let record = inner.get(KEY, ReadMode::Blocking).unwrap().unwrap();
    assert!(record.body.unwrap().len() <= 8 << 10, "the tail");
    assert_eq!(store.status().keys, 1);
    assert_eq!(store.record_bytes(KEY).unwrap(), None, "the memory store does not know");
}

#[test]
fn a_network_thread_does_not_wait_for_a_part() {
    let (_, store) = store();
    let value = grown(&store, 0);
    let added = write(KEY, &[b"x"]);
    assert!(matches!(store.extend(&added, value.len() as u64, ReadMode::Cached), Err(StorageError::WouldBlock)));
    assert_eq!(body(&store).unwrap(), value, "nothing has happened");
}

#[test]
fn a_part_that_is_missing_makes_the_value_unreadable() {
    let (inner, store) = store();
    grown(&store, 6);
    let all = parts(&*inner);
    assert!(all.len() > 1);
    for part in &all {
        let kept = inner.get(part, ReadMode::Blocking).unwrap().unwrap();
        inner.delete(part).unwrap();
        assert!(matches!(body(&store), Err(StorageError::Incomplete(_))));
        let mut snapshot = store.snapshot().unwrap();
        assert!(matches!(snapshot.next(&Scope::ALL, Detail::Objects, 10), Err(StorageError::Incomplete(_))));
        assert_eq!(store.head(KEY, ReadMode::Blocking).unwrap().unwrap().head, &b"head"[..]);
        let bytes = kept.body.unwrap();
        inner.put(&Write { head: &kept.head, ..write(part, &[&bytes[1..]]) }).unwrap();
        assert!(matches!(body(&store), Err(StorageError::Incomplete(_))), "it is shorter");
        inner.put(&Write { head: &kept.head, ..write(part, &[&bytes]) }).unwrap();
        assert!(body(&store).is_ok());
    }
}

#[test]
fn parts_go_with_their_value() {
    type Remove = fn(&PartedStore) -> bool;
    let removals: [Remove; 5] = [
        |store| store.put_over_extended(&write(KEY, &[b"new"])).is_ok(),
        |store| store.delete(KEY).unwrap().is_some(),
        |store| store.delete_if(KEY, 6).unwrap().is_some(),
        |store| store.drop_if(KEY, 6).unwrap(),
        |store| store.drop_scope(&Scope::ALL).unwrap() == 1,
    ];
    for remove in removals {
        let (inner, store) = store();
        grown(&store, 6);
        assert!(store.delete_if(KEY, 7).unwrap().is_none());
        store.maintain(NOW_SECS).unwrap();
        assert!(body(&store).is_ok() && !parts(&*inner).is_empty());
        assert!(remove(&store));
        assert!(!parts(&*inner).is_empty(), "not before what removed the value is durable");
        store.maintain(NOW_SECS).unwrap();
        assert_eq!(parts(&*inner), Vec::<Bytes>::new());
    }
}

#[test]
fn a_sweep_removes_what_no_value_names_and_nothing_else() {
    let (inner, store) = store();
    let value = grown(&store, 6);
    let named = parts(&*inner);
    // A crash before the head record, one after a removal, and a generation of another key.
    let garbage = [part_key(KEY, 1 << 40, 0), part_key(KEY, 1, 0), part_key(b"\x02gone", 3, 1)];
    for part in &garbage {
        inner.put(&write(part, &[b"x"])).unwrap();
    }
    let last = split_part_key(named.last().unwrap()).map(|(key, generation, number)| (key, generation, number + 1));
    let (key, generation, number) = last.unwrap();
    inner.put(&write(&part_key(key, generation, number), &[b"not named"])).unwrap();
    drop(store);
    let store = PartedStore::over(inner.clone());
    assert_eq!(store.status().keys, 1);
    for step in 0..3 {
        store.maintain(NOW_SECS + step).unwrap();
    }
    assert_eq!(parts(&*inner), named);
    assert_eq!((body(&store).unwrap(), store.status().keys), (value, 1));
}

#[test]
fn folds_and_observers_see_no_parts() {
    #[derive(Default)]
    struct Seen(Mutex<Vec<Vec<u8>>>);
    impl DropObserver for Seen {
        fn dropped(&self, key: &[u8], _version: IndexedVersion) {
            self.0.lock().push(key.to_vec());
        }
    }
    let (inner, store) = store();
    let seen = Arc::<Seen>::default();
    assert!(store.observe_drops(seen.clone()));
    let value = grown(&store, 6);
    for scope in [Scope::ALL, Scope::EVERYTHING, Scope::prefix(b"\x02")] {
        let found = store.snapshot().unwrap().next(&scope, Detail::Objects, 100).unwrap();
        let [only] = found.as_slice() else { panic!("{found:?}") };
        let stored = only.stored.clone().unwrap();
        assert_eq!((&only.key[..], &stored.head[..], &stored.body.unwrap()[..]), (KEY, &b"head"[..], &value[..]));
    }
    assert_eq!(store.snapshot().unwrap().read(KEY).unwrap().unwrap().body.unwrap(), value);
    assert!(store.drop_if(KEY, 6).unwrap());
    inner.drop_if(&parts(&*inner)[0], 0).unwrap();
    assert_eq!(*seen.0.lock(), [KEY.to_vec()]);
}
