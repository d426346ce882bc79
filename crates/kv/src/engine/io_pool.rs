//! Threads that wait for disks instead of the network threads.

use crate::start::OpenError;
use ombak_types::{Error, StoreFailure};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tokio::sync::oneshot;
use tokio::time::timeout_at;
use tracing::error;

type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    changed: Condvar,
    jobs_max: usize,
}

/// A fixed number of threads behind a bounded queue.
pub(crate) struct IoPool {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl IoPool {
    /// Starts `threads` threads (at least one). The pool refuses a job when `jobs_max` jobs wait.
    pub(crate) fn start(name: &str, threads: usize, jobs_max: usize) -> Result<Self, OpenError> {
        let queue = Arc::new(Queue { jobs: Mutex::new((VecDeque::new(), true)), changed: Condvar::new(), jobs_max });
        let pool = Self { queue, threads: Mutex::new(Vec::new()) };
        for i in 0..threads.max(1) {
            let queue = pool.queue.clone();
            let thread = thread::Builder::new().name(format!("{name}-{i}")).spawn(move || queue.work());
            let thread = thread.map_err(|source| OpenError::System { what: "another thread", source })?;
            pool.threads.lock().push(thread);
        }
        Ok(pool)
    }

    /// Queues a job for one of the threads. Fails with [`Error::Overload`] when the queue is full.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let mut jobs = self.queue.jobs.lock();
        if !jobs.1 {
            return Err(Error::Stopping);
        }
        if jobs.0.len() >= self.queue.jobs_max {
            return Err(Error::Overload);
        }
        jobs.0.push_back(Box::new(job));
        self.queue.changed.notify_one();
        Ok(())
    }

    /// Runs a job and waits for its result.
    pub(crate) async fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let (give, take) = oneshot::channel();
        self.submit(move || {
            // Sending fails when the caller gave up; the job was executed nevertheless.
            let _ = give.send(job());
        })?;
        take.await.map_err(|_| StoreFailure::internal("the operation broke down; the log says where").into())
    }

    /// Runs a job and waits for its result until the deadline. A result that comes later is
    /// [`Error::Timeout`]; the job was executed nevertheless.
    pub(crate) async fn run_until<T: Send + 'static>(
        &self,
        deadline: Option<Instant>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let running = self.run(job);
        let result = match deadline {
            None => running.await?,
            Some(at) => timeout_at(at.into(), running).await.map_err(|_| Error::Timeout)??,
        };
        // The runtime's timer is coarser than a millisecond, so it can accept a job that ended after
        // the deadline.
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Err(Error::Timeout);
        }
        Ok(result)
    }

    /// Executes the queued jobs and ends the threads.
    pub(crate) fn stop(&self) {
        self.queue.jobs.lock().1 = false;
        self.queue.changed.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads.into_iter().filter(|t| t.thread().id() != thread::current().id()) {
            // A job that panicked was already caught and logged.
            let _ = thread.join();
        }
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Queue {
    fn work(&self) {
        while let Some(job) = self.next() {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                error!("a job of the I/O threads panicked");
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.0.pop_front() {
                return Some(job);
            }
            if !jobs.1 {
                return None;
            }
            self.changed.wait(&mut jobs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runs_jobs_and_survives_a_panic() {
        let pool = IoPool::start("test", 1, 8).unwrap();
        let broken: Result<(), Error> = pool.run(|| panic!("on purpose")).await;
        assert!(matches!(broken, Err(Error::Storage(_))));
        assert_eq!(pool.run(|| 7).await, Ok(7));
        pool.stop();
        assert_eq!(pool.run(|| 7).await, Err(Error::Stopping));
    }

    #[test]
    fn a_full_queue_refuses() {
        let pool = IoPool::start("test", 1, 1).unwrap();
        let (release, gate) = std::sync::mpsc::sync_channel::<()>(1);
        let (started, running) = std::sync::mpsc::sync_channel(1);
        pool.submit(move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
        })
        .unwrap();
        running.recv().unwrap();
        assert_eq!(pool.submit(|| ()), Ok(()));
        assert_eq!(pool.submit(|| ()), Err(Error::Overload));
        release.send(()).unwrap();
    }
}
