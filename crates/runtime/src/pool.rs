//! Jobs for other threads.

use crate::runtime::Runtime;
use crate::time_limit::within;
use ombak_types::{Error, StoreFailure};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// Work for another thread. It may block.
pub type Job = Box<dyn FnOnce() + Send>;

/// Threads behind one bounded queue.
pub trait JobQueue: Send + Sync {
    /// Queues a job. A job that was taken is executed, also when the queue is stopped.
    fn submit(&self, job: Job) -> Result<(), PoolError>;

    /// Refuses further jobs, and waits until those that were taken are done.
    fn stop(&self);
}

/// Why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The queue is full. The job will never be executed.
    #[error("the queue of jobs is full")]
    Full,
    /// The queue takes no more jobs. The job will never be executed.
    #[error("the queue of jobs is stopped")]
    Stopped,
    /// The job panicked.
    #[error("the job panicked; the log says where")]
    Panicked,
    /// The deadline passed before the job was done. It is executed nevertheless.
    #[error("the job was not done in time")]
    Late,
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Full => Self::Overload,
            PoolError::Stopped => Self::Stopping,
            PoolError::Panicked => StoreFailure::internal("the operation broke down; the log says where").into(),
            PoolError::Late => Self::Timeout,
        }
    }
}

/// A queue of jobs whose results the caller awaits.
#[derive(Clone)]
pub struct Pool {
    queue: Arc<dyn JobQueue>,
    runtime: Arc<dyn Runtime>,
}

impl Pool {
    /// Starts a pool of `threads` threads (at least one) whose queue has room for `jobs_max` jobs.
    pub fn start(runtime: &Arc<dyn Runtime>, name: &str, threads: usize, jobs_max: usize) -> std::io::Result<Self> {
        let queue = runtime.start_pool(name, threads, jobs_max)?;
        Ok(Self { queue, runtime: runtime.clone() })
    }

    /// Queues a job without waiting for it.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), PoolError> {
        self.queue.submit(Box::new(job))
    }

    /// Runs a job and waits for its result.
    pub async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, PoolError> {
        let (give, take) = oneshot::channel();
        self.submit(move || {
            // Sending fails when the caller gave up; the job was executed nevertheless.
            let _ = give.send(job());
        })?;
        take.await.map_err(|_| PoolError::Panicked)
    }

    /// Runs a job and waits for its result until the deadline. A result that comes later is
    /// [`PoolError::Late`].
    pub async fn run_until<T: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let result = within(&*self.runtime, deadline, self.run(job)).await.map_err(|_| PoolError::Late)??;
        // The timer of the runtime is coarser than a millisecond, so a job that ended after the
        // deadline can be found ready.
        if deadline.is_some_and(|at| self.runtime.now() >= at) {
            return Err(PoolError::Late);
        }
        Ok(result)
    }

    /// Refuses further jobs, and waits until those that were taken are done.
    pub fn stop(&self) {
        self.queue.stop();
    }
}
