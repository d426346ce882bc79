//! A runtime with other clocks, for tests that set the time.

use crate::pool::JobQueue;
use crate::runtime::{BoxFuture, NoRandomBytes, Periodic, Runtime};
use crate::task_threads::TaskThreads;
use ombak_types::time::UnixMicros;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Clock<T> = Box<dyn Fn() -> T + Send + Sync>;

/// A runtime that replaces clocks of another one. Its timers still run by the clock of that other
/// runtime.
pub struct OtherClocks {
    inner: Arc<dyn Runtime>,
    wall_clock: Option<Clock<UnixMicros>>,
    monotonic_clock: Option<Clock<Instant>>,
}

impl OtherClocks {
    /// A runtime with the clocks of `inner`.
    pub fn of(inner: Arc<dyn Runtime>) -> Self {
        Self { inner, wall_clock: None, monotonic_clock: None }
    }

    /// Replaces the time of day.
    pub fn with_wall_clock(self, clock: impl Fn() -> UnixMicros + Send + Sync + 'static) -> Self {
        Self { wall_clock: Some(Box::new(clock)), ..self }
    }

    /// Replaces the time that never goes back.
    pub fn with_monotonic_clock(self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self { monotonic_clock: Some(Box::new(clock)), ..self }
    }
}

impl Runtime for OtherClocks {
    fn now(&self) -> Instant {
        self.monotonic_clock.as_ref().map_or_else(|| self.inner.now(), |clock| clock())
    }

    fn wall_clock(&self) -> UnixMicros {
        self.wall_clock.as_ref().map_or_else(|| self.inner.wall_clock(), |clock| clock())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        self.inner.fill_random(bytes)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.inner.spawn(task);
    }

    fn thread_number(&self) -> usize {
        self.inner.thread_number()
    }

    fn spawn_on(&self, thread_number: usize, task: BoxFuture<'static, ()>) {
        self.inner.spawn_on(thread_number, task);
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let left = at.saturating_duration_since(self.now());
        self.inner.sleep_until(self.inner.now() + left)
    }

    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        self.inner.start_pool(name, threads, jobs_max)
    }

    fn start_background_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        self.inner.start_background_pool(name, threads, jobs_max)
    }

    fn start_background_threads(&self, name: &str, threads: usize) -> io::Result<Arc<dyn TaskThreads>> {
        self.inner.start_background_threads(name, threads)
    }

    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        self.inner.start_periodic(name, interval, round)
    }
}
