//! The append order of a partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the appends of a partition get their numbers from: one source for all its stores, so that of two appends the one
/// with the higher number was the later, whichever stores they went to.
#[derive(Clone, Debug, Default)]
pub struct SeqSource(Arc<AtomicU64>);

impl SeqSource {
    /// A number that is higher than all before.
    pub(crate) fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Numbers up to here have been given away.
    pub(crate) fn raise(&self, seq: u64) {
        self.0.fetch_max(seq, Ordering::AcqRel);
    }

    /// The highest number that was given away.
    pub(crate) fn last(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
