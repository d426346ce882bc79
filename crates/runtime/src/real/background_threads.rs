//! Threads for tasks that give way to all other threads.

use super::burst::begin_burst;
use super::give_way::give_way;
use crate::runtime::BoxFuture;
use crate::task_threads::TaskThreads;
use parking_lot::Mutex;
use std::cell::Cell;
use std::io;
use std::thread;
use tokio::runtime::{Builder, Handle, Runtime};

thread_local! {
    static IS_BACKGROUND_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// A fixed number of threads with low priority and a common queue of tasks.
pub(super) struct BackgroundThreads {
    tasks: Handle,
    runtime: Mutex<Option<Runtime>>,
}

impl BackgroundThreads {
    /// Starts `threads` threads, at least one.
    pub(super) fn start(name: &str, threads: usize) -> io::Result<Self> {
        let begin = || {
            IS_BACKGROUND_THREAD.set(true);
            give_way();
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name(name)
            .on_thread_start(begin)
            // A thread that has waited for work need not pause at once.
            .on_thread_unpark(begin_burst)
            .enable_time()
            .build()?;
        Ok(Self { tasks: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)) })
    }
}

impl TaskThreads for BackgroundThreads {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.tasks.spawn(task));
    }

    fn stop(&self) {
        let Some(runtime) = self.runtime.lock().take() else { return };
        if IS_BACKGROUND_THREAD.get() {
            // A thread cannot wait for its own end.
            return runtime.shutdown_background();
        }
        // The caller may itself run tasks, where a runtime must not be dropped.
        let ended = thread::Builder::new().name("ombak-end".to_owned()).spawn(move || drop(runtime));
        if let Ok(ended) = ended {
            // What panics while a task is dropped was logged.
            let _ = ended.join();
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
