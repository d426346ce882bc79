//! A snapshot of a memory store: copies of its persistent maps, which share their content and are
//! cheap to make.

use super::store::Entry;
use crate::backend::Stored;
use crate::error::StorageError;
use crate::fold::{Detail, FoldEntry, KeyRange, Scope, Snapshot, TermEntry, TermRange};
use crate::ledger::TermBounds;
use bytes::Bytes;
use imbl::{OrdMap, OrdSet};
use std::ops::Bound;

pub(super) struct MemorySnapshot {
    entries: OrdMap<Bytes, Entry>,
    terms: OrdSet<Bytes>,
    expiry: SnapshotExpiry,
    last: Option<Bytes>,
}

/// What a snapshot knows about expiry.
#[derive(Clone, Copy)]
pub(super) struct SnapshotExpiry {
    /// The time of the snapshot.
    pub(super) now_secs: u64,
    /// Whether some version may expire.
    pub(super) may_expire: bool,
    /// Whether the store removes its expired versions by itself.
    pub(super) is_forgotten: bool,
}

impl MemorySnapshot {
    pub(super) fn new(entries: OrdMap<Bytes, Entry>, terms: OrdSet<Bytes>, expiry: SnapshotExpiry) -> Self {
        Self { entries, terms, expiry, last: None }
    }

    fn is_there(&self, bucket: &[u8], key: &[u8]) -> bool {
        let entry = self.entries.get(&[bucket, key].concat()[..]);
        entry.is_some_and(|entry| !entry.is_expired(self.expiry.now_secs))
    }
}

fn fold_entry(key: &Bytes, entry: &Entry, detail: Detail, now_secs: u64) -> FoldEntry {
    let stored = (detail != Detail::Keys).then(|| entry.stored(detail == Detail::Objects));
    FoldEntry {
        key: key.clone(),
        digest: entry.digest,
        seq: entry.seq,
        expires_secs: entry.expires_secs,
        is_expired: entry.is_expired(now_secs),
        stored,
        attrs: None,
    }
}

impl Snapshot for MemorySnapshot {
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        let start = Bytes::copy_from_slice(scope.prefix);
        let from = match &self.last {
            Some(last) if *last >= start => Bound::Excluded(last.clone()),
            _ => Bound::Included(start),
        };
        let shows_expired = scope.expired.shows(self.expiry.is_forgotten);
        let is_hidden = |entry: &Entry| !shows_expired && entry.is_expired(self.expiry.now_secs);
        let batch: Vec<FoldEntry> = self
            .entries
            .range((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(scope.prefix))
            .filter(|(key, entry)| scope.selects(key, entry.seq, is_hidden(entry)))
            .take(count_max)
            .map(|(key, entry)| fold_entry(key, entry, detail, self.expiry.now_secs))
            .collect();
        if let Some(entry) = batch.last() {
            self.last = Some(entry.key.clone());
        }
        Ok(batch)
    }

    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        let key = |key: &[u8]| Bytes::from([range.bucket, key].concat());
        let from = match range.from {
            Bound::Unbounded => Bound::Included(key(b"")),
            bound => bound.map(key),
        };
        let to = range.to.map(key);
        let is_in = |key: &Bytes| match &to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => key.starts_with(range.bucket),
        };
        let found = self.entries.range((from, Bound::Unbounded)).take_while(|(key, _)| is_in(key));
        let alive = found.filter(|(_, entry)| !entry.is_expired(self.expiry.now_secs));
        let entries = alive.map(|(key, entry)| fold_entry(key, entry, Detail::Keys, self.expiry.now_secs));
        Ok(entries.take(count_max).collect())
    }

    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError> {
        let bounds = TermBounds::new(range);
        let mut batch = Vec::new();
        for place in self.terms.range((bounds.from.clone(), Bound::Unbounded)) {
            if batch.len() == count_max || !bounds.is_before_end(place) {
                break;
            }
            let Some((term, key)) = bounds.split(place) else { break };
            if self.is_there(range.bucket, key) {
                batch.push(TermEntry { term: term.into(), key: Bytes::copy_from_slice(key) });
            }
        }
        Ok(batch)
    }

    fn may_expire(&self) -> bool {
        self.expiry.may_expire
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let entry = self.entries.get(key).filter(|entry| !entry.is_expired(self.expiry.now_secs));
        Ok(entry.map(|entry| entry.stored(true)))
    }
}
