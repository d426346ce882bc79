//! The model that says what may be found after a crash.

use crate::common::{digest_of, fold, get, head_of, value_of};
use crate::power_cut::stores::{BUCKETS, FIELD};
use ombak_storage::{Appended, Backend, KeyRange, ReadMode, StorageError, TermRange, Write};
use std::collections::BTreeMap;
use std::ops::Bound;

/// Keys in each bucket.
const KEYS: u64 = 5;
/// A value has index entries unless its length is a multiple of this.
const VALUE_LENGTHS: usize = 2;

pub fn key_of(number: u64) -> Vec<u8> {
    [BUCKETS[number as usize % BUCKETS.len()], format!("key {}", number / BUCKETS.len() as u64).as_bytes()].concat()
}

pub fn key_count() -> u64 {
    KEYS * BUCKETS.len() as u64
}

fn has_terms(value: &[u8]) -> bool {
    !value.len().is_multiple_of(VALUE_LENGTHS)
}

pub fn put(store: &dyn Backend, key: &[u8], value: &[u8]) -> Result<Appended, StorageError> {
    let (left, right) = value.split_at(value.len() / 2);
    let (head, body) = (head_of(value), &[left, right]);
    let (digest, tstamp_secs) = (digest_of(value), crate::common::NOW_SECS as u32);
    store.put(&Write { key, head: &head, body, digest, tstamp_secs, expires_secs: 0, has_terms: has_terms(value) })
}

/// Adds bytes to a value.
pub fn extend(store: &dyn Backend, key: &[u8], value: &[u8], added: &[u8]) -> Result<Appended, StorageError> {
    let whole = [value, added].concat();
    let (head, body, digest) = (head_of(&whole), &[added], digest_of(&whole));
    let (tstamp_secs, has_terms) = (crate::common::NOW_SECS as u32, has_terms(&whole));
    let write = Write { key, head: &head, body, digest, tstamp_secs, expires_secs: 0, has_terms };
    store.extend(&write, value.len() as u64, ReadMode::Blocking)
}

/// Reads everything that has an order, and ignores the results.
pub fn read_in_order(store: &dyn Backend) {
    for bucket in BUCKETS {
        let Ok(mut ordered) = store.ordered_snapshot(bucket) else { continue };
        let _ = ordered.keys_in_order(&KeyRange { bucket, from: Bound::Unbounded, to: Bound::Unbounded }, 100);
        let _ = ordered.terms_in_order(&TermRange { bucket, field: FIELD, from: b"", to: b"\xff", after: None }, 100);
    }
}

/// One event in the history of a key.
#[derive(Clone, Debug)]
struct Event {
    /// None for a call that failed: its effect may or may not be there.
    seq: Option<u64>,
    value: Option<Vec<u8>>,
}

/// What may be found of each key: the state after its last durable event, or after any later one.
#[derive(Default)]
pub struct Oracle {
    events: BTreeMap<Vec<u8>, Vec<Event>>,
    pub synced_seq: u64,
    pub acknowledged: u64,
    /// The highest sequence number that was ever seen. No later append may have it or a lower one.
    seen_seq: u64,
}

/// A short form of a value for messages.
fn short(value: &Option<Vec<u8>>) -> Option<String> {
    value.as_ref().map(|v| String::from_utf8_lossy(&v[..v.len().min(8)]).into_owned())
}

impl Oracle {
    pub fn record(&mut self, key: &[u8], seq: Option<u64>, value: Option<Vec<u8>>) {
        if let Some(seq) = seq {
            assert!(seq > self.acknowledged, "append {seq} after {}", self.acknowledged);
            self.acknowledged = seq;
            self.seen_seq = self.seen_seq.max(seq);
        }
        self.events.entry(key.to_vec()).or_default().push(Event { seq, value });
    }

    /// Whether a key may have this value.
    fn allows(&self, key: &[u8], found: &Option<Vec<u8>>, durable_seq: u64) -> bool {
        let Some(events) = self.events.get(key) else { return found.is_none() };
        let durable = events.iter().rposition(|event| event.seq.is_some_and(|seq| seq <= durable_seq));
        let allowed = &events[durable.unwrap_or(0)..];
        allowed.iter().any(|event| event.value == *found) || (durable.is_none() && found.is_none())
    }

    fn describe(&self, key: &[u8]) -> Vec<(Option<u64>, Option<String>)> {
        self.events.get(key).into_iter().flatten().map(|event| (event.seq, short(&event.value))).collect()
    }

    /// Compares a store with the model. What is found becomes the only allowed state.
    pub fn check(&mut self, store: &dyn Backend, durable_seq: u64, when: &str) {
        for number in 0..key_count() {
            let key = key_of(number);
            let found = get(store, &key).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert!(
                self.allows(&key, &found, durable_seq),
                "{when}: key {number} is {:?}, durable up to {durable_seq}, history {:?}",
                short(&found),
                self.describe(&key)
            );
            self.events.insert(key, vec![Event { seq: Some(0), value: found }]);
        }
        (self.synced_seq, self.acknowledged) = (0, 0);
    }

    /// Compares a damaged store with the model. Reads of damaged data must fail. Where data is
    /// known to be missing, an older version may be found. Nothing is served that was never
    /// written. True if everything is there.
    pub fn check_damaged(&self, store: &dyn Backend, durable_seq: u64, when: &str) -> bool {
        let mut is_whole = true;
        for number in 0..key_count() {
            let key = key_of(number);
            match store.get(&key, ReadMode::Blocking).map(value_of) {
                Ok(found) if self.allows(&key, &found, durable_seq) => {}
                Ok(found) => {
                    let (found_short, history) = (short(&found), self.describe(&key));
                    assert!(!store.complete(), "{when}: key {number} is silently {found_short:?}: {history:?}");
                    let was_written = self.events.get(&key).into_iter().flatten().any(|event| event.value == found);
                    assert!(found.is_none() || was_written, "{when}: key {number} is {found_short:?}: {history:?}");
                    is_whole = false;
                }
                Err(StorageError::Damaged { .. }) => is_whole = false,
                Err(error) => panic!("{when}: key {number}: {error}"),
            }
        }
        is_whole
    }

    /// Checks the present state exactly: keys, folds, ordered keys and index entries.
    pub fn check_exactly(&self, store: &dyn Backend, when: &str) {
        let value = |key: &Vec<u8>| self.events.get(key).and_then(|events| events.last()?.value.clone());
        let keys = (0..key_count()).map(key_of);
        let present: BTreeMap<Vec<u8>, Vec<u8>> = keys.filter_map(|key| Some((key.clone(), value(&key)?))).collect();
        for number in 0..key_count() {
            let key = key_of(number);
            let found = get(store, &key).unwrap_or_else(|error| panic!("{when}: key {number}: {error}"));
            assert_eq!(found.as_ref(), present.get(&key), "{when}: key {number}");
        }
        assert_eq!(store.status().keys, present.len() as u64, "{when}");
        let all: Vec<_> = present.clone().into_iter().collect();
        assert!(fold(&mut *store.snapshot().unwrap(), b"", 5) == all, "{when}: a fold");
        for bucket in BUCKETS {
            let mut ordered = store.ordered_snapshot(bucket).unwrap();
            let here: Vec<_> =
                present.iter().filter_map(|(key, value)| Some((key.strip_prefix(bucket)?, value))).collect();
            let range = KeyRange { bucket, from: Bound::Unbounded, to: Bound::Unbounded };
            let found = ordered.keys_in_order(&range, 100).unwrap();
            let found: Vec<_> =
                found.iter().map(|entry| (entry.key.strip_prefix(bucket).unwrap(), entry.digest)).collect();
            let expected: Vec<_> = here.iter().map(|(key, value)| (*key, digest_of(value))).collect();
            assert_eq!(found, expected, "{when}: keys in order");
            let range = TermRange { bucket, field: FIELD, from: b"", to: b"\xff", after: None };
            let found = ordered.terms_in_order(&range, 100).unwrap();
            let found: Vec<_> = found.into_iter().map(|entry| (entry.term.to_vec(), entry.key.to_vec())).collect();
            let terms = here.iter().filter(|(_, value)| has_terms(value));
            let mut expected: Vec<_> = terms.map(|(key, value)| (head_of(value), key.to_vec())).collect();
            expected.sort();
            assert_eq!(found, expected, "{when}: index entries");
        }
    }

    /// Checks that a reopened store continues after all sequence numbers that it gave and that are
    /// still visible.
    pub fn check_seqs(&self, store: &dyn Backend, durable_seq: u64, when: &str) {
        assert!(
            store.last_seq() >= durable_seq,
            "{when}: the last append is {}, {durable_seq} was durable",
            store.last_seq()
        );
        assert!(store.is_synced(store.last_seq()), "{when}: what a start found is durable");
    }
}
