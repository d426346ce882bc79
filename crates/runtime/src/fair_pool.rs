//! Threads whose jobs are executed by the shares of their tenants, not in the order of coming.

use crate::fair_queue::{FairQueue, Tenant};
use crate::pool::{Job, JobQueue, Pool, PoolError};
use crate::real::pause_after;
use crate::runtime::Runtime;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// Threads that execute next what belongs to the tenant that has had the least time of them.
#[derive(Clone)]
pub struct FairPool {
    shared: Arc<Shared>,
}

struct Shared {
    /// Has a place for each job that waits. Whoever comes to a place executes the job of the tenant
    /// that has had the least.
    places: Arc<dyn JobQueue>,
    waiting: Arc<Waiting>,
    jobs_max: usize,
    runtime: Arc<dyn Runtime>,
}

struct Waiting {
    jobs: Mutex<FairQueue<Job>>,
    runtime: Arc<dyn Runtime>,
}

impl FairPool {
    /// Starts a pool of `threads` threads (at least one) whose queue has room for `jobs_max` jobs.
    pub fn start(runtime: &Arc<dyn Runtime>, name: &str, threads: usize, jobs_max: usize) -> io::Result<Self> {
        // Callers count before they queue, so a few more than `jobs_max` can come at once.
        let places = runtime.start_pool(name, threads, jobs_max.saturating_mul(2))?;
        let waiting = Arc::new(Waiting { jobs: Mutex::default(), runtime: runtime.clone() });
        Ok(Self { shared: Arc::new(Shared { places, waiting, jobs_max, runtime: runtime.clone() }) })
    }

    /// The pool as one tenant uses it.
    pub fn of(&self, tenant: Tenant) -> Pool {
        let queue = Arc::new(OfTenant { tenant, shared: Arc::clone(&self.shared) });
        Pool::over(queue, self.shared.runtime.clone())
    }

    /// Refuses further jobs, and waits until those that were taken are done.
    pub fn stop(&self) {
        self.shared.places.stop();
    }
}

struct OfTenant {
    tenant: Tenant,
    shared: Arc<Shared>,
}

impl JobQueue for OfTenant {
    fn submit(&self, job: Job) -> Result<(), PoolError> {
        let Shared { places, waiting, jobs_max, .. } = &*self.shared;
        let ticket = {
            let mut jobs = waiting.jobs.lock();
            if jobs.len() >= *jobs_max {
                return Err(PoolError::Full);
            }
            jobs.push(self.tenant, job)
        };
        let there = Arc::clone(waiting);
        let refused = places.submit(Box::new(move || there.execute_next())).err();
        let Some(error) = refused else { return Ok(()) };
        let own = waiting.jobs.lock().remove(&ticket);
        if own.is_none() {
            // The job was executed at the place of another one, which has none now.
            waiting.execute_next();
        }
        Err(error)
    }

    fn stop(&self) {
        self.shared.places.stop();
    }
}

impl Waiting {
    fn execute_next(&self) {
        let next = self.jobs.lock().pop();
        let Some((tenant, job)) = next else { return };
        let began = self.runtime.now();
        // The threads survive a job that panics. It costs its tenant nothing.
        job();
        let took = self.runtime.now().saturating_duration_since(began);
        self.jobs.lock().charge(tenant, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        pause_after(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokioRuntime;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn pool(jobs_max: usize) -> FairPool {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        FairPool::start(&runtime, "test", 1, jobs_max).unwrap()
    }

    /// Occupies the only thread of a pool until the returned end is dropped.
    fn occupy(pool: &FairPool, tenant: Tenant) -> std::sync::mpsc::SyncSender<()> {
        let (release, gate) = sync_channel::<()>(0);
        let (started, running) = sync_channel(1);
        let hold = move || {
            started.send(()).unwrap();
            gate.recv().unwrap_err();
        };
        pool.of(tenant).submit(hold).unwrap();
        running.recv_timeout(PATIENCE).unwrap();
        release
    }

    #[test]
    fn a_job_of_another_tenant_does_not_wait_behind_all_jobs_of_one() {
        let pool = pool(1_000);
        let (many, other) = (Tenant { group: 1, member: 0 }, Tenant { group: 2, member: 0 });
        let release = occupy(&pool, many);
        let (tell, told) = sync_channel(200);
        for tenant in std::iter::repeat_n(many, 100).chain([other]) {
            let tell = tell.clone();
            pool.of(tenant).submit(move || tell.send(tenant).unwrap()).unwrap();
        }
        drop(release);
        assert_eq!(told.recv_timeout(PATIENCE), Ok(other));
        assert!((0..100).all(|_| told.recv_timeout(PATIENCE) == Ok(many)));
    }

    #[test]
    fn a_full_queue_refuses_and_a_stopped_one_executes_what_it_took() {
        let pool = pool(2);
        let tenant = Tenant::default();
        let release = occupy(&pool, tenant);
        let (tell, told) = sync_channel(2);
        let jobs = (0..3).map(|number| {
            let tell = tell.clone();
            pool.of(tenant).submit(move || tell.send(number).unwrap())
        });
        assert_eq!(jobs.collect::<Vec<_>>(), [Ok(()), Ok(()), Err(PoolError::Full)]);
        drop(release);
        pool.stop();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(pool.of(tenant).submit(|| ()), Err(PoolError::Stopped));
        assert!(pool.shared.waiting.jobs.lock().is_empty());
    }
}
