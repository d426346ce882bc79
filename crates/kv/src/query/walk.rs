//! A query over all partitions: it merges their entries, one batch at a time.

use super::source::{Entry, Range, Source};
use super::terms::from_sortable;
use crate::partition::Partition;
use crate::requests::{IndexMatch, IndexQuery, QueryRange};
use bytes::Bytes;
use ombak_runtime::pause_if_due;
use ombak_storage::StorageError;
use ombak_types::time::UnixMicros;
use ombak_types::{Bucket, IndexTerm};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Maximum number of matches in one batch.
const BATCH: usize = 500;
/// Maximum number of entries that are read for one batch, whether they match or not. Between two
/// batches the thread does other work, and the server notices when the client is gone.
const READ_MAX: usize = 5_000;
/// The cost of opening a view of a store, counted as entries read.
const VIEW_COST: usize = 50;
/// Maximum number of entries that wait to be merged, over all partitions; or [`PAGE_MIN`] of each
/// partition if that is more.
const HELD_MAX: usize = 4_096;
const PAGE_MIN: usize = 8;
const PAGE_MAX: usize = 200;

/// An active query. It is moved to a thread that may wait for each batch.
pub(crate) struct QueryWalk {
    query: IndexQuery,
    range: Range,
    page: usize,
    sources: Vec<Source>,
    /// The next entry of each source that has one; the smallest entry is on top.
    heads: BinaryHeap<Reverse<(Entry, usize)>>,
    /// Sources whose next entry is not known yet. They are asked before an entry is taken from
    /// `heads`.
    unasked: Vec<usize>,
    found: usize,
    last: Option<Entry>,
}

impl QueryWalk {
    /// `now` is the time of the query: entries that have expired by then are skipped.
    pub(crate) fn new(partitions: impl Iterator<Item = Arc<Partition>>, query: IndexQuery, now: UnixMicros) -> Self {
        let range = Range::new(&query, now);
        let after = query.after.as_ref().map(|(term, key)| Entry::new(term.as_ref(), key));
        let asked = partitions.take_while(|_| !range.is_empty());
        let sources: Vec<Source> = asked.map(|p| Source::new(p, after.clone())).collect();
        let page = (HELD_MAX / sources.len().max(1)).clamp(PAGE_MIN, PAGE_MAX);
        // A query with few results reads small pages.
        let page = query.results_max.map_or(page, |max| page.min(max.max(PAGE_MIN)));
        let unasked = (0..sources.len()).collect();
        Self { query, range, page, sources, heads: BinaryHeap::new(), unasked, found: 0, last: None }
    }

    /// Returns the next matches, in order; `None` at the end. A batch may be empty.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<IndexMatch>>, StorageError> {
        let mut batch = Vec::new();
        let mut read = 0;
        while batch.len() < BATCH && read < READ_MAX && !self.is_full() {
            pause_if_due();
            if let Some(source) = self.unasked.pop() {
                read += self.ask(source)?;
                continue;
            }
            let Some(Reverse((entry, source))) = self.heads.pop() else { break };
            self.unasked.push(source);
            // Another partition can have the same entry, because the bucket's properties once
            // placed its keys elsewhere.
            if self.last.as_ref() != Some(&entry) {
                let matching = self.matching(&entry);
                self.found += usize::from(matching.is_some());
                batch.extend(matching);
                self.last = Some(entry);
            }
        }
        let is_over = batch.is_empty() && (self.is_full() || self.heads.is_empty() && self.unasked.is_empty());
        Ok((!is_over).then_some(batch))
    }

    /// Whether the query found its maximum number of results; more entries may follow.
    pub(crate) fn is_full(&self) -> bool {
        self.query.results_max.is_some_and(|max| self.found >= max)
    }

    /// The bucket and the index of the query.
    pub(crate) fn target(&self) -> (Bucket, Bytes) {
        (self.query.bucket.clone(), self.query.range.index())
    }

    /// The number of partitions that are queried.
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Whether the query has a view of some store.
    pub(crate) fn has_views(&self) -> bool {
        self.sources.iter().any(Source::is_open)
    }

    /// Gives all views back, until the next batch. Returns whether there were any.
    pub(crate) fn close_views(&mut self) -> bool {
        let had_views = self.has_views();
        self.sources.iter_mut().for_each(Source::close);
        had_views
    }

    /// Pushes the next entry of a source onto `heads`. Returns the cost in entries read.
    fn ask(&mut self, at: usize) -> Result<usize, StorageError> {
        let Some(source) = self.sources.get_mut(at) else { return Ok(0) };
        if let Some(entry) = source.take() {
            self.heads.push(Reverse((entry, at)));
            return Ok(0);
        }
        let cost = if source.is_open() { 0 } else { VIEW_COST };
        let read = source.read_page(&self.range, self.page)?;
        // The page may have held only deleted keys.
        if !source.is_done() {
            self.unasked.push(at);
        }
        Ok(cost + read)
    }

    fn matching(&self, entry: &Entry) -> Option<IndexMatch> {
        let term = match &self.query.range {
            QueryRange::Terms { field, .. } => Some(from_sortable(field, &entry.term)?),
            QueryRange::Keys { .. } => None,
        };
        let text: &[u8] = match &term {
            Some(IndexTerm::Bin(term)) => term,
            Some(IndexTerm::Int(_)) => b"",
            None => &entry.key,
        };
        let matches = self.query.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
        matches.then(|| IndexMatch { term, key: entry.key.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::ActorSource;
    use ombak_storage::{BackendFactory, MemoryFactory, Write};
    use ombak_types::names::encode_storage_key;
    use std::ops::Bound;

    const PARTITIONS: usize = 64;

    /// Partitions that hold `keys` keys in total, either all deleted or all alive.
    fn partitions(keys: usize, deleted: bool) -> Vec<Arc<Partition>> {
        let stores = MemoryFactory::default();
        let actors = Arc::new(ActorSource::new(1));
        let open = |n: usize| Arc::new(Partition::new(n as u32, stores.open(n as u32).unwrap(), actors.clone()));
        let partitions: Vec<_> = (0..PARTITIONS).map(open).collect();
        for n in 0..keys {
            let mut key = Vec::new();
            encode_storage_key(&Bucket::untyped("b"), format!("k{n:06}").as_bytes(), &mut key);
            let digest = (n as u64) << 1 | u64::from(deleted);
            let write =
                Write { key: &key, head: b"h", body: &[], digest, tstamp_secs: 1, expires_secs: 0, has_terms: false };
            partitions[n % PARTITIONS].store().put(&write).unwrap();
        }
        partitions
    }

    fn keys(from: &'static str, to: &'static str, results_max: Option<usize>) -> IndexQuery {
        let bound = |key: &'static str| Bound::Included(Bytes::from(key));
        let range = QueryRange::Keys { from: bound(from), to: bound(to) };
        IndexQuery {
            bucket: Bucket::untyped("b"),
            range,
            after: None,
            results_max,
            pattern: None,
            shows_tombstones: true,
        }
    }

    fn walk(partitions: &[Arc<Partition>], query: IndexQuery) -> QueryWalk {
        QueryWalk::new(partitions.iter().cloned(), query, UnixMicros::from_secs(1))
    }

    fn held(walk: &QueryWalk) -> usize {
        walk.heads.len() + walk.sources.iter().map(Source::held).sum::<usize>()
    }

    /// Runs a walk to its end. Returns the number of results and of batches.
    fn run(mut walk: QueryWalk) -> (usize, usize) {
        let (mut results, mut batches) = (0, 0);
        while let Some(batch) = walk.next_batch().unwrap() {
            assert!(batch.len() <= BATCH && held(&walk) <= HELD_MAX + PARTITIONS);
            results += batch.len();
            batches += 1;
        }
        assert!(walk.next_batch().unwrap().is_none(), "the end is the end");
        (results, batches)
    }

    #[test]
    fn a_batch_has_an_end_whether_anything_matches_or_not() {
        let alive = partitions(30_000, false);
        let (results, batches) = run(walk(&alive, keys("a", "z", None)));
        assert_eq!(results, 30_000);
        assert!((60..200).contains(&batches), "{batches}");
        let mut none = keys("a", "z", None);
        none.pattern = Some(regex::bytes::Regex::new("nothing").unwrap());
        let (results, batches) = run(walk(&alive, none));
        assert!(results == 0 && batches >= 30_000 / READ_MAX, "{batches}");

        let mut hidden = keys("a", "z", None);
        hidden.shows_tombstones = false;
        let (results, batches) = run(walk(&partitions(30_000, true), hidden));
        assert!(results == 0 && batches >= 30_000 / READ_MAX, "{batches}");
    }

    #[test]
    fn what_can_have_no_result_asks_nobody() {
        let alive = partitions(100, false);
        let asked = walk(&alive, keys("z", "a", None));
        assert_eq!((asked.sources(), run(asked)), (0, (0, 0)));
        assert_eq!(run(walk(&alive, keys("a", "z", Some(7)))).0, 7);
    }

    #[test]
    fn views_are_given_back_when_they_are_read() {
        let alive = partitions(300, false);
        let mut asked = walk(&alive, keys("a", "z", None));
        asked.next_batch().unwrap();
        assert!(asked.sources.iter().all(|source| !source.is_open()));
    }
}
