//! What is counted about listings and index queries over several nodes.

use ombak_stats::CoverageFigures;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers that only rise.
#[derive(Debug, Default)]
pub(crate) struct CoverageCounts {
    parts_asked: AtomicU64,
    parts_repeated: AtomicU64,
}

impl CoverageCounts {
    /// A part was asked of a replica.
    pub(super) fn asked(&self) {
        self.parts_asked.fetch_add(1, Relaxed);
    }

    /// Parts that failed were given to other replicas.
    pub(super) fn repeated(&self, parts: usize) {
        self.parts_repeated.fetch_add(parts as u64, Relaxed);
    }

    /// The numbers now.
    pub(crate) fn figures(&self) -> CoverageFigures {
        CoverageFigures {
            parts_asked: self.parts_asked.load(Relaxed),
            parts_repeated: self.parts_repeated.load(Relaxed),
        }
    }
}
