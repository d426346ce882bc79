//! The runtime of a real node.

use super::background_threads::BackgroundThreads;
use super::periodic_thread::PeriodicThread;
use super::thread_pool::ThreadPool;
use crate::pool::JobQueue;
use crate::runtime::{BoxFuture, NoRandomBytes, Periodic, Runtime};
use crate::task_threads::TaskThreads;
use ombak_types::time::UnixMicros;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The machine's clocks and random source, threads of the system, and the tasks and timers of the
/// tokio runtime in which the caller runs. [`Runtime::spawn`] and [`Runtime::sleep_until`] need
/// such a runtime with time enabled; the rest does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioRuntime;

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        Instant::now()
    }

    #[expect(clippy::disallowed_methods, reason = "everything above this crate gets the time of day from here")]
    fn wall_clock(&self) -> UnixMicros {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMicros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        getrandom::fill(bytes).map_err(|e| NoRandomBytes(e.to_string()))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep_until(at.into()))
    }

    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        Ok(Arc::new(ThreadPool::start(name, threads, jobs_max, false)?))
    }

    fn start_background_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        Ok(Arc::new(ThreadPool::start(name, threads, jobs_max, true)?))
    }

    fn start_background_threads(&self, name: &str, threads: usize) -> io::Result<Arc<dyn TaskThreads>> {
        Ok(Arc::new(BackgroundThreads::start(name, threads)?))
    }

    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        Ok(Box::new(PeriodicThread::start(name, interval, round)?))
    }
}
