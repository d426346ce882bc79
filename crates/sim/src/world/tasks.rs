//! The tasks of all hosts.

use super::host::HostKey;
use super::state::Inner;
use ombak_runtime::BoxFuture;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

/// The number of a task. It is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(pub(super) usize);

/// One task.
pub(super) struct Task {
    pub(super) on: HostKey,
    /// `None` while the task is polled.
    pub(super) future: Option<BoxFuture<'static, ()>>,
    /// Whether a poll is due already.
    pub(super) is_due: bool,
    pub(super) waker: Waker,
}

/// Wakes one task.
pub(super) struct WakeTask {
    pub(super) task: TaskId,
    pub(super) world: Weak<Inner>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(world) = self.world.upgrade() {
            world.wake(self.task);
        }
    }
}
