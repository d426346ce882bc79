//! Work that repeats.

use ombak_runtime::Periodic;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

type Work = Box<dyn FnMut() + Send>;

/// Work that repeats at an interval.
pub(crate) struct Round {
    /// `None` while a round is under way, and after the end.
    work: Mutex<Option<Work>>,
    is_stopped: Mutex<bool>,
    pub(super) interval: Duration,
    number: u64,
}

impl Round {
    pub(super) fn new(interval: Duration, work: Work, number: u64) -> Arc<Self> {
        Arc::new(Self { work: Mutex::new(Some(work)), is_stopped: Mutex::new(false), interval, number })
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Ends the work.
    pub(super) fn stop(&self) {
        *self.is_stopped.lock() = true;
        let work = self.work.lock().take();
        drop(work);
    }

    /// Does one round. Returns whether another one follows.
    pub(super) fn run(&self) -> bool {
        let work = self.work.lock().take();
        let Some(mut work) = work else { return false };
        work();
        let is_stopped = *self.is_stopped.lock();
        if !is_stopped {
            *self.work.lock() = Some(work);
        }
        !is_stopped
    }
}

/// The handle of the code that has started the work.
pub(super) struct RoundHandle(pub(super) Arc<Round>);

impl Periodic for RoundHandle {
    fn stop(&self) {
        self.0.stop();
    }
}

impl Drop for RoundHandle {
    fn drop(&mut self) {
        self.stop();
    }
}
