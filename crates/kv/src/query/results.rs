//! The results of a query, in batches.

use super::walk::{IndexMatch, QueryWalk};
use crate::engine::Engine;
use ombak_types::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Matches in bounded batches, in order. The work for a batch is done when it is asked for; dropping the results ends it.
pub struct QueryResults {
    engine: Arc<Engine>,
    /// `None` once the query has ended, and while a batch is being made.
    walk: Option<QueryWalk>,
    deadline: Option<Instant>,
    is_full: bool,
}

impl QueryResults {
    pub(crate) fn new(engine: Arc<Engine>, walk: QueryWalk, timeout: Option<Duration>) -> Self {
        let deadline = timeout.and_then(|limit| Instant::now().checked_add(limit));
        Self { engine, walk: Some(walk), deadline, is_full: false }
    }

    /// The next batch, never empty; `None` at the end. An error is the last thing it gives.
    pub async fn next(&mut self) -> Option<Result<Vec<IndexMatch>, Error>> {
        loop {
            let walk = self.walk.take()?;
            match self.step(walk).await {
                Ok((walk, Some(batch))) => {
                    self.is_full = walk.is_full();
                    self.walk = Some(walk);
                    if !batch.is_empty() {
                        return Some(Ok(batch));
                    }
                }
                Ok((walk, None)) => {
                    self.is_full = walk.is_full();
                    return None;
                }
                Err(e) => return Some(Err(e)),
            }
        }
    }

    /// Whether as many matches came as were asked for: a continuation is due, also when nothing follows
    /// (spec/http-api.md, notes on 2i).
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
