//! How everybody learns that a run is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::watch;

/// Said once, by whoever ends the run.
#[derive(Debug)]
pub(super) struct Stop {
    said: AtomicBool,
    /// Because of an error, where the configuration wants that.
    for_error: AtomicBool,
    /// Because a worker panicked.
    for_crash: AtomicBool,
    told: watch::Sender<bool>,
    /// When the run ends by itself.
    end: Option<Instant>,
}

impl Stop {
    pub(super) fn new(end: Option<Instant>) -> Self {
        let [said, for_error, for_crash] = [false; 3].map(AtomicBool::new);
        Self { said, for_error, for_crash, told: watch::Sender::new(false), end }
    }

    pub(super) fn say(&self) {
        self.said.store(true, Ordering::Relaxed);
        self.told.send_replace(true);
    }

    pub(super) fn say_for_error(&self) {
        self.for_error.store(true, Ordering::Relaxed);
        self.say();
    }

    pub(super) fn was_for_error(&self) -> bool {
        self.for_error.load(Ordering::Relaxed)
    }

    /// A worker panicked: what the others would count is not what was configured.
    pub(super) fn say_for_crash(&self) {
        self.for_crash.store(true, Ordering::Relaxed);
        self.say();
    }

    pub(super) fn was_for_crash(&self) -> bool {
        self.for_crash.load(Ordering::Relaxed)
    }

    /// Whether an operation may no longer begin.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.said.load(Ordering::Relaxed) || self.end.is_some_and(|end| now >= end)
    }

    /// When the run ends by itself.
    pub(super) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Waits until it is said.
    pub(super) async fn wait(&self) {
        // The sender is `self`: it cannot be gone.
        drop(self.told.subscribe().wait_for(|said| *said).await);
    }
}
