//! How far a fold is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How far a fold is, as others see it while it goes on. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct FoldProgress(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    homes: AtomicU32,
    done: AtomicU32,
}

impl FoldProgress {
    /// The fold is over so many home partitions.
    pub(crate) fn begins(&self, homes: u32) {
        self.0.homes.store(homes, Ordering::Relaxed);
    }

    /// One more home partition is done.
    pub(crate) fn home_done(&self) {
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }

    /// How many home partitions are done, and how many there are; 0 of them before the fold begins.
    pub fn homes(&self) -> (u32, u32) {
        (self.0.done.load(Ordering::Relaxed), self.0.homes.load(Ordering::Relaxed))
    }
}
