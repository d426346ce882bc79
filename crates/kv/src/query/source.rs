//! Reads the entries of one partition for a query: one page at a time, in order.

use super::expired_siblings::KeysWithExpiredSiblings;
use super::terms::sortable;
use crate::partition::{Partition, is_tombstone};
use crate::requests::{IndexQuery, QueryRange};
use bytes::Bytes;
use ombak_storage::{KeyRange, Snapshot, StorageError, TermRange};
use ombak_types::IndexTerm;
use ombak_types::names::encode_bucket_prefix;
use ombak_types::time::UnixMicros;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

/// An entry that was read. Entries sort in the order of the results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The sortable form of the term; empty when keys are queried.
    pub(super) term: Bytes,
    pub(super) key: Bytes,
}

impl Entry {
    pub(crate) fn new(term: Option<&IndexTerm>, key: &Bytes) -> Self {
        Self { term: term.map(sortable).unwrap_or_default(), key: key.clone() }
    }
}

/// The range that a query reads from each partition.
pub(super) struct Range {
    bucket: Vec<u8>,
    of: RangeOf,
    /// The time of the query: entries that have expired by then are skipped.
    now: UnixMicros,
}

enum RangeOf {
    Terms { field: Bytes, from: Bytes, to: Bytes },
    Keys { from: Bound<Bytes>, to: Bound<Bytes>, with_tombstones: bool },
}

impl Range {
    pub(super) fn new(query: &IndexQuery, now: UnixMicros) -> Self {
        let mut bucket = Vec::new();
        encode_bucket_prefix(&query.bucket, &mut bucket);
        let of = match &query.range {
            QueryRange::Terms { field, from, to } => {
                RangeOf::Terms { field: field.clone(), from: sortable(from), to: sortable(to) }
            }
            QueryRange::Keys { from, to } => {
                RangeOf::Keys { from: from.clone(), to: to.clone(), with_tombstones: query.shows_tombstones }
            }
        };
        Self { bucket, of, now }
    }

    /// Whether the range contains no possible entry.
    pub(super) fn is_empty(&self) -> bool {
        use Bound::{Excluded, Included, Unbounded};
        match &self.of {
            RangeOf::Terms { from, to, .. } => from > to,
            RangeOf::Keys { from, to, .. } => match (from, to) {
                (Unbounded, _) | (_, Unbounded) => false,
                (Included(from), Included(to)) => from > to,
                (Included(from) | Excluded(from), Included(to) | Excluded(to)) => from >= to,
            },
        }
    }
}

/// The entries of one partition.
pub(super) struct Source {
    partition: Arc<Partition>,
    view: View,
    page: VecDeque<Entry>,
    /// The last entry that was read.
    after: Option<Entry>,
}

enum View {
    /// The view is not open yet: opening it may have to wait until the store has built its order.
    NotYet,
    Open {
        view: Box<dyn Snapshot>,
        expired_siblings: KeysWithExpiredSiblings,
        /// Versions up to this seq are set aside.
        set_aside_to: u64,
    },
    /// Everything was read, and the view was dropped.
    Done,
}

impl Source {
    pub(super) fn new(partition: Arc<Partition>, after: Option<Entry>) -> Self {
        Self { partition, view: View::NotYet, page: VecDeque::new(), after }
    }

    /// Takes the next entry of the page.
    pub(super) fn take(&mut self) -> Option<Entry> {
        self.page.pop_front()
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.view, View::Open { .. })
    }

    /// Gives the view back. The next page opens another one, and goes on behind the last entry.
    pub(super) fn close(&mut self) {
        if self.is_open() {
            self.view = View::NotYet;
        }
    }

    /// Number of entries of the page that were not taken yet.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.page.len()
    }

    /// Whether neither the page nor the store has further entries.
    pub(super) fn is_done(&self) -> bool {
        self.page.is_empty() && matches!(self.view, View::Done)
    }

    /// Reads the next page and returns how many entries were read. A page may be empty without
    /// being the last page.
    pub(super) fn read_page(&mut self, range: &Range, count_max: usize) -> Result<usize, StorageError> {
        if let View::NotYet = self.view {
            self.view = self.open(range)?;
        }
        let View::Open { view, expired_siblings, set_aside_to } = &mut self.view else { return Ok(0) };
        let set_aside_to = *set_aside_to;
        let (page, after) = (&mut self.page, &mut self.after);
        let read = match &range.of {
            RangeOf::Terms { field, from, to } => {
                let place = after.as_ref().map(|last| (&last.term[..], &last.key[..]));
                let terms = TermRange { bucket: &range.bucket, field, from, to, after: place };
                let found = view.terms_in_order(&terms, count_max)?;
                let read = found.len();
                let last = found.last().map(|last| Entry { term: last.term.clone(), key: last.key.clone() });
                for found in found {
                    if set_aside_to > 0 && is_set_aside(&**view, &range.bucket, &found.key, set_aside_to)? {
                        continue;
                    }
                    if !expired_siblings.hides(&**view, &range.bucket, field, &found)? {
                        page.push_back(Entry { term: found.term, key: found.key });
                    }
                }
                *after = last.or(after.take());
                read
            }
            RangeOf::Keys { from, to, with_tombstones } => {
                let from = after_or(after.as_ref(), from.as_ref().map(|from| &from[..]));
                let keys = KeyRange { bucket: &range.bucket, from, to: to.as_ref().map(|to| &to[..]) };
                let found = view.keys_in_order(&keys, count_max)?;
                let entry = |key: &Bytes| Entry { term: Bytes::new(), key: key.slice(range.bucket.len()..) };
                let present = found.iter().filter(|found| found.seq > set_aside_to);
                let shown = present.filter(|found| *with_tombstones || !is_tombstone(found.digest));
                page.extend(shown.map(|found| entry(&found.key)));
                *after = found.last().map(|last| entry(&last.key)).or(after.take());
                found.len()
            }
        };
        if read < count_max {
            self.view = View::Done;
        }
        Ok(read)
    }

    fn open(&self, range: &Range) -> Result<View, StorageError> {
        self.partition.store().tell_time(range.now.secs());
        let set_aside_to = self.partition.set_aside_to();
        let mut view = self.partition.ordered_snapshot(&range.bucket)?;
        let expired_siblings = match &range.of {
            RangeOf::Terms { .. } => KeysWithExpiredSiblings::find(&mut *view, &range.bucket, range.now)?,
            RangeOf::Keys { .. } => KeysWithExpiredSiblings::default(),
        };
        Ok(View::Open { view, expired_siblings, set_aside_to })
    }
}

/// Whether the version of a key is set aside. Index entries do not say where their version lies.
fn is_set_aside(view: &dyn Snapshot, bucket: &[u8], key: &[u8], set_aside_to: u64) -> Result<bool, StorageError> {
    match view.read(&[bucket, key].concat()) {
        Ok(found) => Ok(found.is_some_and(|found| found.seq <= set_aside_to)),
        // Whoever reads the key gets the error.
        Err(error) if error.is_unreadable_version() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The bound at which reading continues: after the last entry, or the begin of the range.
fn after_or<'a>(last: Option<&'a Entry>, from: Bound<&'a [u8]>) -> Bound<&'a [u8]> {
    match (last, from) {
        (Some(last), Bound::Included(first) | Bound::Excluded(first)) if last.key[..] < *first => from,
        (Some(last), _) => Bound::Excluded(&last.key),
        (None, from) => from,
    }
}
