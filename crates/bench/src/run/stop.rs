//! The signal that ends a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::watch;

/// The signal that ends a run. It may be given more than once.
#[derive(Debug)]
pub(super) struct Stop {
    requested: AtomicBool,
    /// Whether an error was the reason, if the configuration ends the run at the first error.
    for_error: AtomicBool,
    /// Whether the panic of a worker was the reason.
    for_crash: AtomicBool,
    signal: watch::Sender<bool>,
    /// The planned end of the run.
    end: Option<Instant>,
}

impl Stop {
    pub(super) fn new(end: Option<Instant>) -> Self {
        let [requested, for_error, for_crash] = [false; 3].map(AtomicBool::new);
        Self { requested, for_error, for_crash, signal: watch::Sender::new(false), end }
    }

    pub(super) fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
        self.signal.send_replace(true);
    }

    pub(super) fn request_for_error(&self) {
        self.for_error.store(true, Ordering::Relaxed);
        self.request();
    }

    pub(super) fn was_for_error(&self) -> bool {
        self.for_error.load(Ordering::Relaxed)
    }

    /// Stops the run because a worker panicked. Without that worker, the other results would not
    /// match the configuration.
    pub(super) fn request_for_crash(&self) {
        self.for_crash.store(true, Ordering::Relaxed);
        self.request();
    }

    pub(super) fn was_for_crash(&self) -> bool {
        self.for_crash.load(Ordering::Relaxed)
    }

    /// Whether no new operation may begin.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.requested.load(Ordering::Relaxed) || self.end.is_some_and(|end| now >= end)
    }

    /// The planned end of the run.
    pub(super) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Waits for the signal.
    pub(super) async fn wait(&self) {
        // The sender is a field of `self`, so it still exists.
        drop(self.signal.subscribe().wait_for(|requested| *requested).await);
    }
}
