//! An index query over several nodes: it merges the ordered entries of all of them. This is the
//! merging part of `questions::index_query`.

use super::node_answer::{NextItem, NodeAnswer};
use super::planner::{PlannedPart, Planner};
use super::questions::index_query::IndexMatches;
use crate::query::Entry;
use crate::replica::{CoverageHome, CoverageItem, CoverageQuestion};
use crate::requests::{IndexMatch, IndexQuery};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId, StoreFailure};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of matches in one batch.
const BATCH: usize = 500;

/// Merges entries from all nodes, in order.
pub(crate) struct EntriesRun {
    planner: Planner,
    query: IndexQuery,
    /// The answers by a number of their own: a node can have two, after it took over from another.
    sources: BTreeMap<usize, Source>,
    next_source: usize,
    answers: FuturesUnordered<BoxFuture<'static, NextItem<usize>>>,
    found: usize,
    last: Option<Entry>,
}

/// One answer that is not complete, or whose last item was not used up.
struct Source {
    homes: Vec<CoverageHome>,
    /// What has arrived and was not taken.
    entries: VecDeque<(Entry, IndexMatch)>,
    /// The last entry that has arrived. Another replica goes on after it.
    last: Option<IndexMatch>,
    /// No more items come.
    has_ended: bool,
}

impl EntriesRun {
    /// Runs a query over a bucket whose n is given. Fails if a home partition has no replica that
    /// can answer.
    pub(crate) fn new(planner: Planner, query: IndexQuery, n: u32) -> Result<Self, Error> {
        let homes: Vec<u32> = (0..planner.homes()).collect();
        let (parts, is_complete) = planner.plan(&[n], &homes);
        if !is_complete {
            return Err(Error::InsufficientVnodesAvailable);
        }
        let mut this = Self {
            planner,
            query,
            sources: BTreeMap::new(),
            next_source: 0,
            answers: FuturesUnordered::new(),
            found: 0,
            last: None,
        };
        this.ask(parts, None);
        Ok(this)
    }

    /// Returns the next matches, in order, which are never none; `None` at the end.
    pub(crate) async fn next_batch(&mut self) -> Result<Option<Vec<IndexMatch>>, Error> {
        loop {
            let batch = self.merge();
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
            if self.is_full() || self.sources.is_empty() {
                return Ok(None);
            }
            let runtime = self.planner.engine.config.runtime.clone();
            let item = within(&*runtime, self.planner.deadline, self.answers.next()).await;
            match item.map_err(|_| Error::Timeout)? {
                Some((source, answer, item)) => self.arrived(source, answer, item).await?,
                None => return Err(StoreFailure::internal("a query waits for nobody").into()),
            }
        }
    }

    /// Whether the query found its maximum number of results; more entries may follow.
    pub(crate) fn is_full(&self) -> bool {
        self.query.results_max.is_some_and(|max| self.found >= max)
    }

    /// The query.
    pub(crate) fn query(&self) -> &IndexQuery {
        &self.query
    }

    /// The number of home partitions that are queried.
    pub(crate) fn homes(&self) -> u32 {
        self.planner.homes()
    }

    fn ask(&mut self, parts: Vec<PlannedPart>, last: Option<IndexMatch>) {
        let mut query = self.query.clone();
        if let Some(last) = &last {
            query.after = Some((last.term.clone(), last.key.clone()));
        }
        for PlannedPart { node, homes } in parts {
            let request = self.planner.request(CoverageQuestion::index_query(query.clone()), homes.clone());
            let source = Source { homes, entries: VecDeque::new(), last: last.clone(), has_ended: false };
            self.sources.insert(self.next_source, source);
            self.answers.push(NodeAnswer::new(&self.planner, node, request).item(self.next_source));
            self.next_source += 1;
        }
    }

    async fn arrived(
        &mut self,
        at: usize,
        answer: NodeAnswer,
        item: Option<Result<CoverageItem, Error>>,
    ) -> Result<(), Error> {
        let Some(source) = self.sources.get_mut(&at) else { return Ok(()) };
        let piece = match item {
            Some(Ok(CoverageItem::Piece(piece))) => piece.into_content(),
            Some(Ok(CoverageItem::HomeDone(_))) => None,
            Some(Err(error)) => return self.failed(at, answer.node, error).await,
            None => {
                source.has_ended = true;
                self.forget_used_up(at);
                return Ok(());
            }
        };
        let Some(IndexMatches(entries)) = piece else {
            let error = StoreFailure::internal("an item answers no query").into();
            return self.failed(at, answer.node, error).await;
        };
        let before = source.last.as_ref().map(|last| Entry::new(last.term.as_ref(), &last.key));
        let entries: VecDeque<_> =
            entries.into_iter().map(|found| (Entry::new(found.term.as_ref(), &found.key), found)).collect();
        if !is_ascending(before.as_ref(), &entries) {
            let error = StoreFailure::internal("an answer is out of order").into();
            return self.failed(at, answer.node, error).await;
        }
        source.last = entries.back().map(|(_, found)| found.clone()).or(source.last.take());
        source.entries.extend(entries);
        self.answers.push(answer.item(at));
        Ok(())
    }

    /// Lets other replicas go on where a node stopped. What it gave before is used.
    async fn failed(&mut self, at: usize, node: NodeId, error: Error) -> Result<(), Error> {
        let Some(source) = self.sources.get_mut(&at) else { return Ok(()) };
        source.has_ended = true;
        let (homes, last) = (std::mem::take(&mut source.homes), source.last.clone());
        self.forget_used_up(at);
        tracing::info!(peer = %node, homes = homes.len(), %error, "a query goes on at other replicas");
        let (parts, is_complete) = self.planner.plan_again(node, &homes, &error).await;
        if !is_complete {
            return Err(Error::InsufficientVnodesAvailable);
        }
        self.ask(parts, last);
        Ok(())
    }

    /// Takes entries in order, as long as each answer that goes on has one.
    fn merge(&mut self) -> Vec<IndexMatch> {
        let mut batch = Vec::new();
        while batch.len() < BATCH && !self.is_full() {
            if self.sources.values().any(|source| source.entries.is_empty() && !source.has_ended) {
                break;
            }
            let heads = self.sources.iter().filter_map(|(at, source)| Some((&source.entries.front()?.0, *at)));
            let Some((_, at)) = heads.min() else { break };
            let taken = self.sources.get_mut(&at).and_then(|source| source.entries.pop_front());
            self.forget_used_up(at);
            // Another partition can have the same entry, because the bucket's properties once
            // placed its keys elsewhere.
            if let Some((entry, found)) = taken.filter(|(entry, _)| self.last.as_ref() != Some(entry)) {
                self.found += 1;
                self.last = Some(entry);
                batch.push(found);
            }
        }
        batch
    }

    fn forget_used_up(&mut self, at: usize) {
        if self.sources.get(&at).is_some_and(|source| source.has_ended && source.entries.is_empty()) {
            self.sources.remove(&at);
        }
    }
}

/// Whether entries are in order and come after those that came before.
fn is_ascending(before: Option<&Entry>, entries: &VecDeque<(Entry, IndexMatch)>) -> bool {
    let first = entries.front().map(|(entry, _)| entry);
    let begins_later = before.is_none() || first.is_none() || before < first;
    begins_later && entries.iter().zip(entries.iter().skip(1)).all(|(one, next)| one.0 < next.0)
}
