//! Threads that serve connections. Each thread has a runtime of its own.
//!
//! Handing a request of a few microseconds to another thread costs more than answering it. So a
//! connection stays on the thread to which it was assigned, and no thread ever wakes another one
//! for it. On a busy node this saves about as much processor time as the whole engine uses
//! (docs/benchmarks.md). The price is that connections are assigned in turn and not by load. Long
//! work runs on other threads anyway (the pools of `ombak_kv`).

use ombak_runtime::number_this_thread;
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// How long work on blocking threads may continue when the threads end.
const BLOCKING_END_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for the threads to end. A thread that is busy for longer is left behind, so
/// that the node does not wait for it.
const END_TIMEOUT: Duration = Duration::from_secs(6);

/// A fixed number of threads to which connections are assigned in turn. Dropping this value ends
/// the threads and everything that still runs on them.
pub struct NetworkThreads {
    threads: Vec<Thread>,
    next: AtomicUsize,
    stop: watch::Sender<bool>,
}

struct Thread {
    handle: Handle,
    /// The handle of the thread; `None` after it was joined or left behind.
    join: Option<JoinHandle<()>>,
    /// This channel is disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

impl NetworkThreads {
    /// Starts `count` threads, but at least one.
    pub fn start(count: usize) -> io::Result<Self> {
        let (stop, stopping) = watch::channel(false);
        let threads = (0..count.max(1)).map(|n| Thread::start(n, stopping.clone())).collect::<Result<_, _>>()?;
        Ok(Self { threads, next: AtomicUsize::new(0), stop })
    }

    /// The runtimes of all threads, in the order of their numbers.
    pub fn handles(&self) -> Vec<Handle> {
        self.threads.iter().map(|thread| thread.handle.clone()).collect()
    }

    /// The runtime of the next thread in turn.
    pub fn next(&self) -> &Handle {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len();
        &self.threads[turn].handle
    }
}

impl Thread {
    fn start(number: usize, mut stopping: watch::Receiver<bool>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (ending, ended) = sync_channel(0);
        let join = std::thread::Builder::new().name(format!("ombak-net-{number}")).spawn(move || {
            let _ending = ending;
            number_this_thread(number + 1);
            runtime.block_on(async move {
                // An error means that the sender was dropped, which also ends the thread.
                drop(stopping.wait_for(|stop| *stop).await);
                // What was woken before runs once more, such as a connection that says goodbye.
                tokio::task::yield_now().await;
            });
            runtime.shutdown_timeout(BLOCKING_END_TIMEOUT);
        })?;
        Ok(Self { handle, join: Some(join), ended: Mutex::new(ended) })
    }
}

impl NetworkThreads {
    /// Tells the threads to end and waits for them, for at most `timeout`.
    fn end(&mut self, timeout: Duration) {
        self.stop.send_replace(true);
        let (deadline, this) = (Instant::now() + timeout, std::thread::current().id());
        for thread in &mut self.threads {
            let Some(join) = thread.join.take() else { continue };
            // This thread may drop the last reference itself, with its last connection. It cannot
            // wait for itself and ends later.
            if join.thread().id() == this {
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if thread.ended.get_mut().recv_timeout(left).is_err_and(|error| error == RecvTimeoutError::Disconnected) {
                // A thread that panicked has already printed a message.
                drop(join.join());
            } else {
                tracing::warn!(thread = join.thread().name(), "a network thread is still busy and is left behind");
            }
        }
    }
}

impl Drop for NetworkThreads {
    fn drop(&mut self) {
        self.end(END_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_runtime::{Runtime, ServingThreads};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    /// More tasks than a runtime polls before it looks at what ends the thread, and less than twice
    /// as many.
    const TASKS_BETWEEN: usize = 80;

    #[test]
    fn work_is_dealt_in_turn_and_stays_where_it_was_dealt() {
        let threads = NetworkThreads::start(3).unwrap();
        let name = || std::thread::current().name().map(str::to_owned);
        let names: Vec<_> = (0..6)
            .map(|_| {
                let task = threads.next().spawn(async move {
                    let before = name();
                    tokio::task::yield_now().await;
                    assert_eq!(before, name());
                    before
                });
                Builder::new_current_thread().build().unwrap().block_on(task).unwrap()
            })
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3);
        assert_eq!(names[..3], names[3..]);
    }

    #[test]
    fn each_thread_has_the_number_of_its_place() {
        let threads = NetworkThreads::start(3).unwrap();
        let runtime = Arc::new(ServingThreads::new(threads.handles()));
        for number in 1..=3 {
            let (tell, told) = sync_channel(1);
            let there = Arc::clone(&runtime);
            runtime.spawn_on(number, Box::pin(async move { tell.send(there.thread_number()).unwrap() }));
            assert_eq!(told.recv_timeout(Duration::from_secs(30)), Ok(number));
        }
    }

    /// As a connection that says goodbye to its peer: it is woken shortly before the end, and other
    /// work was there before it.
    #[test]
    fn what_was_woken_before_the_end_runs_once_more() {
        let mut threads = NetworkThreads::start(1).unwrap();
        let (release, released) = sync_channel::<()>(0);
        let (begun, has_begun) = sync_channel(0);
        let (wake, woken) = tokio::sync::oneshot::channel::<()>();
        let (say, said) = sync_channel(1);
        threads.next().spawn(async move {
            woken.await.unwrap();
            say.send("goodbye").unwrap();
        });
        threads.next().spawn(async move {
            begun.send(()).unwrap();
            released.recv().unwrap_err();
        });
        has_begun.recv_timeout(Duration::from_secs(30)).unwrap();
        // A runtime looks at what ends the thread after some number of tasks.
        (0..TASKS_BETWEEN).for_each(|_| drop(threads.next().spawn(async {})));
        wake.send(()).unwrap();
        // The busy task goes on after the thread was told to end.
        threads.stop.send_replace(true);
        drop(release);
        threads.end(Duration::from_secs(30));
        assert_eq!(said.try_recv(), Ok("goodbye"));
    }

    #[test]
    fn a_thread_that_is_busy_for_long_does_not_hold_up_the_end() {
        let mut threads = NetworkThreads::start(2).unwrap();
        let (release, released) = std::sync::mpsc::sync_channel::<()>(0);
        let (begun, has_begun) = std::sync::mpsc::sync_channel(0);
        let (left, has_left) = std::sync::mpsc::sync_channel(1);
        threads.next().spawn(async move {
            begun.send(()).unwrap();
            // This blocks the thread, as a long computation does.
            left.send(released.recv().is_err()).unwrap();
        });
        has_begun.recv_timeout(Duration::from_secs(10)).unwrap();
        threads.end(Duration::from_millis(10));
        assert!(has_left.try_recv().is_err(), "it is still busy");
        drop(release);
        assert!(has_left.recv_timeout(Duration::from_secs(10)).unwrap());
    }

    #[test]
    fn the_last_reference_may_be_dropped_on_one_of_the_threads() {
        let threads = Arc::new(NetworkThreads::start(1).unwrap());
        let (held, (dropped, was_dropped)) = (threads.clone(), std::sync::mpsc::sync_channel(1));
        threads.next().spawn(async move {
            while Arc::strong_count(&held) > 1 {
                tokio::task::yield_now().await;
            }
            drop(held);
            dropped.send(()).unwrap();
        });
        drop(threads);
        was_dropped.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
    }
}
