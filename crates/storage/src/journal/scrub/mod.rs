//! Scrubbing of a store with a journal: its data files, then the tables of its index.
//!
//! What it is: one step of a round ([`crate::scrub`]). It reads files from end to end, by handles
//! of its own, and without any lock that others wait for. A file that a merge removes meanwhile is
//! read to its end or passed over; what the merge has written anew is read in the next lap.
//!
//! What it is not: it repairs nothing and removes nothing. It tells the owner of the store which
//! current versions are damaged ([`crate::unreadable`]), and what else it found in its result.
//!
//! Invariants:
//! * Only what was durable counts as damaged: of a file that appends go to, the part that is known
//!   to be synced is read, and torn writes that a start has passed over are no damage.
//! * A damaged version is told only if the index points at exactly that record.

mod damage;
mod data_files;
mod tables;

use super::policy::JournalPolicy;
use super::store::Core;
use crate::error::StorageError;
use crate::journal::index::KeyIndex;
use crate::scrub::{ScrubCursor, ScrubLimits, ScrubStep};
use crate::terms_check::TermStep;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tables::TableProgress;

/// What scrubbing remembers between its steps.
#[derive(Default)]
pub(in crate::journal) struct ScrubState {
    /// The checksum of the table that is being read. Only a step of scrubbing takes this lock.
    table: Mutex<Option<TableProgress>>,
    /// Whether a log is damaged whose versions are in memory, so that they must be written to the
    /// index on disk.
    wants_checkpoint: AtomicBool,
    /// Whether index entries were mended that may not be on disk yet.
    has_mended_terms: AtomicBool,
}

impl ScrubState {
    /// Whether a checkpoint is wanted; asks once.
    pub(in crate::journal) fn take_wanted_checkpoint(&self) -> bool {
        self.wants_checkpoint.load(Ordering::Relaxed) && self.wants_checkpoint.swap(false, Ordering::Relaxed)
    }

    /// A step has compared index entries. At the end of a walk that has mended some, a checkpoint
    /// is wanted: the journal does not have them, so an end without order would take them back.
    pub(in crate::journal) fn terms_checked(&self, step: &TermStep) {
        if step.lacking + step.surplus > 0 {
            self.has_mended_terms.store(true, Ordering::Relaxed);
        }
        if step.is_over && self.has_mended_terms.swap(false, Ordering::Relaxed) {
            self.wants_checkpoint.store(true, Ordering::Relaxed);
        }
    }
}

/// The end of a step.
struct StepEnd<'a> {
    bytes_max: u64,
    until: Instant,
    give_way: &'a dyn Fn(),
}

impl<P: JournalPolicy> Core<P> {
    /// Bytes that a round reads.
    pub(in crate::journal) fn bytes_to_scrub(&self) -> u64 {
        let files: u64 = self.files.read().values().map(|file| file.counters.length.load(Ordering::Relaxed)).sum();
        files + self.index.ledger_status().map_or(0, |ledger| ledger.disk_bytes)
    }

    /// Reads on from a place of the round.
    pub(in crate::journal) fn scrub_step(
        &self,
        cursor: &ScrubCursor,
        limits: ScrubLimits<'_>,
    ) -> Result<ScrubStep, StorageError> {
        let mut step = ScrubStep::at(*cursor);
        if cursor.lap == 0 && !cursor.in_index {
            step.next.up_to_seq = self.synced_seq.load(Ordering::Acquire);
        }
        let ScrubLimits { bytes_max, time_max, give_way } = limits;
        let end = StepEnd { bytes_max, until: self.now() + time_max, give_way };
        loop {
            self.check_open()?;
            if step.next.in_index {
                self.scrub_tables(&mut step, &end)?
            } else {
                self.scrub_files(&mut step, &end)?
            }
            if step.is_round_over || self.is_step_over(&step, &end) {
                return Ok(step);
            }
        }
    }

    /// Whether a step has done enough. Gives way to others first.
    fn is_step_over(&self, step: &ScrubStep, end: &StepEnd<'_>) -> bool {
        (end.give_way)();
        step.bytes_read >= end.bytes_max || step.unread_blocks > 0 || self.now() >= end.until
    }

    fn now(&self) -> Instant {
        self.shared.fs.machine().now()
    }
}
