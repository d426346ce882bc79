//! The seam for time, randomness, tasks and threads.

use crate::pool::JobQueue;
use crate::task_threads::TaskThreads;
use ombak_types::time::UnixMicros;
use ombak_types::{Error, StoreFailure, StoreFailureKind};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A future without a borrow, ready to be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The world in which a node lives. All parts of one node share one runtime.
pub trait Runtime: Send + Sync {
    /// A time that never goes back, whatever happens to the wall clock.
    fn now(&self) -> Instant;

    /// The time of day. It may jump in both directions.
    fn wall_clock(&self) -> UnixMicros;

    /// Fills a buffer with random bytes that nobody can predict.
    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes>;

    /// Lets a task run beside its caller until it ends. The task must be quick between its awaits:
    /// it shares its thread with connections.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// The number of the thread on which the calling task runs and stays: from 1 on for threads
    /// that serve connections, and 0 where tasks move between threads or there is only one. Tasks
    /// with the same number wake each other without a system call.
    fn thread_number(&self) -> usize {
        0
    }

    /// Like [`Runtime::spawn`], on the thread with this number. A number beyond the last thread
    /// stands for one of them. Without such threads the task runs where the caller runs.
    fn spawn_on(&self, _thread_number: usize, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }

    /// Lets the calling thread give way to all others that want the processor, from now on. A world
    /// in which one thread does everything ignores it.
    fn give_way(&self) {
        crate::give_way();
    }

    /// Lets the calling thread work in bursts from now on ([`crate::pause_if_due`]), without giving
    /// way otherwise. A world in which one thread does everything ignores it.
    fn work_in_bursts(&self) {
        crate::work_in_bursts();
    }

    /// Completes at `at`, at the earliest.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;

    /// Starts `threads` threads (at least one) that execute the jobs of one queue, in its order.
    /// The queue refuses a job when `jobs_max` jobs wait.
    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>>;

    /// Like [`Runtime::start_pool`], for jobs that no get or put of a client waits for. Where the
    /// system can do so, the threads come behind those with requests of clients.
    fn start_background_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        self.start_pool(name, threads, jobs_max)
    }

    /// Starts `threads` threads (at least one) for tasks that no get or put of a client waits for.
    /// Where the system can do so, the threads give way to all others that want the processor. A
    /// world without such threads has an error.
    fn start_background_threads(&self, _name: &str, _threads: usize) -> io::Result<Arc<dyn TaskThreads>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Starts a thread that calls `round` again and again, with a pause of `interval` before each
    /// call, until the returned handle is stopped or dropped.
    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>>;
}

/// A handle on work that repeats. Dropping it stops the work, too.
pub trait Periodic: Send + Sync {
    /// Stops the work, and waits for a round that is under way.
    fn stop(&self);
}

/// The source of random bytes failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the machine gives no random bytes: {0}")]
pub struct NoRandomBytes(pub String);

impl From<NoRandomBytes> for Error {
    fn from(error: NoRandomBytes) -> Self {
        StoreFailure::new(StoreFailureKind::Io, error.to_string()).into()
    }
}

impl From<NoRandomBytes> for io::Error {
    fn from(error: NoRandomBytes) -> Self {
        Self::other(error.0)
    }
}

/// What every runtime can do on top of [`Runtime`].
pub trait RuntimeExt: Runtime {
    /// A random number.
    fn random_u64(&self) -> Result<u64, NoRandomBytes> {
        let mut bytes = [0; 8];
        self.fill_random(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Completes after `duration`, at the earliest.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.now() + duration)
    }
}

impl<R: Runtime + ?Sized> RuntimeExt for R {}
