//! Threads for tasks that are not quick.

use crate::runtime::BoxFuture;

/// Threads that run tasks beside those that serve connections. A task stays on the thread on which
/// it began. It may block and take long between its awaits, because it shares its thread only with
/// such tasks.
pub trait TaskThreads: Send + Sync {
    /// Lets a task run until it ends, or until the threads stop. Then it is dropped.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Drops all tasks at their next await, and waits for the threads, the calling one excepted.
    fn stop(&self);
}
