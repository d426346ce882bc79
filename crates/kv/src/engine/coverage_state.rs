//! The part of a node in listings and index queries over several nodes.

use ombak_stats::CoverageFigures;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

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
    /// For each partition that a feature was asked about: how often the classes that are full had
    /// changed when it was, and a moment since which they have not.
    full_since: Mutex<BTreeMap<u32, (u64, Instant)>>,
}

impl CoverageState {
    pub(super) fn new(participates: bool) -> Self {
        let participates = AtomicBool::new(participates);
        let (counts, full_since) = (CoverageCounts::default(), Mutex::default());
        Self { participates, counts, begun: AtomicU64::new(0), full_since }
    }

    /// A moment since which the classes of a partition that are full have not changed, of which
    /// this is the number of changes so far. It is not before the first call with that number.
    pub(crate) fn full_since(&self, partition: u32, changes: u64, now: Instant) -> Instant {
        let mut full_since = self.full_since.lock();
        let known = full_since.entry(partition).or_insert((changes, now));
        if known.0 != changes {
            *known = (changes, now);
        }
        known.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_partition_is_full_since_the_first_look_after_a_change() {
        let state = CoverageState::new(true);
        let first = Instant::now();
        let later = |secs| first + Duration::from_secs(secs);
        assert_eq!(state.full_since(3, 0, first), first);
        assert_eq!(state.full_since(3, 0, later(9)), first);
        assert_eq!(state.full_since(3, 1, later(10)), later(10));
        assert_eq!(state.full_since(3, 1, later(11)), later(10));
        assert_eq!(state.full_since(4, 1, later(12)), later(12));
    }
}
