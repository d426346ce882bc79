//! Jobs for other threads.

use crate::real::pause_if_due;
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
    /// The deadline passed before the job was done. A job that had not begun is not executed; one
    /// that had begun may go on.
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

/// Who waits for the result of a job beside the future that the caller awaits.
#[derive(Clone, Default)]
pub struct Asker {
    /// When nobody waits any more.
    pub deadline: Option<Instant>,
    /// Whether the one who asked has given up.
    pub has_gone: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Asker {
    /// One who waits until a deadline.
    pub const fn until(deadline: Option<Instant>) -> Self {
        Self { deadline, has_gone: None }
    }

    fn waits(&self, now: Instant) -> bool {
        self.deadline.is_none_or(|at| now < at) && !self.has_gone.as_ref().is_some_and(|has_gone| has_gone())
    }
}

/// Whether a job is still waited for.
pub struct Waited<'a>(&'a (dyn Fn() -> bool + Sync + 'a));

impl Waited<'_> {
    /// Whether somebody still waits.
    pub fn is_on(&self) -> bool {
        (self.0)()
    }

    /// Fails if nobody waits any more. On a thread that gives way, this is also where long work
    /// lets others have the processor.
    pub fn check(&self) -> Result<(), PoolError> {
        pause_if_due();
        if self.is_on() { Ok(()) } else { Err(PoolError::Late) }
    }

    /// A job that is waited for to its end.
    pub const fn always() -> Self {
        Waited(&|| true)
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

    /// A pool over a queue that exists.
    pub(crate) fn over(queue: Arc<dyn JobQueue>, runtime: Arc<dyn Runtime>) -> Self {
        Self { queue, runtime }
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

    /// Runs a job and waits for its result until the deadline. A job that nobody waits for any more
    /// does not begin: the deadline has passed, or the returned future was dropped. A result that
    /// comes later is [`PoolError::Late`].
    pub async fn run_until<T: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        self.run_for(Asker::until(deadline), |_| job()).await
    }

    /// Like [`Pool::run_until`], for a job that takes long: it asks at times whether it is still
    /// waited for, and ends early if not.
    pub async fn run_for<T: Send + 'static>(
        &self,
        asker: Asker,
        job: impl FnOnce(&Waited<'_>) -> T + Send + 'static,
    ) -> Result<T, PoolError> {
        let deadline = asker.deadline;
        let (give, take) = oneshot::channel();
        let runtime = self.runtime.clone();
        self.submit(move || {
            let is_waited_for = || !give.is_closed() && asker.waits(runtime.now());
            let waited = Waited(&is_waited_for);
            let done = waited.is_on().then(|| job(&waited));
            // Sending fails when the caller gave up meanwhile.
            let _ = give.send(done);
        })?;
        let taken = within(&*self.runtime, deadline, take).await.map_err(|_| PoolError::Late)?;
        // The timer of the runtime is coarser than a millisecond, so a job that ended after the
        // deadline can be found ready.
        if deadline.is_some_and(|at| self.runtime.now() >= at) {
            return Err(PoolError::Late);
        }
        taken.map_err(|_| PoolError::Panicked)?.ok_or(PoolError::Late)
    }

    /// Refuses further jobs, and waits until those that were taken are done.
    pub fn stop(&self) {
        self.queue.stop();
    }
}
