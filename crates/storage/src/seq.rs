//! The append order of a partition, and the rule that no number in it is given twice.
//!
//! Consumers and other nodes remember what they know of a store by its sequence numbers, for
//! example that everything up to a number was proven at other replicas. Such a statement must not
//! become one about a later append. So a store gives no number twice: not after a loss of power
//! that has taken its newest appends, and not after its files were set back by up to a minute.
//!
//! How: each run of a store counts from a *base*, which lies [`JUMP`] above the highest number that
//! its start has found, and above the base of an earlier run that did not end in order. A store has
//! its base on disk, in its identity file, before its first append of the run. So after `n` appends
//! without a trace, the next start counts from a number that is higher than theirs if `n` is below
//! [`JUMP`]. The base of the earlier run is needed for losses that follow each other: each of the
//! starts finds the same highest number.
//!
//! A new store, which draws its id at this start, counts from 0. Its numbers are those of another
//! store. All stores of a partition draw from one [`SeqSource`], whose base is the highest of
//! theirs.
//!
//! What it is not: it does not recognise that a store was set back to before the start of its last
//! run. Then the identity file says nothing of that run. The milestones of the node's directory
//! show such a setback, and the node takes part in nothing (docs/design/replication.md §8). Nor
//! does it know what a run of an earlier version of this program left out: such a run counts on
//! from the highest number that it finds, and removes the base of the run before.
//!
//! Invariants:
//! * A start without appends uses up no number if it ends in order: its base is the same again. If
//!   it does not end in order, nobody knows that it had no appends.
//! * [`SeqSource::last`] is the number of an append, which may have failed, or 0. It is no base.
//!
//! The end of the numbers: records have 48 bits for them. 3,100,000 starts with appends skip
//! [`JUMP`] numbers each. From then on a start skips a 2^20-th part of what is left, and logs an
//! error that says what to do. Appends are refused when 2^36 numbers are left, which is after seven
//! million further starts.

use crate::error::StorageError;
use crate::limits::SEQ_MAX;
use crate::openings::Opening;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many numbers a start skips: more than a partition appends in a minute.
const JUMP: u64 = 1 << 26;
/// A base is a multiple of this, so that it has room in the identity file.
pub(crate) const BASE_UNIT: u64 = 1 << 16;
/// No append gets a higher number.
const GIVEN_MAX: u64 = SEQ_MAX - (1 << 36);
/// A start skips at most the `2^JUMP_SHARE_BITS`-th part of what is left.
const JUMP_SHARE_BITS: u32 = 20;

/// The source of a partition's sequence numbers. All stores of a partition share one source. So of
/// two appends, the one with the higher number was the later one, whichever stores they went to.
///
/// All stores that share a source are opened before the first of them appends.
#[derive(Clone, Debug, Default)]
pub struct SeqSource(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    /// The last number that was given, or the base.
    counter: AtomicU64,
    /// Where this run has begun to count.
    base: AtomicU64,
    /// The highest number of an append that the start has found.
    found: AtomicU64,
    /// Whether an earlier run may have given numbers above `found`.
    may_miss_appends: AtomicBool,
}

impl SeqSource {
    /// Returns a number that is higher than all before. None if they are used up.
    pub(crate) fn take(&self) -> Option<u64> {
        let seq = self.0.counter.fetch_add(1, Ordering::AcqRel) + 1;
        (seq <= GIVEN_MAX).then_some(seq)
    }

    /// Lets numbers begin after `base`. The start of a store has found appends up to `found`.
    pub(crate) fn raise(&self, found: u64, base: u64) {
        let base = base.max(found);
        self.0.found.fetch_max(found, Ordering::AcqRel);
        self.0.base.fetch_max(base, Ordering::AcqRel);
        self.0.counter.fetch_max(base, Ordering::AcqRel);
    }

    /// Notes that a store of the partition did not end in order, so that numbers between the last
    /// found append and the base may have been given.
    pub(crate) fn note_missing_appends(&self) {
        self.0.may_miss_appends.store(true, Ordering::Release);
    }

    /// What this start leaves out; none if no number of it can have been given. It is final when
    /// all stores of the partition are open.
    pub(crate) fn opening(&self) -> Option<Opening> {
        let opening = Opening { end: self.found(), base: self.base() };
        let leaves_out = self.0.may_miss_appends.load(Ordering::Acquire) && opening.end < opening.base;
        leaves_out.then_some(opening)
    }

    /// The highest number of an append that the start has found.
    pub(crate) fn found(&self) -> u64 {
        self.0.found.load(Ordering::Acquire)
    }

    /// Every number that this run gives is higher.
    pub(crate) fn base(&self) -> u64 {
        self.0.base.load(Ordering::Acquire)
    }

    /// The number of the last append; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        let last = self.0.counter.load(Ordering::Acquire);
        if last > self.base() { last } else { self.found() }
    }
}

/// The base of a run whose start knows of numbers up to `spent`.
pub(crate) fn base_after(spent: u64) -> u64 {
    let base = (spent + jump_after(spent)).next_multiple_of(BASE_UNIT);
    base.min(SEQ_MAX - SEQ_MAX % BASE_UNIT)
}

/// Whether so many numbers are used up that a start skips fewer than it should.
pub(crate) fn runs_short(spent: u64) -> bool {
    jump_after(spent) < JUMP
}

fn jump_after(spent: u64) -> u64 {
    JUMP.min(GIVEN_MAX.saturating_sub(spent) >> JUMP_SHARE_BITS)
}

/// The refusal of an append to the store in a directory, because its numbers are used up.
#[cold]
pub(crate) fn used_up(dir: &Path) -> StorageError {
    StorageError::Unusable { path: dir.to_owned(), what: format!("its sequence numbers are used up: {REMEDY}") }
}

/// What to do when the numbers of a store run short. The stores of a new node begin with 1.
pub(crate) const REMEDY: &str = "let a node with an empty directory join, and this one leave";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_that_of_an_append() {
        let seqs = SeqSource::default();
        assert_eq!((seqs.last(), seqs.take(), seqs.last()), (0, Some(1), 1), "a new store counts from 0");
        let seqs = SeqSource::default();
        seqs.raise(70, base_after(70));
        seqs.raise(0, 0);
        assert_eq!((seqs.last(), seqs.base()), (70, base_after(70)));
        let first = seqs.take().unwrap();
        assert!(first > 70 + JUMP);
        assert_eq!((seqs.last(), seqs.take()), (first, Some(first + 1)));
        let seqs = SeqSource::default();
        seqs.raise(5, base_after(5));
        seqs.raise(7, base_after(90));
        assert_eq!((seqs.last(), seqs.base()), (7, base_after(90)));
    }

    #[test]
    fn a_start_skips_all_that_can_be_lost_until_few_numbers_are_left() {
        let (mut spent, mut starts) = (0, 0u64);
        while !runs_short(spent) {
            let base = base_after(spent);
            assert!(base >= spent + JUMP && base.is_multiple_of(BASE_UNIT));
            (spent, starts) = (base + 1, starts + 1);
        }
        assert!((3_000_000..3_300_000).contains(&starts), "{starts}");
        for left in (16..46).rev() {
            let spent = GIVEN_MAX - (1 << left);
            let base = base_after(spent);
            assert!(base > spent && base - spent <= (1 << (left - 16)) + BASE_UNIT, "{left}");
        }
    }

    #[test]
    fn appends_are_refused_before_the_numbers_end() {
        let seqs = SeqSource::default();
        seqs.raise(GIVEN_MAX - 1, 0);
        assert_eq!((seqs.take(), seqs.take(), seqs.take()), (Some(GIVEN_MAX), None, None));
        for spent in [GIVEN_MAX - 1, GIVEN_MAX, SEQ_MAX - 1, SEQ_MAX] {
            let seqs = SeqSource::default();
            seqs.raise(spent, base_after(spent));
            assert!(seqs.base() >= spent && seqs.base() <= SEQ_MAX);
            assert!(seqs.last() == spent && seqs.take().is_none_or(|seq| seq > spent));
        }
        assert!(used_up(Path::new("d/7")).to_string().contains("d/7: its sequence numbers are used up: let a node"));
    }
}
