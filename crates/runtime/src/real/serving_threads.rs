//! A real node that serves its connections on threads of their own.

use super::tokio_runtime::TokioRuntime;
use crate::pool::JobQueue;
use crate::runtime::{BoxFuture, NoRandomBytes, Periodic, Runtime};
use crate::task_threads::TaskThreads;
use ombak_types::time::UnixMicros;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

thread_local! {
    static THREAD_NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// Gives the calling thread its number among those that serve connections, from 1 on. The runtime
/// of the thread must not move tasks to other threads.
pub fn number_this_thread(number: usize) {
    THREAD_NUMBER.set(number);
}

/// The number of the calling thread, or 0.
pub(super) fn number_of_this_thread() -> usize {
    THREAD_NUMBER.get()
}

/// [`TokioRuntime`], and threads that serve connections. Each of them has a tokio runtime of its
/// own.
pub struct ServingThreads {
    threads: Vec<Handle>,
}

impl ServingThreads {
    /// `threads` are those with the numbers 1, 2 and so on.
    pub const fn new(threads: Vec<Handle>) -> Self {
        Self { threads }
    }
}

impl Runtime for ServingThreads {
    fn now(&self) -> Instant {
        TokioRuntime.now()
    }

    fn wall_clock(&self) -> UnixMicros {
        TokioRuntime.wall_clock()
    }

    fn fill_random(&self, bytes: &mut [u8]) -> Result<(), NoRandomBytes> {
        TokioRuntime.fill_random(bytes)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        TokioRuntime.spawn(task);
    }

    fn thread_number(&self) -> usize {
        number_of_this_thread()
    }

    fn spawn_on(&self, thread_number: usize, task: BoxFuture<'static, ()>) {
        let place = thread_number.checked_sub(1).and_then(|place| place.checked_rem(self.threads.len()));
        match place {
            Some(place) => drop(self.threads[place].spawn(task)),
            None => self.spawn(task),
        }
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        TokioRuntime.sleep_until(at)
    }

    fn start_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        TokioRuntime.start_pool(name, threads, jobs_max)
    }

    fn start_background_pool(&self, name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<dyn JobQueue>> {
        TokioRuntime.start_background_pool(name, threads, jobs_max)
    }

    fn start_background_threads(&self, name: &str, threads: usize) -> io::Result<Arc<dyn TaskThreads>> {
        TokioRuntime.start_background_threads(name, threads)
    }

    fn start_periodic(
        &self,
        name: &str,
        interval: Duration,
        round: Box<dyn FnMut() + Send>,
    ) -> io::Result<Box<dyn Periodic>> {
        TokioRuntime.start_periodic(name, interval, round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;
    use tokio::runtime::Builder;

    #[test]
    fn a_task_runs_on_the_thread_with_its_number() {
        let (stop, stopped) = tokio::sync::watch::channel(());
        let threads = [1, 2].map(|number| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let (handle, mut stopped) = (runtime.handle().clone(), stopped.clone());
            let thread = std::thread::spawn(move || {
                number_this_thread(number);
                runtime.block_on(stopped.changed()).unwrap_err();
            });
            (handle, thread)
        });
        let runtime = Arc::new(ServingThreads::new(threads.iter().map(|(handle, _)| handle.clone()).collect()));
        assert_eq!(runtime.thread_number(), 0, "this thread serves no connections");
        for (asked, expected) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
            let (tell, told) = sync_channel(1);
            let there = runtime.clone();
            runtime.spawn_on(asked, Box::pin(async move { tell.send(there.thread_number()).unwrap() }));
            assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(expected), "thread {asked}");
        }
        // Without a number, or without such threads, a task runs where others do.
        let others = Builder::new_current_thread().build().unwrap();
        let nobody = ServingThreads::new(Vec::new());
        for (of, asked) in [(&*runtime, 0), (&nobody, 0), (&nobody, 3)] {
            let (tell, told) = sync_channel(1);
            others.block_on(async {
                of.spawn_on(asked, Box::pin(async move { tell.send(number_of_this_thread()).unwrap() }));
                tokio::task::yield_now().await;
            });
            assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(0), "asked for {asked}");
        }
        drop(stop);
        threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
    }
}
