//! A listing of keys or buckets over several nodes.

use super::node_answer::{NodeAnswer, Piece};
use super::planner::{PlannedPart, Planner};
use crate::listing::BUCKETS_MAX;
use crate::replica::{CoverageHome, CoverageItem, CoverageQuestion};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ombak_runtime::{BoxFuture, within};
use ombak_types::{Error, NodeId, StoreFailure};
use std::collections::{BTreeMap, HashSet};
use xxhash_rust::xxh3::{Xxh3DefaultBuilder, xxh3_128};

/// The most keys that a listing remembers while their home partitions are under way, over all
/// nodes. Beyond that, a node that fails makes the listing fail.
const SEEN_MAX: usize = 4_000_000;

/// Nothing depends on the order of these sets.
type Seen<T> = HashSet<T, Xxh3DefaultBuilder>;

/// The home partitions that a node has still to answer.
type Left = Vec<CoverageHome>;

/// Gathers names from all nodes, in no order.
pub(crate) struct NamesRun {
    planner: Planner,
    question: CoverageQuestion,
    answers: FuturesUnordered<BoxFuture<'static, Piece<Left>>>,
    names: Names,
}

/// What was seen, so that nothing comes twice.
enum Names {
    Keys(SeenKeys),
    Buckets(Seen<Bytes>),
}

/// The hashes of the keys of home partitions whose answer has begun and is not complete.
#[derive(Default)]
struct SeenKeys {
    homes: BTreeMap<u32, SeenHome>,
    count: usize,
}

#[derive(Default)]
struct SeenHome {
    keys: Seen<u128>,
    /// There was no room to remember all.
    is_partial: bool,
    /// An earlier answer broke off, so what comes now may have come already.
    is_repeat: bool,
}

impl SeenKeys {
    /// Notes keys of a home partition, and removes those that came before.
    fn take(&mut self, home: u32, keys: &mut Vec<Bytes>) {
        let Self { homes, count } = self;
        let seen = homes.entry(home).or_default();
        let is_repeat = seen.is_repeat;
        keys.retain(|key| {
            let hash = xxh3_128(key);
            if *count >= SEEN_MAX {
                seen.is_partial |= !seen.keys.contains(&hash);
                return !is_repeat || !seen.keys.contains(&hash);
            }
            let is_new = seen.keys.insert(hash);
            *count += usize::from(is_new);
            is_new || !is_repeat
        });
    }

    fn done(&mut self, home: u32) {
        if let Some(seen) = self.homes.remove(&home) {
            self.count -= seen.keys.len();
        }
    }

    /// Prepares for a second answer. Returns false if too little is known about the first.
    fn repeat(&mut self, home: u32) -> bool {
        let Some(seen) = self.homes.get_mut(&home) else { return true };
        seen.is_repeat = true;
        !seen.is_partial
    }
}

impl NamesRun {
    /// Lists the keys of a bucket, whose n is given. Fails if a home partition has no replica that
    /// can answer.
    pub(crate) fn over_keys(planner: Planner, question: CoverageQuestion, n: u32) -> Result<Self, Error> {
        let (parts, is_complete) = planner.plan(&[n]);
        if !is_complete {
            return Err(Error::InsufficientVnodesAvailable);
        }
        Ok(Self::new(planner, question, parts, Names::Keys(SeenKeys::default())))
    }

    /// Lists the buckets of a type that has these classes. What has no replica that can answer is
    /// left out.
    pub(crate) fn over_buckets(planner: Planner, question: CoverageQuestion, classes: &[u32]) -> Self {
        let (parts, _) = planner.plan(classes);
        Self::new(planner, question, parts, Names::Buckets(Seen::default()))
    }

    fn new(planner: Planner, question: CoverageQuestion, parts: Vec<PlannedPart>, names: Names) -> Self {
        let mut this = Self { planner, question, answers: FuturesUnordered::new(), names };
        this.ask(parts);
        this
    }

    /// Returns the next names, which are never none; `None` at the end.
    pub(crate) async fn next_batch(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        loop {
            let runtime = self.planner.engine.config.runtime.clone();
            let piece = within(&*runtime, self.planner.deadline, self.answers.next()).await;
            let Some((mut left, answer, piece)) = piece.map_err(|_| Error::Timeout)? else { return Ok(None) };
            match piece {
                Some(Ok(CoverageItem::Names { home, names })) => {
                    self.answers.push(answer.piece(left));
                    let names = self.new_names(home, names)?;
                    if !names.is_empty() {
                        return Ok(Some(names));
                    }
                }
                Some(Ok(CoverageItem::HomeDone(home))) => {
                    left.retain(|part| part.home != home);
                    if let Names::Keys(seen) = &mut self.names {
                        seen.done(home);
                    }
                    self.answers.push(answer.piece(left));
                }
                Some(Ok(CoverageItem::Entries(_))) => {
                    self.failed(answer.node, left, StoreFailure::internal("entries answer no listing").into()).await?;
                }
                Some(Err(error)) => self.failed(answer.node, left, error).await?,
                None if left.is_empty() => {}
                None => self.failed(answer.node, left, StoreFailure::internal("an answer is too short").into()).await?,
            }
        }
    }

    fn ask(&mut self, parts: Vec<PlannedPart>) {
        for PlannedPart { node, mut homes } in parts {
            // Listings begin with different stores, because each store has a bounded number of
            // snapshots.
            let turn = self.planner.seed % (homes.len().max(1) as u64);
            homes.rotate_left(turn as usize);
            let request = self.planner.request(self.question.clone(), homes.clone());
            self.answers.push(NodeAnswer::new(&self.planner, node, request).piece(homes));
        }
    }

    fn new_names(&mut self, home: u32, mut names: Vec<Bytes>) -> Result<Vec<Bytes>, Error> {
        match &mut self.names {
            Names::Keys(seen) => seen.take(home, &mut names),
            Names::Buckets(seen) => {
                names.retain(|name| !seen.contains(name) && seen.insert(Bytes::copy_from_slice(name)));
                if seen.len() > BUCKETS_MAX {
                    return Err(Error::Overload);
                }
            }
        }
        Ok(names)
    }

    /// Gives the home partitions that a node did not answer to others.
    async fn failed(&mut self, node: NodeId, left: Left, error: Error) -> Result<(), Error> {
        tracing::info!(peer = %node, homes = left.len(), %error, "a listing goes on at other replicas");
        let (parts, is_complete) = self.planner.plan_again(node, &left, &error).await;
        if let Names::Keys(seen) = &mut self.names {
            if !is_complete {
                return Err(Error::InsufficientVnodesAvailable);
            }
            if !left.iter().all(|part| seen.repeat(part.home)) {
                return Err(error);
            }
        }
        self.ask(parts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&'static str]) -> Vec<Bytes> {
        names.iter().map(|name| Bytes::from_static(name.as_bytes())).collect()
    }

    #[test]
    fn a_second_answer_shows_only_what_the_first_did_not() {
        let mut seen = SeenKeys::default();
        let mut first = keys(&["a", "b"]);
        seen.take(7, &mut first);
        assert_eq!(first, keys(&["a", "b"]));
        assert!(seen.repeat(7) && seen.repeat(8));
        let mut second = keys(&["b", "c", "a"]);
        seen.take(7, &mut second);
        assert_eq!(second, keys(&["c"]));
        let mut third = keys(&["c", "d"]);
        seen.take(7, &mut third);
        assert_eq!(third, keys(&["d"]));
        seen.done(7);
        assert_eq!(seen.count, 0);
    }

    #[test]
    fn a_listing_that_remembers_too_much_does_not_repeat_what_it_forgot() {
        let mut seen = SeenKeys { count: SEEN_MAX - 1, ..SeenKeys::default() };
        let mut first = keys(&["a", "b"]);
        seen.take(7, &mut first);
        assert_eq!(first.len(), 2, "what is not remembered is shown nevertheless");
        assert!(!seen.repeat(7));
    }
}
