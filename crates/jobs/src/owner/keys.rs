//! Where the inputs of a job come from.

use super::{Event, RunningJob};
use crate::jobs::Inner;
use crate::{FoundInputs, InputSearch, InputSearches};
use bytes::Bytes;
use ombak_kv::{IndexMatch, IndexQuery, QueryRange, QueryResults};
use ombak_mapreduce::{Failure, Input, InputListIter, Inputs, InputsFailure, InputsProblem, Job};
use ombak_types::etf::Term;
use ombak_types::{Bucket, Error, IndexTerm};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

/// How many keys of a list are taken at once.
const KEYS_AT_ONCE: usize = 1000;

/// What Riak's module of indexes can be asked for.
const BAD_INDEX_QUERY: &str = "of riak_index, only mapred_index exists here, with the argument \
     [Bucket,{eq,Field,Term}] or [Bucket,{range,Field,Low,High}] in Erlang's encoding; use the inputs of an index \
     query in its place";

/// What Riak's modules of searches can be asked for.
const BAD_SEARCH: &str = "of yokozuna and riak_search, only mapred_search exists here, with the argument \
     [Index,Query] or [Index,Query,Filter], all of them texts";

const NO_SEARCH: &str = "this node has no search; `search = on` in its configuration switches it on";

/// Keys that do not come from shares.
#[derive(Default)]
pub(super) enum KeySource {
    List(InputListIter),
    Index(Bucket, Box<QueryResults>),
    Search(Box<RunningSearch>),
    /// The next keys are being read.
    Busy,
    /// There are no more.
    #[default]
    Done,
}

/// A search, and how far it has come.
pub(super) struct RunningSearch {
    searches: Arc<dyn InputSearches>,
    search: InputSearch,
    from: Option<String>,
}

/// What was found out about the inputs.
pub(super) enum Found {
    /// They are shares of a bucket with this n.
    Share { n: u32, homes: u32 },
    /// They come from here.
    Source(KeySource),
    /// The next keys of a query, or its end.
    Matches { bucket: Bucket, results: Box<QueryResults>, matches: Option<Result<Vec<IndexMatch>, Error>> },
    /// The next keys of a search.
    Searched { search: Box<RunningSearch>, keys: Result<FoundInputs, Failure> },
}

impl KeySource {
    /// `deadline` is when the job ends.
    pub(super) fn of(node: &Inner, job: &Job, deadline: Instant) -> Result<Found, Failure> {
        let other = |error: Error| Failure::Other(error.to_string());
        match &job.inputs {
            Inputs::Keys(keys) => Ok(Found::Source(Self::List(keys.iter()))),
            Inputs::Bucket { bucket, .. } => {
                let n = node.kv.buckets().props(bucket).map_err(other)?.n_val;
                Ok(Found::Share { n, homes: node.kv.homes() })
            }
            Inputs::Index(query) => {
                let range = range_of(&query.field, query.low.clone(), query.high.clone());
                let asked = IndexQuery {
                    bucket: query.bucket.clone(),
                    range,
                    after: None,
                    results_max: None,
                    pattern: None,
                    shows_tombstones: false,
                };
                let results = node.kv.query(asked, Some(job.timeout)).map_err(other)?;
                Ok(Found::Source(Self::Index(query.bucket.clone(), Box::new(results))))
            }
            Inputs::Function { module, .. } if module == "riak_index" => {
                Err(Failure::Other(BAD_INDEX_QUERY.to_owned()))
            }
            Inputs::Function { module, .. } if Inputs::is_module_of_search(module) => {
                Err(inputs_failure(InputsProblem::Bad, BAD_SEARCH))
            }
            // Riak's words for a module that is not there.
            Inputs::Function { module, function, .. } => {
                tracing::info!(module, function, "a job was refused: inputs come from no Erlang function here");
                Err(Failure::Other("map_reduce_error".to_owned()))
            }
            Inputs::Search { index, query, filter } => {
                let searches = node.config.searches.clone();
                let searches = searches.ok_or_else(|| inputs_failure(InputsProblem::Missing, NO_SEARCH))?;
                let (index, query, filter) = (index.clone(), query.clone(), filter.clone());
                let search = InputSearch { index, query, filter, deadline };
                Ok(Found::Source(Self::Search(Box::new(RunningSearch { searches, search, from: None }))))
            }
        }
    }
}

fn inputs_failure(problem: InputsProblem, why: &str) -> Failure {
    Failure::Inputs(InputsFailure { problem, why: why.to_owned() })
}

/// A key that a search has found, as an input. Riak's key data has room for what a search tells of
/// an object, and is empty.
fn input_of_search((bucket, key): (Bucket, Bytes)) -> Input {
    Input { bucket, key, key_data: Some(Term::pair(Term::atom("struct"), Term::nil())) }
}

fn range_of(field: &Bytes, low: IndexTerm, high: IndexTerm) -> QueryRange {
    let key = |term: IndexTerm| match term {
        IndexTerm::Bin(key) => Bound::Included(key),
        IndexTerm::Int(number) => Bound::Included(number.to_string().into()),
    };
    match &field[..] {
        b"$bucket" => QueryRange::Keys { from: Bound::Unbounded, to: Bound::Unbounded },
        b"$key" => QueryRange::Keys { from: key(low), to: key(high) },
        _ => QueryRange::Terms { field: field.clone(), from: low, to: high },
    }
}

impl RunningJob {
    /// Gives the job more keys if it has room. Returns whether it got some at once.
    pub(super) fn feed(&mut self) -> bool {
        if !self.run.wants_keys() {
            return false;
        }
        match std::mem::take(&mut self.keys) {
            KeySource::List(mut keys) => {
                let some: Vec<Input> = keys.by_ref().take(KEYS_AT_ONCE).collect();
                if some.is_empty() {
                    self.run.end_keys();
                } else {
                    self.keys = KeySource::List(keys);
                    self.run.add_keys(some);
                }
                true
            }
            KeySource::Index(bucket, mut results) => {
                self.keys = KeySource::Busy;
                self.events.push(Box::pin(async move {
                    let matches = results.next().await;
                    Event::Keys(Found::Matches { bucket, results, matches })
                }));
                false
            }
            KeySource::Search(search) => {
                self.keys = KeySource::Busy;
                let found = search.searches.find(&search.search, search.from.as_deref());
                self.events.push(Box::pin(async move {
                    let keys = found.await;
                    Event::Keys(Found::Searched { search, keys })
                }));
                false
            }
            KeySource::Busy => {
                self.keys = KeySource::Busy;
                false
            }
            KeySource::Done => {
                self.run.end_keys();
                true
            }
        }
    }

    pub(super) fn take_keys(&mut self, found: Found) {
        match found {
            Found::Matches { bucket, results, matches } => self.take_matches(bucket, results, matches),
            Found::Searched { search, keys } => self.take_searched(search, keys),
            Found::Share { .. } | Found::Source(_) => {}
        }
    }

    fn take_searched(&mut self, mut search: Box<RunningSearch>, keys: Result<FoundInputs, Failure>) {
        let FoundInputs { keys, next } = match keys {
            Ok(found) => found,
            Err(failure) => return self.run.stop(failure),
        };
        search.from = next;
        self.keys = if search.from.is_some() { KeySource::Search(search) } else { KeySource::Done };
        self.run.add_keys(keys.into_iter().map(input_of_search).collect());
    }

    fn take_matches(
        &mut self,
        bucket: Bucket,
        results: Box<QueryResults>,
        matches: Option<Result<Vec<IndexMatch>, Error>>,
    ) {
        match matches {
            Some(Ok(matches)) => {
                let inputs = matches.into_iter().map(|found| Input::new(bucket.clone(), found.key)).collect();
                self.keys = KeySource::Index(bucket, results);
                self.run.add_keys(inputs);
            }
            Some(Err(Error::Timeout)) => self.run.stop(Failure::Timeout),
            Some(Err(error)) => self.run.stop(Failure::Other(format!("Error sending inputs: {error}"))),
            None => {
                self.keys = KeySource::Done;
                self.run.end_keys();
            }
        }
    }
}
