//! The part of a node in listings and index queries over several nodes.

use ombak_stats::CoverageFigures;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Numbers that only rise.
#[derive(Debug, Default)]
pub(crate) struct CoverageCounts {
    parts_asked: AtomicU64,
    parts_repeated: AtomicU64,
}

impl CoverageCounts {
    /// A part was asked of a replica.
    pub(crate) fn asked(&self) {
        self.parts_asked.fetch_add(1, Relaxed);
    }

    /// Parts that failed were given to other replicas.
    pub(crate) fn repeated(&self, parts: usize) {
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

/// The part of a node in listings and index queries.
pub(crate) struct CoverageState {
    /// Whether this node answers them.
    pub(crate) participates: AtomicBool,
    /// What is counted about those over several nodes.
    pub(crate) counts: CoverageCounts,
    /// How many have begun here, and the number of the latest.
    pub(super) begun: AtomicU64,
}

impl CoverageState {
    pub(super) fn new(participates: bool) -> Self {
        let participates = AtomicBool::new(participates);
        Self { participates, counts: CoverageCounts::default(), begun: AtomicU64::new(0) }
    }
}
