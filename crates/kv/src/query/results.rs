//! The results of a query, in batches.

use super::shared_walk::SharedWalk;
use crate::coverage::EntriesRun;
use crate::engine::{Engine, WorkClass};
use crate::requests::IndexMatch;
use crate::slow::{Course, JobTimes, RequestKind, micros_between};
use bytes::Bytes;
use ombak_runtime::Pool;
use ombak_types::{Bucket, Error, ShownKey};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::info;

/// Matches in bounded batches, in order. Each batch is read when the caller asks for it, so a slow
/// reader occupies no thread. Dropping the results ends the query.
pub struct QueryResults {
    engine: Arc<Engine>,
    bucket: Bucket,
    index: Bytes,
    began: Instant,
    deadline: Option<Instant>,
    /// `None` after the query has ended, and while a batch is being read.
    walk: Option<Matches>,
    is_full: bool,
    found: u64,
    outcome: Outcome,
    course: Course,
    /// The threads that read the stores, as this query has its share of them.
    pool: Pool,
}

/// Where the matches come from.
pub(crate) enum Matches {
    /// The stores of this node, which is alone.
    Local(SharedWalk),
    /// The nodes of a cluster.
    Cluster(Box<EntriesRun>),
}

impl Matches {
    fn target(&self) -> (Bucket, Bytes) {
        match self {
            Self::Local(walk) => walk.target(),
            Self::Cluster(run) => (run.query().bucket.clone(), run.query().range.index()),
        }
    }

    fn partitions(&self) -> usize {
        match self {
            Self::Local(walk) => walk.partitions(),
            Self::Cluster(run) => run.homes() as usize,
        }
    }

    fn is_full(&self) -> bool {
        match self {
            Self::Local(walk) => walk.is_full(),
            Self::Cluster(run) => run.is_full(),
        }
    }
}

/// The end of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The query has not ended, or the caller did not wait for its end.
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
    pub(crate) fn new(engine: Arc<Engine>, walk: Matches, limit: Option<Duration>) -> Self {
        let (bucket, index) = walk.target();
        engine.stats.query_started(walk.partitions());
        let began = engine.config.runtime.now();
        let deadline = limit.and_then(|limit| began.checked_add(limit));
        let (walk, outcome) = (Some(walk), Outcome::Abandoned);
        let pool = engine.work_pools.of(WorkClass::IndexQuery, engine.listing_tenant(0));
        let course = Course::begin(RequestKind::IndexQuery, bucket.clone(), index.clone(), began);
        Self { engine, bucket, index, began, deadline, walk, is_full: false, found: 0, outcome, course, pool }
    }

    /// Lets the query share the threads that read the stores with all queries and listings of a
    /// group, such as a client's address. Without a group, it shares them with all that have none.
    #[must_use]
    pub fn in_group(mut self, group: u64) -> Self {
        self.pool = self.engine.work_pools.of(WorkClass::IndexQuery, self.engine.listing_tenant(group));
        self
    }

    /// Returns the next batch, which is never empty; `None` at the end. After an error the query
    /// has ended.
    pub async fn next(&mut self) -> Option<Result<Vec<IndexMatch>, Error>> {
        self.course.goes_on(self.engine.config.runtime.now());
        let next = self.next_batch().await;
        self.course.rests(self.engine.config.runtime.now(), &next);
        next
    }

    async fn next_batch(&mut self) -> Option<Result<Vec<IndexMatch>, Error>> {
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

    /// Whether the query returned its maximum number of results. The answer then has a
    /// continuation, even when nothing follows (docs/riak/http-api.md §17, 2i).
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    async fn step(&mut self, walk: Matches) -> Result<(Matches, Option<Vec<IndexMatch>>), Error> {
        match walk {
            Matches::Local(walk) => {
                let (walk, batch) = self.local_step(walk).await?;
                Ok((Matches::Local(walk), batch))
            }
            Matches::Cluster(mut run) => {
                let asked_at = self.engine.config.runtime.now();
                let batch = run.next_batch().await;
                self.course.spent.replicas_us += micros_between(asked_at, self.engine.config.runtime.now());
                let batch = batch?;
                Ok((Matches::Cluster(run), batch))
            }
        }
    }

    async fn local_step(&mut self, mut walk: SharedWalk) -> Result<(SharedWalk, Option<Vec<IndexMatch>>), Error> {
        let runtime = self.engine.config.runtime.clone();
        let times = JobTimes::queued(&self.engine.slow, &*runtime);
        let times_there = times.clone();
        let work = move || {
            times_there.begin(&*runtime);
            let batch = walk.next_batch();
            (walk, batch)
        };
        let done = self.pool.run_until(self.deadline, work).await;
        times.add_to(&mut self.course.spent, &*self.engine.config.runtime);
        let (walk, batch) = done?;
        Ok((walk, batch?))
    }
}

impl Drop for QueryResults {
    fn drop(&mut self) {
        let now = self.engine.config.runtime.now();
        let took_us = micros_between(self.began, now);
        self.course.end(&self.engine.slow, now);
        self.engine.stats.query_ended(self.outcome == Outcome::Complete, self.found, took_us);
        if self.engine.config.queries.logs {
            // The index stands in the place of the key.
            let ShownKey { bucket_type, bucket, key: index } = ShownKey::in_bucket(&self.bucket, &self.index);
            let outcome = self.outcome.name();
            info!(%bucket_type, %bucket, %index, results = self.found, took_us, outcome, "index query");
        }
    }
}
