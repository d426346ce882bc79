//! What can happen.

use super::host::HostKey;
use super::periodic::Round;
use super::pool::Pool;
use super::tasks::TaskId;
use super::timer::Timer;
use std::sync::Arc;

/// Something that happens at one moment.
pub(crate) enum Event {
    /// A task is polled.
    Poll(TaskId),
    /// A timer ends.
    Timer(HostKey, Arc<Timer>),
    /// A pool executes the job that is next.
    Job(HostKey, Arc<Pool>),
    /// A round of work that repeats.
    Round(HostKey, Arc<Round>),
    /// Something that happens to the world and not on a host. The number is for the trace.
    World(u64, Box<dyn FnOnce() + Send>),
}

impl Event {
    /// A number for the trace.
    pub(super) fn code(&self) -> u64 {
        match self {
            Self::Poll(task) => 1 | (task.0 as u64) << 3,
            Self::Timer(..) => 2,
            Self::Job(_, pool) => 3 | pool.number() << 3,
            Self::Round(_, round) => 4 | round.number() << 3,
            Self::World(number, _) => 5 | number << 3,
        }
    }
}
