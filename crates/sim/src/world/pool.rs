//! Pools: jobs run one after the other, each at a moment that the seed chooses.

use super::event::Event;
use super::host::HostKey;
use super::state::Inner;
use ombak_runtime::{Job, JobQueue, PoolError};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// How long a job waits for a thread, at most.
const JOB_DELAY_NS_MAX: u64 = 300_000;

struct Jobs {
    waiting: VecDeque<Job>,
    is_open: bool,
}

/// The queue of a pool.
pub(crate) struct Pool {
    jobs: Mutex<Jobs>,
    jobs_max: usize,
    number: u64,
}

impl Pool {
    pub(super) fn new(jobs_max: usize, number: u64) -> Arc<Self> {
        let jobs = Jobs { waiting: VecDeque::new(), is_open: true };
        Arc::new(Self { jobs: Mutex::new(jobs), jobs_max, number })
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Takes no jobs any more, and hands out those that wait.
    pub(super) fn close(&self) -> VecDeque<Job> {
        let mut jobs = self.jobs.lock();
        jobs.is_open = false;
        std::mem::take(&mut jobs.waiting)
    }

    /// Executes the job that is next. A panic of a job is a failure of the run.
    pub(super) fn work(&self) {
        let job = self.jobs.lock().waiting.pop_front();
        if let Some(job) = job {
            job();
        }
    }
}

/// A pool as the code on a host sees it.
pub(super) struct PoolHandle {
    pub(super) pool: Arc<Pool>,
    pub(super) world: Weak<Inner>,
    pub(super) on: HostKey,
}

impl JobQueue for PoolHandle {
    fn submit(&self, job: Job) -> Result<(), PoolError> {
        let Some(world) = self.world.upgrade().filter(|world| world.is_alive(self.on)) else {
            return Err(PoolError::Stopped);
        };
        {
            let mut jobs = self.pool.jobs.lock();
            if !jobs.is_open {
                return Err(PoolError::Stopped);
            }
            if jobs.waiting.len() >= self.pool.jobs_max {
                return Err(PoolError::Full);
            }
            jobs.waiting.push_back(job);
        }
        world.schedule_soon(JOB_DELAY_NS_MAX, Event::Job(self.on, self.pool.clone()));
        Ok(())
    }

    /// The jobs that wait are executed at once, because the caller waits for them. Those of a
    /// process that was killed are dropped.
    fn stop(&self) {
        self.pool.jobs.lock().is_open = false;
        let is_alive = self.world.upgrade().is_some_and(|world| world.is_alive(self.on));
        loop {
            let job = self.pool.jobs.lock().waiting.pop_front();
            match job {
                Some(job) if is_alive => job(),
                Some(job) => drop(job),
                None => return,
            }
        }
    }
}

impl Drop for PoolHandle {
    fn drop(&mut self) {
        self.stop();
    }
}
