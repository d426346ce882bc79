//! What was counted.

use crate::drivers::Reason;

/// What the workers of one thread have counted since it was last taken.
#[derive(Clone, Debug, Default)]
pub struct Tally {}

impl Tally {
    /// Nothing yet, of so many operations.
    pub fn new(_operations: usize) -> Self {
        Self {}
    }

    /// An operation succeeded; `latency_us` from when it was due.
    pub fn done(&mut self, _operation: usize, _units: u32, _latency_us: u64) {}

    /// An operation failed.
    pub fn failed(&mut self, _operation: usize, _reason: &Reason) {}

    /// Adds what another thread has counted.
    pub fn add(&mut self, _other: &Self) {}
}
