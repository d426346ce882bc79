//! What is counted about the removal of tombstones and expired versions.

use ombak_stats::ReapingFigures;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers that only rise.
#[derive(Debug, Default)]
pub struct ReapingCounts {
    removed: AtomicU64,
    rounds: AtomicU64,
    rounds_failed: AtomicU64,
}

impl ReapingCounts {
    /// Versions were removed from a store of this node.
    pub fn removed(&self, versions: u64) {
        self.removed.fetch_add(versions, Relaxed);
    }

    /// A round that this node has driven has ended.
    pub fn round_ended(&self, is_complete: bool) {
        self.rounds.fetch_add(1, Relaxed);
        if !is_complete {
            self.rounds_failed.fetch_add(1, Relaxed);
        }
    }

    /// The numbers now, with how many versions wait.
    pub(crate) fn figures(&self, waiting: u64) -> ReapingFigures {
        ReapingFigures {
            waiting,
            removed: self.removed.load(Relaxed),
            rounds: self.rounds.load(Relaxed),
            rounds_failed: self.rounds_failed.load(Relaxed),
        }
    }
}
