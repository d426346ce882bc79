//! Threads whose jobs are executed by the shares of their tenants, not in the order of coming.

use crate::fair_queue::{FairQueue, Tenant};
use crate::pool::{Job, JobQueue, Pool, PoolError};
use crate::real::{pause_after, pause_at_most};
use crate::runtime::Runtime;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads that execute next what belongs to the tenant that has had the least time of them.
#[derive(Clone)]
pub struct FairPool {
    shared: Arc<Shared>,
}

/// What a pool is.
pub struct FairPoolConfig {
    /// The name of its threads.
    pub name: &'static str,
    /// The number of threads, at least one.
    pub threads: usize,
    /// How many jobs may wait. Further ones are refused.
    pub jobs_max: usize,
    /// Whether the threads come behind those with requests of clients.
    pub comes_behind: bool,
    /// How long a thread pauses at most after a burst of work, if the machine is busy.
    pub pause_max: Duration,
    /// Who hears how long jobs wait and take.
    pub times: Option<Arc<dyn PoolTimes>>,
}

/// Hears how long the jobs of a pool wait and take.
pub trait PoolTimes: Send + Sync {
    /// A job that did not panic has ended.
    fn ended(&self, waited: Duration, worked: Duration);

    /// A job was refused, because too many wait.
    fn refused(&self);
}

struct Shared {
    /// Has a place for each job that waits. Whoever comes to a place executes the job of the tenant
    /// that has had the least.
    places: Arc<dyn JobQueue>,
    waiting: Arc<Waiting>,
    jobs_max: usize,
    runtime: Arc<dyn Runtime>,
}

/// The lock is that of the standard library, for the reason that `real/thread_pool.rs` gives.
struct Waiting {
    /// The jobs, with the time since when they wait.
    jobs: Mutex<FairQueue<(Instant, Job)>>,
    times: Option<Arc<dyn PoolTimes>>,
    pause_max: Duration,
    runtime: Arc<dyn Runtime>,
}

impl FairPool {
    /// Starts a pool.
    pub fn start(runtime: &Arc<dyn Runtime>, config: FairPoolConfig) -> io::Result<Self> {
        let FairPoolConfig { name, threads, jobs_max, comes_behind, pause_max, times } = config;
        // Callers count before they queue, so a few more than `jobs_max` can come at once.
        let places_max = jobs_max.saturating_mul(2);
        let places = if comes_behind {
            runtime.start_background_pool(name, threads, places_max)?
        } else {
            runtime.start_pool(name, threads, places_max)?
        };
        let waiting = Arc::new(Waiting { jobs: Mutex::default(), times, pause_max, runtime: runtime.clone() });
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
        let now = waiting.runtime.now();
        let ticket = {
            let mut jobs = waiting.jobs();
            (jobs.len() < *jobs_max).then(|| jobs.push(self.tenant, (now, job)))
        };
        let Some(ticket) = ticket else {
            waiting.times.iter().for_each(|times| times.refused());
            return Err(PoolError::Full);
        };
        let is_taken = Arc::new(AtomicBool::new(false));
        let place = Place { waiting: Arc::clone(waiting), is_taken: Arc::clone(&is_taken), is_used: false };
        let Err(error) = places.submit(Box::new(move || place.execute())) else {
            is_taken.store(true, Ordering::SeqCst);
            return Ok(());
        };
        let own = waiting.jobs().remove(&ticket);
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

/// The place of a job in the queue of the threads. If that queue drops it, a job goes with it: what
/// a job holds may own the pool, and would never be dropped.
struct Place {
    waiting: Arc<Waiting>,
    /// Whether the queue has taken the place. Otherwise its caller removes the job.
    is_taken: Arc<AtomicBool>,
    is_used: bool,
}

impl Place {
    fn execute(mut self) {
        self.is_used = true;
        self.waiting.execute_next();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_used && self.is_taken.load(Ordering::SeqCst) {
            // The lock is free again before the job is dropped.
            let dropped = self.waiting.jobs().pop();
            drop(dropped);
        }
    }
}

impl Waiting {
    fn jobs(&self) -> MutexGuard<'_, FairQueue<(Instant, Job)>> {
        // No job runs while the lock is held, so a panic of one leaves nothing half done.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn execute_next(&self) {
        let next = self.jobs().pop();
        let Some((tenant, (since, job))) = next else { return };
        let began = self.runtime.now();
        // Long jobs pause within, and not only at their ends.
        self.runtime.work_in_bursts();
        pause_at_most(self.pause_max);
        // The threads survive a job that panics. It costs its tenant nothing.
        job();
        let took = self.runtime.now().saturating_duration_since(began);
        self.jobs().charge(tenant, u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        self.times.iter().for_each(|times| times.ended(began.saturating_duration_since(since), took));
        pause_after(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PAUSE_MAX, TokioRuntime};
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn pool(jobs_max: usize) -> FairPool {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        FairPool::start(&runtime, config(jobs_max, None)).unwrap()
    }

    fn config(jobs_max: usize, times: Option<Arc<dyn PoolTimes>>) -> FairPoolConfig {
        FairPoolConfig { name: "test", threads: 1, jobs_max, comes_behind: false, pause_max: PAUSE_MAX, times }
    }

    #[derive(Default)]
    struct Seen {
        ended: Mutex<Vec<(Duration, Duration)>>,
        refused: std::sync::atomic::AtomicUsize,
    }

    impl PoolTimes for Seen {
        fn ended(&self, waited: Duration, worked: Duration) {
            self.ended.lock().unwrap().push((waited, worked));
        }

        fn refused(&self) {
            self.refused.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    }

    fn spend(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {}
    }

    #[test]
    fn it_is_told_how_long_jobs_wait_and_take_and_which_are_refused() {
        const WAIT: Duration = Duration::from_millis(30);
        let seen = Arc::new(Seen::default());
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let pool = FairPool::start(&runtime, config(1, Some(seen.clone()))).unwrap();
        let release = occupy(&pool, Tenant::default());
        pool.of(Tenant::default()).submit(|| spend(WAIT)).unwrap();
        assert_eq!(pool.of(Tenant::default()).submit(|| ()), Err(PoolError::Full));
        spend(2 * WAIT);
        drop(release);
        pool.stop();
        let ended = std::mem::take(&mut *seen.ended.lock().unwrap());
        let [first, second] = ended[..] else { panic!("two jobs ended: {ended:?}") };
        assert!(first.1 >= 2 * WAIT && second.0 >= 2 * WAIT, "the second one waited for the first: {ended:?}");
        assert!(second.1 >= WAIT, "{ended:?}");
        assert_eq!(seen.refused.load(std::sync::atomic::Ordering::SeqCst), 1);
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
        assert!(pool.shared.waiting.jobs().is_empty());
    }

    /// A queue of jobs that nobody executes.
    #[derive(Default)]
    struct Dropped(Mutex<Vec<Job>>);

    impl JobQueue for Dropped {
        fn submit(&self, job: Job) -> Result<(), PoolError> {
            self.0.lock().unwrap().push(job);
            Ok(())
        }

        fn stop(&self) {
            let dropped = std::mem::take(&mut *self.0.lock().unwrap());
            drop(dropped);
        }
    }

    /// A machine that loses its power ends threads like this.
    #[test]
    fn jobs_go_with_the_places_that_the_threads_drop() {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let places = Arc::new(Dropped::default());
        let waiting =
            Arc::new(Waiting { jobs: Mutex::default(), times: None, pause_max: PAUSE_MAX, runtime: runtime.clone() });
        let pool = FairPool { shared: Arc::new(Shared { places: places.clone(), waiting, jobs_max: 9, runtime }) };
        let held = Arc::new(());
        for _ in 0..3 {
            let held = Arc::clone(&held);
            pool.of(Tenant::default()).submit(move || drop(held)).unwrap();
        }
        assert_eq!(Arc::strong_count(&held), 4);
        places.stop();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(pool.shared.waiting.jobs().is_empty());
    }
}
