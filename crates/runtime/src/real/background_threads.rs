//! Threads for tasks that give way to all other threads.

use super::give_way::give_way;
use crate::runtime::BoxFuture;
use crate::task_threads::TaskThreads;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// A fixed number of threads with low priority. Each of them runs tasks of its own.
pub(super) struct BackgroundThreads {
    threads: Vec<BackgroundThread>,
    stop: watch::Sender<bool>,
}

struct BackgroundThread {
    tasks: Handle,
    /// How many tasks have not ended.
    task_count: Arc<AtomicUsize>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A task that counts until this is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl BackgroundThreads {
    /// Starts `threads` threads, at least one.
    pub(super) fn start(name: &str, threads: usize) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let start = |number| BackgroundThread::start(format!("{name}-{number}"), stopped.clone());
        let threads = (0..threads.max(1)).map(start).collect::<io::Result<_>>()?;
        Ok(Self { threads, stop })
    }
}

impl BackgroundThread {
    fn start(name: String, mut stopped: watch::Receiver<bool>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let tasks = runtime.handle().clone();
        let thread = thread::Builder::new().name(name).spawn(move || {
            give_way();
            // The sender is there as long as this thread has an owner.
            let _ = runtime.block_on(stopped.wait_for(|is_stopped| *is_stopped));
        })?;
        Ok(Self { tasks, task_count: Arc::default(), thread: Mutex::new(Some(thread)) })
    }
}

impl TaskThreads for BackgroundThreads {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let count = |thread: &&BackgroundThread| thread.task_count.load(Ordering::Relaxed);
        let Some(thread) = self.threads.iter().min_by_key(count) else { return };
        thread.task_count.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(thread.task_count.clone());
        drop(thread.tasks.spawn(async move {
            let _counted = counted;
            task.await;
        }));
    }

    fn stop(&self) {
        self.stop.send_replace(true);
        for thread in &self.threads {
            let Some(thread) = thread.thread.lock().take() else { continue };
            if thread.thread().id() != thread::current().id() {
                // A task that panicked was already caught.
                let _ = thread.join();
            }
        }
    }
}

impl Drop for BackgroundThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Runtime, RuntimeExt, TaskThreads, TokioRuntime};
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::thread::{self, ThreadId};
    use std::time::Duration;
    use tokio::sync::oneshot;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn threads(count: usize) -> Arc<dyn TaskThreads> {
        TokioRuntime.start_background_threads("test", count).unwrap()
    }

    #[test]
    fn tasks_are_spread_over_the_threads_and_may_block() {
        let threads = threads(2);
        let (tell, told) = sync_channel::<ThreadId>(2);
        let gates: Vec<_> = (0..2)
            .map(|_| {
                let (open, gate) = sync_channel::<()>(1);
                let tell = tell.clone();
                threads.spawn(Box::pin(async move {
                    tell.send(thread::current().id()).unwrap();
                    gate.recv().unwrap();
                }));
                open
            })
            .collect();
        let seen: HashSet<ThreadId> = (0..2).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
        assert_eq!(seen.len(), 2);
        gates.iter().for_each(|gate| gate.send(()).unwrap());
    }

    #[test]
    fn tasks_wait_for_timers_and_for_each_other_and_a_panic_ends_only_one() {
        let threads = threads(1);
        let (give, take) = oneshot::channel();
        let (tell, told) = sync_channel(1);
        threads.spawn(Box::pin(async { panic!("on purpose") }));
        threads.spawn(Box::pin(async move { tell.send(take.await).unwrap() }));
        threads.spawn(Box::pin(async move {
            TokioRuntime.sleep(Duration::from_millis(1)).await;
            give.send(7).unwrap();
        }));
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Ok(7)));
    }

    #[test]
    fn a_stop_drops_the_tasks() {
        let threads = threads(1);
        let (keep, dropped) = sync_channel::<()>(1);
        let (tell, told) = sync_channel(1);
        threads.spawn(Box::pin(async move {
            let _keep = keep;
            tell.send(()).unwrap();
            std::future::pending::<()>().await;
        }));
        told.recv_timeout(PATIENCE).unwrap();
        threads.stop();
        assert!(dropped.recv_timeout(PATIENCE).is_err(), "nothing was sent");
        threads.spawn(Box::pin(async { unreachable!("the threads have stopped") }));
        threads.stop();
    }

    /// What a task owns may be the last to own the threads.
    #[test]
    fn a_task_may_stop_its_own_threads() {
        let threads = threads(1);
        let own = threads.clone();
        let (tell, told) = sync_channel(1);
        threads.spawn(Box::pin(async move {
            own.stop();
            tell.send(()).unwrap();
        }));
        told.recv_timeout(PATIENCE).unwrap();
    }
}
