//! Whether security is on. Hot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// Whether security is on. Every request looks, so looking is one load.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    is_on: Arc<AtomicBool>,
    turns: watch::Sender<bool>,
}

impl Default for Switch {
    fn default() -> Self {
        Self { is_on: Arc::default(), turns: watch::Sender::new(false) }
    }
}

impl Switch {
    /// Whether security is on.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Switches it. Those who wait for a turn are woken if it is one.
    pub(super) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Release);
        self.turns.send_if_modified(|before| std::mem::replace(before, is_on) != is_on);
    }

    /// Tells of each turn.
    pub(crate) fn turns(&self) -> watch::Receiver<bool> {
        self.turns.subscribe()
    }
}
