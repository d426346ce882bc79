//! The results of a query, in batches.

use super::index_query::IndexMatch;
use super::walk::QueryWalk;
use crate::engine::Engine;
use crate::log_text::Shown;
use bytes::Bytes;
use ombak_types::{Bucket, Error};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::info;

/// Matches in bounded batches, in order. The work for a batch is done when it is asked for, so a slow reader holds no
/// thread; dropping the results ends the query.
pub struct QueryResults {
    engine: Arc<Engine>,
    bucket: Bucket,
    index: Bytes,
    began: Instant,
    deadline: Option<Instant>,
    /// `None` once the query has ended, and while a batch is being made.
    walk: Option<QueryWalk>,
    is_full: bool,
    found: u64,
    outcome: Outcome,
}

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It has not, or nobody waited for the end.
    Abandoned,
    Complete,
    Failed,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Complete => "complete",
            Self::Failed => "failed",
        }
    }
}

impl QueryResults {
    pub(crate) fn new(engine: Arc<Engine>, walk: QueryWalk, limit: Option<Duration>) -> Self {
        let (bucket, index) = walk.target();
        engine.stats.query_started(walk.sources());
        let began = Instant::now();
        let deadline = limit.and_then(|limit| began.checked_add(limit));
        let (walk, outcome) = (Some(walk), Outcome::Abandoned);
        Self { engine, bucket, index, began, deadline, walk, is_full: false, found: 0, outcome }
    }

    /// The next batch, never empty; `None` at the end. An error is the last thing it gives.
    pub async fn next(&mut self) -> Option<Result<Vec<IndexMatch>, Error>> {
        loop {
            let walk = self.walk.take()?;
            match self.step(walk).await {
                Ok((walk, batch)) => {
                    self.is_full = walk.is_full();
                    let Some(batch) = batch else {
                        self.outcome = Outcome::Complete;
                        return None;
                    };
                    self.walk = Some(walk);
                    if !batch.is_empty() {
                        self.found += batch.len() as u64;
                        return Some(Ok(batch));
                    }
                }
                Err(error) => {
                    self.outcome = Outcome::Failed;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Whether as many matches came as were asked for: a continuation is due, also when nothing follows
    /// (docs/riak/http-api.md, notes on 2i).
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    async fn step(&mut self, mut walk: QueryWalk) -> Result<(QueryWalk, Option<Vec<IndexMatch>>), Error> {
        let work = self.engine.folds.run(move || {
            let batch = walk.next_batch();
            (walk, batch)
        });
        let (walk, batch) = match self.deadline {
            None => work.await?,
            Some(at) => tokio::time::timeout_at(at.into(), work).await.map_err(|_| Error::Timeout)??,
        };
        // The runtime's timer is coarser than a millisecond, and lets work pass that ended late.
        if self.deadline.is_some_and(|at| Instant::now() >= at) {
            return Err(Error::Timeout);
        }
        Ok((walk, batch.map_err(|e| Error::Storage(e.to_string()))?))
    }
}

impl Drop for QueryResults {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.engine.stats.query_ended(self.outcome == Outcome::Complete, self.found, took_us);
        if self.engine.config.queries.logs {
            let (bucket_type, bucket) = (Shown(&self.bucket.bucket_type), Shown(&self.bucket.name));
            let (index, outcome) = (Shown(&self.index), self.outcome.name());
            info!(%bucket_type, %bucket, %index, results = self.found, took_us, outcome, "index query");
        }
    }
}
