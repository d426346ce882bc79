//! A snapshot of a store.

use super::index::{Entry, IndexAnswer, KeyIndex, OrderedIndex};
use super::policy::JournalPolicy;
use super::read::{Read, Wanted};
use super::store::Core;
use crate::backend::{ReadMode, Stored};
use crate::error::StorageError;
use crate::fold::{Detail, Expired, FoldEntry, KeyRange, Scope, Snapshot, TermEntry, TermRange};
use bytes::Bytes;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The index's view for a snapshot; none after a timeout has taken it away.
pub(super) type TimedView<I> = Arc<Mutex<Option<<I as KeyIndex>::View>>>;

pub(super) struct JournalSnapshot<P: JournalPolicy> {
    core: Arc<Core<P>>,
    /// Locked during each call, so that the files that the call reads stay.
    held: TimedView<P::Index>,
    ticket: u64,
    secs_max: Option<u32>,
}

impl<P: JournalPolicy> JournalSnapshot<P> {
    /// A snapshot of the present state that lives at most `secs_max` seconds.
    pub(super) fn begin(core: Arc<Core<P>>, secs_max: Option<u32>) -> Result<Self, StorageError> {
        core.check_open()?;
        let ends_at_secs = secs_max.map_or(u64::MAX, |secs| core.now_secs.load(Ordering::Relaxed) + u64::from(secs));
        let held = TimedView::<P::Index>::default();
        let ticket = {
            // The writer's lock ensures that no put is between its append and its index entry. The
            // ticket comes first, so that no file is removed that the snapshot is about to see.
            let writer = core.writer.lock();
            let ticket = core.snapshot_tickets.lock().begin(Ticket { ends_at_secs, held: held.clone() });
            let view = core.index.view(writer.last_seq()).inspect_err(|_| {
                core.snapshot_tickets.lock().live.remove(&ticket);
            })?;
            *held.lock() = Some(view);
            ticket
        };
        Ok(Self { core, held, ticket, secs_max })
    }

    /// The store.
    pub(super) fn core(&self) -> &Arc<Core<P>> {
        &self.core
    }

    /// Works with the view. It cannot be taken away meanwhile.
    pub(super) fn with_view<T>(
        &self,
        work: impl FnOnce(&mut <P::Index as KeyIndex>::View) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.core.check_open()?;
        match &mut *self.held.lock() {
            Some(view) => work(view),
            None => Err(StorageError::SnapshotTimeout { secs_max: self.secs_max.unwrap_or_default() }),
        }
    }

    /// Reads the version of a key. `met` is what the view has of it, if that is known. It may be
    /// out of date if a merge moves the version meanwhile.
    fn read_as(
        &self,
        view: &<P::Index as KeyIndex>::View,
        key: &[u8],
        met: Option<Entry>,
        wanted: Wanted,
        expired: Expired,
    ) -> Result<Option<Read>, StorageError> {
        let met = Cell::new(met.map(IndexAnswer::of_entry));
        let look = || match met.take() {
            Some(found) => Ok(Some(found)),
            None => self.core.index.get_at(P::Index::key(key), view, ReadMode::Blocking),
        };
        self.core.read_with(key, ReadMode::Blocking, wanted, expired, look)
    }

    /// An entry of a fold without head and body.
    pub(super) fn fold_entry(&self, key: Bytes, entry: &Entry) -> FoldEntry {
        FoldEntry {
            key,
            digest: entry.digest,
            seq: entry.seq,
            expires_secs: entry.expires_secs,
            is_expired: self.core.is_expired(entry.expires_secs),
            stored: None,
            attrs: None,
        }
    }

    /// Completes an entry of a fold with the requested detail. None if expired versions are hidden
    /// and this one has expired meanwhile.
    fn detail(
        &self,
        view: &<P::Index as KeyIndex>::View,
        key: Bytes,
        found: IndexAnswer,
        detail: Detail,
        expired: Expired,
    ) -> Result<Option<FoldEntry>, StorageError> {
        let IndexAnswer { entry, head, body, attrs } = found;
        let whole = |head, body| {
            let stored_secs = attrs.map(|attrs| attrs.tstamp_secs);
            let stored = Stored { head, body, digest: entry.digest, seq: entry.seq, stored_secs };
            Some(Read { stored, attrs })
        };
        let read = match (detail, head, body) {
            (Detail::Keys, ..) => None,
            (Detail::Heads, Some(head), _) => whole(head, None),
            (Detail::Heads, None, _) => self.read_as(view, &key, Some(entry), Wanted::Head, expired)?,
            (Detail::Objects, Some(head), Some(body)) => whole(head, Some(body)),
            (Detail::Objects, ..) => self.read_as(view, &key, Some(entry), Wanted::Whole, expired)?,
        };
        if detail != Detail::Keys && read.is_none() {
            return Ok(None);
        }
        let attrs = read.as_ref().and_then(|read| read.attrs).filter(|_| detail == Detail::Objects);
        let stored = read.map(|read| read.stored);
        Ok(Some(FoldEntry { stored, attrs, ..self.fold_entry(key, &entry) }))
    }
}

impl<P: JournalPolicy> Snapshot for JournalSnapshot<P> {
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        self.with_view(|view| {
            let core = &*self.core;
            let mut batch: Vec<FoldEntry> = Vec::new();
            // An empty batch means the end, so a batch in which everything has expired meanwhile
            // must not be returned.
            while batch.is_empty() && count_max > 0 {
                let mut met: Vec<(Bytes, IndexAnswer)> = Vec::with_capacity(count_max.min(1024));
                core.index.walk(view, scope, |key, found| {
                    if scope.selects(key, found.entry.seq, core.is_hidden(found.entry.expires_secs, scope.expired)) {
                        met.push((Bytes::copy_from_slice(key), found));
                    }
                    met.len() < count_max
                })?;
                if met.is_empty() {
                    break;
                }
                for (key, found) in met {
                    batch.extend(self.detail(view, key, found, detail, scope.expired)?);
                }
            }
            Ok(batch)
        })
    }

    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        self.with_view(|view| {
            let mut batch = Vec::new();
            if count_max == 0 {
                return Ok(batch);
            }
            self.core.index.keys_in_order(view, range, |key, entry| {
                if !self.core.is_expired(entry.expires_secs) {
                    batch.push(self.fold_entry(Bytes::copy_from_slice(key), entry));
                }
                batch.len() < count_max
            })?;
            Ok(batch)
        })
    }

    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError> {
        if count_max == 0 {
            return Ok(Vec::new());
        }
        self.with_view(|view| self.terms(view, range, count_max))
    }

    fn may_expire(&self) -> bool {
        self.core.expires_anything()
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        self.with_view(|view| {
            Ok(self.read_as(view, key, None, Wanted::Whole, Expired::Hidden)?.map(|read| read.stored))
        })
    }
}

impl<P: JournalPolicy> JournalSnapshot<P> {
    fn terms(
        &self,
        view: &<P::Index as KeyIndex>::View,
        range: &TermRange<'_>,
        count_max: usize,
    ) -> Result<Vec<TermEntry>, StorageError> {
        let mut batch: Vec<TermEntry> = Vec::new();
        let mut passed: Option<TermEntry> = None;
        // Terms of expired versions are there until a sweep removes the versions.
        while batch.is_empty() {
            let mut met: Vec<TermEntry> = Vec::with_capacity(count_max.min(1024));
            let before = passed.take();
            let after = before.as_ref().map(|entry| (&entry.term[..], &entry.key[..])).or(range.after);
            let range = TermRange { after, ..*range };
            self.core.index.terms_in_order(view, &range, |term, key| {
                met.push(TermEntry { term: Bytes::copy_from_slice(term), key: Bytes::copy_from_slice(key) });
                met.len() < count_max
            })?;
            let Some(last) = met.last() else { break };
            passed = Some(last.clone());
            for entry in met {
                if !self.core.expires_anything() || self.is_there(view, range.bucket, &entry.key)? {
                    batch.push(entry);
                }
            }
        }
        Ok(batch)
    }

    fn is_there(&self, view: &<P::Index as KeyIndex>::View, bucket: &[u8], key: &[u8]) -> Result<bool, StorageError> {
        let key = [bucket, key].concat();
        let found = self.core.index.get_at(P::Index::key(&key), view, ReadMode::Blocking)?;
        Ok(found.is_some_and(|found| !self.core.is_expired(found.entry.expires_secs)))
    }
}

impl<P: JournalPolicy> Drop for JournalSnapshot<P> {
    fn drop(&mut self) {
        if let Some(view) = self.held.lock().take() {
            self.core.index.end_view(&view);
        }
        self.core.snapshot_tickets.lock().live.remove(&self.ticket);
    }
}

/// The open snapshots, in the order in which they began.
pub(super) struct SnapshotTickets<I: KeyIndex> {
    pub(super) next: u64,
    pub(super) live: BTreeMap<u64, Ticket<I>>,
}

pub(super) struct Ticket<I: KeyIndex> {
    ends_at_secs: u64,
    held: TimedView<I>,
}

impl<I: KeyIndex> Default for SnapshotTickets<I> {
    fn default() -> Self {
        Self { next: 0, live: BTreeMap::new() }
    }
}

impl<I: KeyIndex> Ticket<I> {
    /// A ticket that keeps files in place without a time limit and without a view.
    pub(super) fn of_files() -> Self {
        Self { ends_at_secs: u64::MAX, held: TimedView::<I>::default() }
    }
}

impl<I: KeyIndex> SnapshotTickets<I> {
    pub(super) fn begin(&mut self, ticket: Ticket<I>) -> u64 {
        self.next += 1;
        self.live.insert(self.next, ticket);
        self.next
    }
}

impl<P: JournalPolicy> Core<P> {
    /// Takes the views of snapshots that have been open for too long. The files that they kept can
    /// then be removed, and their next call is an error. A view that is in use is taken in a later
    /// round.
    pub(super) fn expire_views(&self, now_secs: u64) {
        let overdue: Vec<(u64, TimedView<P::Index>)> = {
            let tickets = self.snapshot_tickets.lock();
            let is_overdue = |ticket: &Ticket<P::Index>| ticket.ends_at_secs < now_secs;
            tickets.live.iter().filter(|(_, t)| is_overdue(t)).map(|(number, t)| (*number, t.held.clone())).collect()
        };
        for (number, held) in overdue {
            let Some(mut view) = held.try_lock() else { continue };
            if let Some(view) = view.take() {
                tracing::warn!(partition = self.partition, "a fold or query has had its view for too long and lost it");
                self.index.end_view(&view);
            }
            self.snapshot_tickets.lock().live.remove(&number);
        }
    }
}
