//! A view of a store at one moment.

use super::key_index::{Found, KeyIndex};
use super::read::{Read, Wanted};
use super::store::Core;
use crate::backend::{Detail, FoldEntry, KeyRange, ReadMode, Scope, Snapshot, Stored, TermEntry, TermRange};
use crate::error::StorageError;
use bytes::Bytes;
use std::sync::Arc;

pub(super) struct JournalSnapshot<I: KeyIndex> {
    core: Arc<Core<I>>,
    view: I::View,
    ticket: u64,
}

impl<I: KeyIndex> JournalSnapshot<I> {
    pub(super) fn begin(core: Arc<Core<I>>) -> Result<Self, StorageError> {
        core.check_open()?;
        let (view, ticket) = {
            // The writer's lock: no put is between its append and its index entry. The ticket comes first, so that no
            // file goes away that the snapshot is about to see.
            let writer = core.writer.lock();
            let ticket = core.snapshot_tickets.lock().begin();
            let view = core.index.view(writer.last_seq()).inspect_err(|_| {
                core.snapshot_tickets.lock().live.remove(&ticket);
            })?;
            (view, ticket)
        };
        Ok(Self { core, view, ticket })
    }

    fn read_as(&self, key: &[u8], wanted: Wanted) -> Result<Option<Read>, StorageError> {
        let indexed = I::key(key);
        let look = || self.core.index.get_at(indexed, &self.view, ReadMode::Blocking);
        self.core.read_with(key, ReadMode::Blocking, wanted, look)
    }

    /// What a fold wants beyond the entry. None when the version has expired meanwhile.
    fn detail(&self, key: &[u8], found: Found, detail: Detail) -> Result<Option<FoldEntry>, StorageError> {
        let Found { entry, head, body, attrs } = found;
        let whole = |head, body| Some(Read { stored: Stored { head, body, digest: entry.digest }, attrs });
        let read = match (detail, head, body) {
            (Detail::Keys, ..) => None,
            (Detail::Heads, Some(head), _) => whole(head, None),
            (Detail::Heads, None, _) => self.read_as(key, Wanted::Head)?,
            (Detail::Objects, Some(head), Some(body)) => whole(head, Some(body)),
            (Detail::Objects, ..) => self.read_as(key, Wanted::Whole)?,
        };
        if detail != Detail::Keys && read.is_none() {
            return Ok(None);
        }
        let attrs = read.as_ref().and_then(|read| read.attrs).filter(|_| detail == Detail::Objects);
        let stored = read.map(|read| read.stored);
        let key = Bytes::copy_from_slice(key);
        Ok(Some(FoldEntry { key, digest: entry.digest, seq: entry.seq, stored, attrs }))
    }
}

impl<I: KeyIndex> Snapshot for JournalSnapshot<I> {
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        self.core.check_open()?;
        let mut batch: Vec<FoldEntry> = Vec::new();
        // A batch of which everything has expired must not look like the end.
        while batch.is_empty() && count_max > 0 {
            let mut met: Vec<(Bytes, Found)> = Vec::with_capacity(count_max.min(1024));
            let Self { core, view, .. } = self;
            core.index.walk(view, scope.prefix, |key, found| {
                if scope.includes(key) && !core.is_expired(found.entry.expires_secs) {
                    met.push((Bytes::copy_from_slice(key), found));
                }
                met.len() < count_max
            })?;
            if met.is_empty() {
                break;
            }
            for (key, found) in met {
                batch.extend(self.detail(&key, found, detail)?);
            }
        }
        Ok(batch)
    }

    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        self.core.check_open()?;
        let mut batch = Vec::new();
        if count_max == 0 {
            return Ok(batch);
        }
        self.core.index.keys_in_order(&self.view, range, |key, entry| {
            if !self.core.is_expired(entry.expires_secs) {
                let key = Bytes::copy_from_slice(key);
                batch.push(FoldEntry { key, digest: entry.digest, seq: entry.seq, stored: None, attrs: None });
            }
            batch.len() < count_max
        })?;
        Ok(batch)
    }

    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError> {
        self.core.check_open()?;
        let mut batch: Vec<TermEntry> = Vec::new();
        if count_max == 0 {
            return Ok(batch);
        }
        let mut passed: Option<TermEntry> = None;
        // Terms of versions that have expired are still there until those are swept away.
        while batch.is_empty() {
            let mut met: Vec<TermEntry> = Vec::with_capacity(count_max.min(1024));
            let before = passed.take();
            let after = before.as_ref().map(|entry| (&entry.term[..], &entry.key[..])).or(range.after);
            let range = TermRange { after, ..*range };
            self.core.index.terms_in_order(&self.view, &range, |term, key| {
                met.push(TermEntry { term: Bytes::copy_from_slice(term), key: Bytes::copy_from_slice(key) });
                met.len() < count_max
            })?;
            let Some(last) = met.last() else { break };
            passed = Some(last.clone());
            for entry in met {
                if !self.core.expires_anything() || self.is_there(range.bucket, &entry.key)? {
                    batch.push(entry);
                }
            }
        }
        Ok(batch)
    }

    fn may_expire(&self) -> bool {
        self.core.expires_anything()
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        Ok(self.read_as(key, Wanted::Whole)?.map(|read| read.stored))
    }
}

impl<I: KeyIndex> JournalSnapshot<I> {
    fn is_there(&self, bucket: &[u8], key: &[u8]) -> Result<bool, StorageError> {
        let key = [bucket, key].concat();
        let found = self.core.index.get_at(I::key(&key), &self.view, ReadMode::Blocking)?;
        Ok(found.is_some_and(|found| !self.core.is_expired(found.entry.expires_secs)))
    }
}

impl<I: KeyIndex> Drop for JournalSnapshot<I> {
    fn drop(&mut self) {
        self.core.index.end_view(&self.view);
        self.core.snapshot_tickets.lock().live.remove(&self.ticket);
    }
}
