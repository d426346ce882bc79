//! Threads for tasks that are not quick.

use crate::runtime::BoxFuture;

/// Threads that run tasks beside those that serve connections. A task may block and take long
/// between its awaits, because it shares the threads only with such tasks. The queue of tasks is
/// not bounded: the caller bounds what it has under way.
pub trait TaskThreads: Send + Sync {
    /// Lets a task run until it ends, or until the threads stop. Then it is dropped.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Drops all tasks at their next await. Waits for the threads, unless one of them calls this.
    fn stop(&self);
}
