//! What one session may use.

use std::rc::Rc;
use std::time::Duration;

/// The time since some fixed moment, never decreasing. The caller hands it in, so that tests decide
/// how time passes.
pub type Clock = Rc<dyn Fn() -> Duration>;

/// The limits of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long one call may run.
    pub call_time_max: Duration,
    /// How much memory the engine of one session may have. An idle engine has about 0.4 MB.
    pub memory_bytes_max: usize,
    /// How much of the thread's stack calls within calls may take.
    pub stack_bytes_max: usize,
}

/// What the engine and the code around it take of a stack besides calls within calls.
const STACK_RESERVE_BYTES: usize = 512 << 10;

impl Limits {
    /// The least stack of a thread that has sessions with these limits.
    pub const fn thread_stack_bytes(&self) -> usize {
        self.stack_bytes_max.saturating_add(STACK_RESERVE_BYTES)
    }
}

impl Default for Limits {
    /// Riak's heap of 8 MB. Riak's stack of 16 MB is for another engine; 1 MB allows several
    /// thousand calls within calls here.
    fn default() -> Self {
        Self { call_time_max: Duration::from_secs(5), memory_bytes_max: 8 << 20, stack_bytes_max: 1 << 20 }
    }
}
