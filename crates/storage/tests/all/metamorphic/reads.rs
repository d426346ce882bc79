//! The reads of a history: of one key, folds, ordered keys and index queries in pages.

use super::{FIELDS, History, Version};
use crate::metamorphic::stores::{BUCKETS, Limit};
use ombak_storage::{Detail, Expired, KeyHashRange, KeyRange, ReadMode, Scope, TermRange, WriteAttrs, key_hash};
use std::collections::BTreeMap;
use std::ops::Bound;

impl History {
    pub(super) fn read(&mut self) {
        let key = self.key();
        let expected = self.alive(&key).map(|v| (v.head.clone(), Some(v.body.clone()), v.digest));
        let found = self.store.get(&key, ReadMode::Blocking).unwrap();
        assert_eq!(found.map(|s| (s.head.to_vec(), s.body.map(|b| b.to_vec()), s.digest)), expected);
        let head = self.store.head(&key, ReadMode::Blocking).unwrap();
        assert_eq!(head.map(|s| (s.head.to_vec(), s.digest)), expected.map(|(head, _, digest)| (head, digest)));
        let is_kept = |version: &&Version| self.limit != Limit::Age || self.is_alive(version);
        let kept = self.model.get(&key).filter(is_kept).map(|v| (v.head.clone(), Some(v.body.clone()), v.digest));
        let found = self.store.get_with_expired(&key, ReadMode::Blocking).unwrap();
        assert_eq!(found.map(|s| (s.head.to_vec(), s.body.map(|b| b.to_vec()), s.digest)), kept);
        let head = self.store.head_with_expired(&key, ReadMode::Blocking).unwrap();
        assert_eq!(head.map(|s| (s.head.to_vec(), s.digest)), kept.map(|(head, _, digest)| (head, digest)));
    }

    pub(super) fn fold(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let odd = |key: &[u8]| key.last().is_some_and(|byte| byte % 2 == 1);
        let (mut scope, detail) = match self.random.below(4) {
            0 => (Scope::ALL, Detail::Keys),
            1 => (Scope::prefix(bucket), Detail::Heads),
            2 => (Scope { class: Some(&odd), ..Scope::prefix(bucket) }, Detail::Objects),
            _ => (Scope { class: Some(&odd), ..Scope::ALL }, Detail::Heads),
        };
        scope.expired = [Expired::Hidden, Expired::Kept, Expired::All][self.random.below(3) as usize];
        let shows_expired = match scope.expired {
            Expired::Hidden => false,
            Expired::Kept => self.limit != Limit::Age,
            Expired::All => true,
        };
        if self.random.below(3) == 0 {
            scope.since_seq = self.random.below(self.store.last_seq() + 1);
        }
        if self.random.below(3) == 0 {
            let key = self.key();
            // Half of the ranges are narrow enough for an index to skip parts of itself.
            let width = if self.random.below(2) == 0 { u64::MAX / 4 } else { 3 << 40 };
            let first = key_hash(&key).saturating_sub(self.random.below(width));
            scope.hashes = Some(KeyHashRange { first, last: first.saturating_add(width) });
        }
        let count_max = 1 + self.random.below(40) as usize;
        let mut snapshot = self.store.snapshot().unwrap();
        let expected: BTreeMap<Vec<u8>, Version> = self
            .model
            .iter()
            .filter(|(_, version)| shows_expired || self.is_alive(version))
            .filter(|(key, version)| scope.includes(key) && version.seq > scope.since_seq)
            .map(|(key, version)| (key.clone(), version.clone()))
            .collect();
        // Later writes must not be visible in this fold.
        self.put();
        self.delete();
        let mut found = BTreeMap::new();
        loop {
            let batch = snapshot.next(&scope, detail, count_max).unwrap();
            assert!(batch.len() <= count_max);
            if batch.is_empty() {
                break;
            }
            for entry in batch {
                let expected = expected.get(&entry.key[..]).expect("a key of the moment");
                assert_eq!((entry.digest, entry.seq), (expected.digest, expected.seq));
                assert_eq!((entry.expires_secs, entry.is_expired), (expected.ends_secs, !self.is_alive(expected)));
                assert_eq!(entry.stored.is_some(), detail != Detail::Keys);
                if detail == Detail::Objects && self.is_durable {
                    let Version { tstamp_secs, expires_secs, .. } = *expected;
                    let has_terms = !expected.terms.is_empty();
                    assert_eq!(entry.attrs, Some(WriteAttrs { tstamp_secs, expires_secs, has_terms }));
                }
                if let Some(stored) = entry.stored {
                    assert_eq!(stored.head, expected.head);
                    assert_eq!(stored.body.is_some(), detail == Detail::Objects);
                    assert!(stored.body.is_none_or(|body| body == expected.body));
                }
                assert!(found.insert(entry.key.to_vec(), entry.digest).is_none(), "twice");
            }
        }
        assert_eq!(found.len(), expected.len());
    }

    pub(super) fn ordered_keys(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let ends: Vec<String> = (0..2).map(|_| format!("key {}", self.random.below(25))).collect();
        let bound = |choice: u64, end: usize| match choice {
            0 => Bound::Unbounded,
            1 => Bound::Included(ends[end].as_bytes()),
            _ => Bound::Excluded(ends[end].as_bytes()),
        };
        let (from, to) = (bound(self.random.below(3), 0), bound(self.random.below(3), 1));
        let is_in = |key: &[u8]| {
            let after = match from {
                Bound::Unbounded => true,
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
            };
            after
                && match to {
                    Bound::Unbounded => true,
                    Bound::Included(to) => key <= to,
                    Bound::Excluded(to) => key < to,
                }
        };
        let count_max = 1 + self.random.below(30) as usize;
        let mut snapshot = self.store.ordered_snapshot(bucket).unwrap();
        let found = snapshot.keys_in_order(&KeyRange { bucket, from, to }, count_max).unwrap();
        let expected = self
            .model
            .iter()
            .filter(|(key, version)| key.strip_prefix(bucket).is_some_and(is_in) && self.is_alive(version));
        let expected: Vec<(Vec<u8>, u64)> =
            expected.map(|(key, version)| (key.clone(), version.digest)).take(count_max).collect();
        let found: Vec<(Vec<u8>, u64)> = found.iter().map(|entry| (entry.key.to_vec(), entry.digest)).collect();
        assert_eq!(found, expected);
    }

    pub(super) fn terms(&mut self) {
        let bucket = BUCKETS[self.random.below(3) as usize];
        let field = FIELDS[self.random.below(2) as usize].as_bytes();
        let (mut from, mut to) = (self.term(), self.term());
        if from > to {
            std::mem::swap(&mut from, &mut to);
        }
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, version) in self.model.iter().filter(|(_, version)| self.is_alive(version)) {
            let Some(key) = key.strip_prefix(bucket) else { continue };
            let terms = version.terms.iter().filter(|(name, term)| name == field && *term >= from && *term <= to);
            expected.extend(terms.map(|(_, term)| (term.clone(), key.to_vec())));
        }
        expected.sort();
        let count_max = 1 + self.random.below(10) as usize;
        let mut snapshot = self.store.ordered_snapshot(bucket).unwrap();
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        loop {
            let last = found.last().cloned();
            let after = last.as_ref().map(|(term, key)| (&term[..], &key[..]));
            let range = TermRange { bucket, field, from: &from, to: &to, after };
            let page = snapshot.terms_in_order(&range, count_max).unwrap();
            assert!(page.len() <= count_max);
            if page.is_empty() {
                break;
            }
            found.extend(page.into_iter().map(|entry| (entry.term.to_vec(), entry.key.to_vec())));
        }
        assert_eq!(found, expected);
    }
}
