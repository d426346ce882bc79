//! The work of this node on parts of jobs.

mod kept;
mod keys;
mod mapping;
mod reading;
mod reducing;
mod results;
mod scripts;

use crate::JobsConfig;
use crate::counts::JobCounts;
use crate::part::{PartAnswer, PartClient, PartError, PartRequest};
use kept::KeptKeys;
use keys::PieceKeys;
use ombak_kv::Kv;
use ombak_mapreduce::{Failure, Reducer};
use ombak_runtime::{BoxFuture, Pool, PoolError, Runtime, within};
use ombak_stats::ActiveGuard;
use ombak_types::etf::Term;
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use parking_lot::Mutex;
use results::Results;
use scripts::OpenFunctions;
use std::future::ready;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many keys are read and mapped together, at most.
const KEYS_AT_ONCE_MAX: usize = 32;
/// How many jobs wait for the threads. There are never more than parts and reduce calls under way.
const POOL_JOBS_MAX: usize = 4096;

/// This node as one that works on parts. Cheap to clone: clones share everything.
#[derive(Clone)]
pub struct LocalParts {
    inner: Arc<Inner>,
}

struct Inner {
    kv: Kv,
    runtime: Arc<dyn Runtime>,
    config: JobsConfig,
    counts: Arc<JobCounts>,
    /// The threads. They begin with the first work.
    pool: Mutex<Option<Pool>>,
    turns: Semaphore,
    kept: Mutex<KeptKeys>,
    functions: OpenFunctions,
}

impl LocalParts {
    pub(crate) fn new(kv: Kv, runtime: Arc<dyn Runtime>, config: JobsConfig, counts: Arc<JobCounts>) -> Self {
        let turns = Semaphore::new(config.parts_at_once_max.max(1));
        let (pool, kept) = (Mutex::new(None), Mutex::new(KeptKeys::default()));
        let functions = OpenFunctions::default();
        Self { inner: Arc::new(Inner { kv, runtime, config, counts, pool, turns, kept, functions }) }
    }

    /// Calls the function of a reduce phase.
    pub(crate) async fn reduce(
        &self,
        (job, number): (u128, usize),
        function: &Reducer,
        arg: &Term,
        values: Vec<Term>,
        deadline: Instant,
    ) -> Result<Vec<Term>, Failure> {
        let reduced = reducing::reduce(&self.inner, (job, number), function, arg, values, deadline).await;
        reduced.map_err(|error| match error {
            PartError::Failed(failure) => failure,
            PartError::Lost(error) => Failure::Other(error.to_string()),
        })
    }
}

impl PartClient for LocalParts {
    fn piece(&self, request: PartRequest) -> BoxFuture<'static, Result<PartAnswer, PartError>> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.piece(request).await })
    }

    fn end_job(&self, job: u128) -> BoxFuture<'static, ()> {
        self.inner.kept.lock().forget(job);
        self.inner.functions.forget(job);
        Box::pin(ready(()))
    }
}

impl Inner {
    async fn piece(&self, request: PartRequest) -> Result<PartAnswer, PartError> {
        let _turn = self.turn(request.deadline).await?;
        let _active = ActiveGuard::new(&self.counts.pieces_active);
        let _maps = request.map.is_some().then(|| ActiveGuard::new(&self.counts.maps_active));
        let until = (self.runtime.now() + self.config.piece_time_max).min(request.deadline);
        let mut keys = PieceKeys::open(self, &request).await?;
        let mut results = Results::new(&request, self.config.piece_bytes_max);
        while let Some(inputs) = keys.next(KEYS_AT_ONCE_MAX) {
            let (values, done) = self.map(&request, inputs).await?;
            keys.done(done);
            results.add(self, values).await?;
            if results.is_full() || self.runtime.now() >= until {
                break;
            }
        }
        let results = results.finish(self).await?;
        self.counts.pieces.add(1);
        Ok(PartAnswer { results, from: keys.end(self, &request) })
    }

    /// Waits until this node works on less.
    async fn turn(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, PartError> {
        let _waiting = ActiveGuard::new(&self.counts.pieces_waiting);
        let turn = within(&*self.runtime, Some(deadline), Box::pin(self.turns.acquire())).await;
        let turn = turn.map_err(|_| PartError::Failed(Failure::Timeout))?;
        turn.map_err(|_| PartError::Lost(Error::Stopping))
    }

    /// Runs work that may block, or that takes long, on the threads for jobs.
    async fn on_thread<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PartError> {
        let pool = self.pool().map_err(PartError::Lost)?;
        pool.run_until(Some(deadline), work).await.map_err(|error| match error {
            PoolError::Late => PartError::Failed(Failure::Timeout),
            other => PartError::Lost(other.into()),
        })
    }

    fn pool(&self) -> Result<Pool, Error> {
        let mut pool = self.pool.lock();
        if let Some(pool) = &*pool {
            return Ok(pool.clone());
        }
        let started = Pool::start_background(&self.runtime, "ombak-job", self.config.threads, POOL_JOBS_MAX);
        let started = started.map_err(|error| {
            StoreFailure::new(StoreFailureKind::Io, format!("cannot create threads for jobs: {error}"))
        })?;
        Ok(pool.insert(started).clone())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.get_mut() {
            pool.stop();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
