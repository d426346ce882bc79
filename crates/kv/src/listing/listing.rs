//! A listing of keys or buckets, in batches.

use super::walk::{ENTRIES_MAX, ListWalk};
use crate::coverage::NamesRun;
use crate::engine::{Engine, WorkClass};
use crate::slow::{Course, JobTimes, micros_between};
use bytes::Bytes;
use ombak_runtime::Pool;
use ombak_types::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names in bounded batches. Each batch is read when the caller asks for it, so a slow reader
/// occupies no thread. Dropping the listing ends it.
pub struct Listing {
    engine: Arc<Engine>,
    /// `None` after the listing has ended, and while a batch is being read.
    walk: Option<Walk>,
    deadline: Option<Instant>,
    /// The threads that read the stores, as this listing has its share of them.
    pool: Pool,
    course: Course,
}

/// Where the names come from.
pub(crate) enum Walk {
    /// The stores of this node, which is alone.
    Local(ListWalk),
    /// The nodes of a cluster.
    Cluster(Box<NamesRun>),
}

impl Listing {
    /// A listing that begins now. The course has begun with it.
    pub(crate) fn new(engine: Arc<Engine>, walk: Walk, timeout: Option<Duration>, course: Course) -> Self {
        engine.stats.list_started();
        let deadline = timeout.and_then(|limit| engine.config.runtime.now().checked_add(limit));
        let pool = engine.work_pools.of(WorkClass::Listing, engine.listing_tenant(0));
        Self { engine, walk: Some(walk), deadline, pool, course }
    }

    /// Lets the listing share the threads that read the stores with all listings of a group, such
    /// as a client's address. Without a group, it shares them with all that have none.
    #[must_use]
    pub fn in_group(mut self, group: u64) -> Self {
        self.pool = self.engine.work_pools.of(WorkClass::Listing, self.engine.listing_tenant(group));
        self
    }

    /// Returns the next batch, which is never empty; `None` at the end. After an error the listing
    /// has ended.
    pub async fn next(&mut self) -> Option<Result<Vec<Bytes>, Error>> {
        self.course.goes_on(self.engine.config.runtime.now());
        let next = self.next_batch().await;
        self.course.rests(self.engine.config.runtime.now(), &next);
        next
    }

    async fn next_batch(&mut self) -> Option<Result<Vec<Bytes>, Error>> {
        loop {
            let walk = self.walk.take()?;
            match self.step(walk).await {
                Ok((walk, Some(batch))) => {
                    self.walk = Some(walk);
                    if !batch.is_empty() {
                        return Some(Ok(batch));
                    }
                }
                Ok((_, None)) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }

    async fn step(&mut self, walk: Walk) -> Result<(Walk, Option<Vec<Bytes>>), Error> {
        match walk {
            Walk::Local(walk) => {
                let (walk, batch) = self.local_step(walk).await?;
                Ok((Walk::Local(walk), batch))
            }
            Walk::Cluster(mut run) => {
                let asked_at = self.engine.config.runtime.now();
                let batch = run.next_batch().await;
                self.course.spent.replicas_us += micros_between(asked_at, self.engine.config.runtime.now());
                let batch = batch?;
                Ok((Walk::Cluster(run), batch))
            }
        }
    }

    async fn local_step(&mut self, mut walk: ListWalk) -> Result<(ListWalk, Option<Vec<Bytes>>), Error> {
        let runtime = self.engine.config.runtime.clone();
        let times = JobTimes::queued(&self.engine.slow, &*runtime);
        let times_there = times.clone();
        let work = move || {
            times_there.begin(&*runtime);
            let batch = walk.next_batch(&mut { ENTRIES_MAX });
            (walk, batch)
        };
        let done = self.pool.run_until(self.deadline, work).await;
        times.add_to(&mut self.course.spent, &*self.engine.config.runtime);
        let (walk, batch) = done?;
        if walk.is_full() {
            return Err(Error::Overload);
        }
        Ok((walk, batch?))
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.engine.stats.list_ended();
        self.course.end(&self.engine.slow, self.engine.config.runtime.now());
    }
}
