//! Threads that wait for disks instead of the network threads.

use super::burst::begin_burst;
use super::give_way::come_behind;
use crate::pool::{Job, JobQueue, PoolError};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use tracing::error;

struct Jobs {
    waiting: VecDeque<Job>,
    open: bool,
}

/// The lock is that of the standard library, which a waiting thread never owns before it runs.
/// parking_lot hands its locks over to the thread that has waited longest. If that thread gives way
/// to others, the lock stays closed until it runs, and network threads would wait to submit a job.
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
    jobs_max: usize,
}

/// A fixed number of threads behind a bounded queue.
pub(super) struct ThreadPool {
    queue: Arc<Queue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl ThreadPool {
    /// `comes_behind`: the threads come behind those with requests of clients ([`come_behind`]).
    pub(super) fn start(name: &str, threads: usize, jobs_max: usize, comes_behind: bool) -> io::Result<Self> {
        let jobs = Mutex::new(Jobs { waiting: VecDeque::new(), open: true });
        let queue = Arc::new(Queue { jobs, changed: Condvar::new(), jobs_max });
        let pool = Self { queue, threads: Mutex::new(Vec::new()) };
        for i in 0..threads.max(1) {
            let queue = pool.queue.clone();
            let work = move || {
                if comes_behind {
                    come_behind();
                }
                queue.work();
            };
            let thread = thread::Builder::new().name(format!("{name}-{i}")).spawn(work)?;
            lock(&pool.threads).push(thread);
        }
        Ok(pool)
    }
}

impl JobQueue for ThreadPool {
    fn submit(&self, job: Job) -> Result<(), PoolError> {
        let mut jobs = lock(&self.queue.jobs);
        if !jobs.open {
            return Err(PoolError::Stopped);
        }
        if jobs.waiting.len() >= self.queue.jobs_max {
            return Err(PoolError::Full);
        }
        jobs.waiting.push_back(job);
        drop(jobs);
        self.queue.changed.notify_one();
        Ok(())
    }

    fn stop(&self) {
        lock(&self.queue.jobs).open = false;
        self.queue.changed.notify_all();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads.into_iter().filter(|t| t.thread().id() != thread::current().id()) {
            // A job that panicked was already caught and logged.
            let _ = thread.join();
        }
    }
}

/// No job runs while a lock is held, so a panic of one leaves nothing half done.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for ThreadPool {
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
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            if !jobs.open {
                return None;
            }
            jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            // A thread that has waited for work need not pause at once.
            begin_burst();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Asker, Pool, PoolError, Runtime, TokioRuntime};
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    fn pool(jobs_max: usize) -> Pool {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        Pool::start(&runtime, "test", 1, jobs_max).unwrap()
    }

    #[tokio::test]
    async fn runs_jobs_and_survives_a_panic() {
        let pool = pool(8);
        let broken: Result<(), PoolError> = pool.run(|| panic!("on purpose")).await;
        assert_eq!(broken, Err(PoolError::Panicked));
        assert_eq!(pool.run(|| 7).await, Ok(7));
        pool.stop();
        assert_eq!(pool.run(|| 7).await, Err(PoolError::Stopped));
    }

    #[tokio::test]
    async fn a_result_after_the_deadline_is_late() {
        let pool = pool(8);
        let now = TokioRuntime.now();
        assert_eq!(pool.run_until(Some(now + Duration::from_secs(600)), || 7).await, Ok(7));
        assert_eq!(pool.run_until(None, || 7).await, Ok(7));
        assert_eq!(pool.run_until(Some(now), || 7).await, Err(PoolError::Late));
    }

    /// A job whose result nobody takes must not hold up the jobs behind it.
    #[tokio::test]
    async fn a_job_that_nobody_waits_for_does_not_begin() {
        let pool = pool(8);
        let (release, gate) = sync_channel::<()>(1);
        let (started, running) = sync_channel(1);
        pool.submit(move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
        })
        .unwrap();
        running.recv().unwrap();
        let (begun, log) = sync_channel(8);
        let job = |name: &'static str| {
            let begun = begun.clone();
            move || begun.send(name).unwrap()
        };
        let soon = TokioRuntime.now() + Duration::from_millis(20);
        assert_eq!(pool.run_until(Some(soon), job("late")).await, Err(PoolError::Late));
        let mut dropped = Box::pin(pool.run_until(None, job("dropped")));
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut dropped).await.is_err());
        drop(dropped);
        let gone = Asker { deadline: None, has_gone: Some(Arc::new(|| true)) };
        let (sent, left) = (job("sent"), job("waited for"));
        let given_up = pool.run_for(gone, move |_| sent());
        let waited_for = pool.run_until(None, left);
        let both = async { tokio::join!(given_up, waited_for) };
        release.send(()).unwrap();
        assert_eq!(both.await, (Err(PoolError::Late), Ok(())));
        assert_eq!(log.try_iter().collect::<Vec<_>>(), ["waited for"]);
    }

    /// A job that takes long hears that nobody waits for it any more.
    #[tokio::test]
    async fn a_job_that_has_begun_can_end_early() {
        let pool = pool(8);
        let (started, running) = sync_channel(1);
        let (ended, end) = sync_channel(1);
        let job = pool.run_for(Asker::default(), move |waited| {
            started.send(()).unwrap();
            while waited.check().is_ok() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        });
        let mut job = Box::pin(job);
        while running.try_recv().is_err() {
            assert!(tokio::time::timeout(Duration::from_millis(1), &mut job).await.is_err());
        }
        drop(job);
        end.recv().unwrap();
    }

    #[test]
    fn a_full_queue_refuses() {
        let pool = pool(1);
        let (release, gate) = sync_channel::<()>(1);
        let (started, running) = sync_channel(1);
        pool.submit(move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
        })
        .unwrap();
        running.recv().unwrap();
        assert_eq!(pool.submit(|| ()), Ok(()));
        assert_eq!(pool.submit(|| ()), Err(PoolError::Full));
        release.send(()).unwrap();
    }
}
