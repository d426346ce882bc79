//! A query over all partitions: their entries merged, a batch at a time.

use super::early::EarlyEnds;
use super::terms::{from_sortable, sortable};
use crate::partition::{Partition, is_tombstone};
use bytes::Bytes;
use ombak_storage::{KeyRange, Snapshot, StorageError, TermRange};
use ombak_types::names::encode_bucket_prefix;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, IndexTerm};
use regex::bytes::Regex;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Entries that are read from a partition at once.
const PAGE: usize = 200;
/// Matches of one batch.
const BATCH: usize = 500;

/// What a query asks for.
#[derive(Clone, Debug)]
pub struct IndexQuery {
    /// Where.
    pub bucket: Bucket,
    /// What.
    pub of: QueryOf,
    /// Term (none for keys) and key where the page before ended.
    pub after: Option<(Option<IndexTerm>, Bytes)>,
    /// How many matches at most.
    pub results_max: Option<usize>,
    /// What a term, or a key where keys are asked for, has to match.
    pub pattern: Option<Regex>,
}

/// What a query looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryOf {
    /// Entries of a field between two terms, both included.
    Terms {
        /// With its `_bin` or `_int`.
        field: Bytes,
        /// The first term.
        from: IndexTerm,
        /// The last term.
        to: IndexTerm,
    },
    /// Keys between two keys, both included (`$key`).
    Keys {
        /// The first key.
        from: Bytes,
        /// The last key.
        to: Bytes,
    },
    /// All keys (`$bucket`).
    Bucket,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMatch {
    /// The term; none where keys were asked for.
    pub term: Option<IndexTerm>,
    /// The key.
    pub key: Bytes,
}

/// An entry on its way: term in its sortable form (empty for keys), key.
type Entry = (Bytes, Bytes);

/// The entries of one partition.
struct Source {
    snapshot: Box<dyn Snapshot>,
    early_ends: EarlyEnds,
    page: VecDeque<Entry>,
    last: Option<Entry>,
    is_done: bool,
}

/// A query under way. It is moved to a thread that may wait for each batch.
pub(crate) struct QueryWalk {
    query: IndexQuery,
    prefix: Vec<u8>,
    now: UnixMicros,
    partitions: Arc<[Arc<Partition>]>,
    /// Made with the first batch: making an order may take its time.
    sources: Vec<Source>,
    heads: BinaryHeap<Reverse<(Entry, usize)>>,
    began: bool,
    found: usize,
    last: Option<Entry>,
}

impl QueryWalk {
    /// `now`: what has expired by then is passed over.
    pub(crate) fn new(partitions: Arc<[Arc<Partition>]>, query: IndexQuery, now: UnixMicros) -> Self {
        let mut prefix = Vec::new();
        encode_bucket_prefix(&query.bucket, &mut prefix);
        let (sources, heads) = (Vec::new(), BinaryHeap::new());
        Self { query, prefix, now, partitions, sources, heads, began: false, found: 0, last: None }
    }

    /// The next matches, in order; `None` at the end. May be empty in between.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<IndexMatch>>, StorageError> {
        if !self.began {
            self.begin()?;
            self.began = true;
        }
        let mut batch = Vec::new();
        let mut looked_at = 0;
        while batch.len() < BATCH && looked_at < BATCH && !self.is_full() {
            let Some(Reverse((entry, from))) = self.heads.pop() else { break };
            looked_at += 1;
            self.advance(from)?;
            if self.last.as_ref() == Some(&entry) {
                continue;
            }
            if let Some(found) = self.matching(&entry) {
                self.found += 1;
                batch.push(found);
            }
            self.last = Some(entry);
        }
        let is_over = looked_at == 0;
        Ok((!is_over).then_some(batch))
    }

    /// Whether as many were found as were asked for: there may be more behind them.
    pub(crate) fn is_full(&self) -> bool {
        self.query.results_max.is_some_and(|max| self.found >= max)
    }

    fn begin(&mut self) -> Result<(), StorageError> {
        for partition in self.partitions.iter() {
            let mut snapshot = partition.store().ordered_snapshot()?;
            let early_ends = match self.query.of {
                QueryOf::Terms { .. } => EarlyEnds::find(&mut *snapshot, &self.prefix, self.now)?,
                QueryOf::Keys { .. } | QueryOf::Bucket => EarlyEnds::default(),
            };
            let last = self.query.after.as_ref().map(|(term, key)| {
                let term = term.as_ref().map(sortable).unwrap_or_default();
                (term, key.clone())
            });
            self.sources.push(Source { snapshot, early_ends, page: VecDeque::new(), last, is_done: false });
        }
        (0..self.sources.len()).try_for_each(|source| self.advance(source))
    }

    /// Puts the next entry of a partition up for merging.
    fn advance(&mut self, at: usize) -> Result<(), StorageError> {
        let page = self.query.results_max.map_or(PAGE, |max| max.clamp(1, PAGE));
        let Some(source) = self.sources.get_mut(at) else { return Ok(()) };
        while source.page.is_empty() && !source.is_done {
            source.read_page(&self.query.of, &self.prefix, page)?;
        }
        if let Some(entry) = source.page.pop_front() {
            self.heads.push(Reverse((entry, at)));
        }
        Ok(())
    }

    fn matching(&self, (term, key): &Entry) -> Option<IndexMatch> {
        let term = match &self.query.of {
            QueryOf::Terms { field, .. } => Some(from_sortable(field, term)?),
            QueryOf::Keys { .. } | QueryOf::Bucket => None,
        };
        let text: &[u8] = match &term {
            Some(IndexTerm::Bin(term)) => term,
            Some(IndexTerm::Int(_)) => b"",
            None => key,
        };
        let matches = self.query.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
        matches.then(|| IndexMatch { term, key: key.clone() })
    }
}

impl Source {
    fn read_page(&mut self, of: &QueryOf, bucket: &[u8], count_max: usize) -> Result<(), StorageError> {
        let last = self.last.take();
        let read = match of {
            QueryOf::Terms { field, from, to } => {
                let (from, to) = (sortable(from), sortable(to));
                let after = last.as_ref().map(|(term, key)| (&term[..], &key[..]));
                let range = TermRange { bucket, field, from: &from, to: &to, after };
                let entries = self.snapshot.terms_in_order(&range, count_max)?;
                let read = entries.len();
                self.last = entries.last().map(|entry| (entry.term.clone(), entry.key.clone()));
                for entry in entries {
                    if !self.early_ends.hides(&*self.snapshot, bucket, field, &entry)? {
                        self.page.push_back((entry.term, entry.key));
                    }
                }
                read
            }
            QueryOf::Keys { from, to } => {
                let from = after_or(last.as_ref(), Bound::Included(&from[..]));
                self.read_keys(&KeyRange { bucket, from, to: Bound::Included(to) }, count_max)?
            }
            QueryOf::Bucket => {
                let from = after_or(last.as_ref(), Bound::Unbounded);
                self.read_keys(&KeyRange { bucket, from, to: Bound::Unbounded }, count_max)?
            }
        };
        self.is_done = read < count_max;
        if self.last.is_none() {
            self.last = self.page.back().cloned();
        }
        Ok(())
    }

    /// How many keys were read; deleted ones are left out.
    fn read_keys(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<usize, StorageError> {
        let mut from = range.from.map(<[u8]>::to_vec);
        loop {
            let range = KeyRange { from: from.as_ref().map(|from| &from[..]), ..*range };
            let entries = self.snapshot.keys_in_order(&range, count_max)?;
            let read = entries.len();
            let key = |key: &Bytes| key.slice(range.bucket.len()..);
            let last = entries.last().map(|entry| key(&entry.key));
            let alive = entries.iter().filter(|entry| !is_tombstone(entry.digest));
            self.page.extend(alive.map(|entry| (Bytes::new(), key(&entry.key))));
            let Some(last) = last else { return Ok(read) };
            self.last = Some((Bytes::new(), last.clone()));
            // A page of nothing but tombstones is not the end.
            if !self.page.is_empty() || read < count_max {
                return Ok(read);
            }
            from = Bound::Excluded(last.to_vec());
        }
    }
}

/// Where to go on: behind the last entry, unless the range begins later.
fn after_or<'a>(last: Option<&'a Entry>, from: Bound<&'a [u8]>) -> Bound<&'a [u8]> {
    match (last, from) {
        (Some((_, last)), Bound::Included(from)) if &last[..] < from => Bound::Included(from),
        (Some((_, last)), _) => Bound::Excluded(last),
        (None, from) => from,
    }
}
