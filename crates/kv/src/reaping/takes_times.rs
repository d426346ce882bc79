//! Whether all members take the times of tombstones before they remove them.

use std::sync::atomic::{AtomicU8, Ordering};

/// What the gate said last about all members.
#[derive(Debug)]
pub(crate) struct TakesTimes(AtomicU8);

impl TakesTimes {
    pub(crate) const UNKNOWN: u8 = 0;
    const NO: u8 = 1;
    pub(crate) const YES: u8 = 2;

    /// Without a gate, all members take times.
    pub(crate) const fn new(has_gate: bool) -> Self {
        Self(AtomicU8::new(if has_gate { Self::UNKNOWN } else { Self::YES }))
    }

    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, takes_times: bool) {
        self.0.store(if takes_times { Self::YES } else { Self::NO }, Ordering::Relaxed);
    }
}
