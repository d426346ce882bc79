//! The append order of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of a partition's sequence numbers. All stores of a partition share one source. So of
/// two appends, the one with the higher number was the later one, whichever stores they went to.
#[derive(Clone, Debug, Default)]
pub struct SeqSource(Arc<AtomicU64>);

impl SeqSource {
    /// Returns a number that is higher than all before.
    pub(crate) fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Marks all numbers up to `seq` as used.
    pub(crate) fn raise(&self, seq: u64) {
        self.0.fetch_max(seq, Ordering::AcqRel);
    }

    /// The highest number that was used.
    pub(crate) fn last(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
