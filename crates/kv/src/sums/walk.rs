//! A fold over a class that makes its sums exact, or shows that they are.
//!
//! A difference that nobody can explain means that the store has lost or gained something without a
//! write. The sums are the only evidence of it, so they stay as they are until whoever drives the
//! walk has noted the loss durably, and calls [`SumsWalk::accept`]. Until then they are not
//! answered, and an orderly stop saves them as they are: the next start finds the difference again.

use super::behind::RangeSet;
use super::class_sums::{ClassSums, missing_slots};
use super::partition_sums::PartitionSums;
use super::plain::Sums;
use crate::buckets::Snapshot as Buckets;
use crate::routing::is_of_class;
use ombak_storage::{Detail, IndexedVersion, Scope, Snapshot, StorageError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The turn of the one walk over a class. If it is dropped before its walk has ended, what the walk
/// would have corrected is still behind.
pub(super) struct Turn {
    class: Arc<ClassSums>,
    walked: RangeSet,
    is_over: bool,
}

impl Turn {
    /// None if a walk over the class is under way.
    pub(super) fn take(class: Arc<ClassSums>) -> Option<Self> {
        let walked = class.behind.begin_walk()?;
        Some(Self { class, walked, is_over: false })
    }

    /// Lets other walks begin.
    fn end(&mut self, has_corrected: bool) {
        if !self.is_over {
            self.is_over = true;
            self.class.behind.end_walk(has_corrected);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// A fold over a class at one moment. Changes after that moment go on being counted meanwhile.
///
/// It holds a snapshot of the store. A store takes a snapshot away that lives too long; then a step
/// fails, and a new walk begins from the start.
pub struct SumsWalk {
    sums: Arc<PartitionSums>,
    turn: Turn,
    /// The state of the registry by which keys are in the class.
    buckets: Arc<Buckets>,
    /// Only versions with a larger seq are counted.
    since_seq: u64,
    /// The place of the store at the moment of the snapshot.
    last_seq: u64,
    snapshot: Box<dyn Snapshot>,
    /// The sums at the moment of the snapshot.
    expected: Sums,
    found: Sums,
    end: Option<WalkEnd>,
}

/// What a step of a walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumsStep {
    /// There is more.
    More,
    /// The walk has ended.
    Ended(WalkEnd),
}

/// What a walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkEnd {
    /// Whether the class was still the same at the end. If not, because the n of a bucket has
    /// changed for example, the walk was in vain, and another one begins.
    pub is_current: bool,
    /// How many versions the class had at the moment of the walk.
    pub versions: u64,
    /// How many ranges and slots are wrong although they counted as exact. They stay so until
    /// [`SumsWalk::accept`].
    pub differences: u32,
    /// The place of the store at the moment of the walk: what was lost or has come back without a
    /// write has a seq up to this one.
    pub seq: u64,
}

impl SumsWalk {
    /// A walk over a snapshot. Nothing has changed since the snapshot was taken.
    pub(super) fn new(
        sums: Arc<PartitionSums>,
        turn: Turn,
        buckets: Arc<Buckets>,
        (since_seq, last_seq): (u64, u64),
        snapshot: Box<dyn Snapshot>,
    ) -> Self {
        let expected = turn.class.read();
        Self { sums, turn, buckets, since_seq, last_seq, snapshot, expected, found: Sums::default(), end: None }
    }

    /// Visits at most this many versions of the partition, at least one. Blocks. The caller pauses
    /// between steps as long as its pace asks for.
    pub fn step(&mut self, versions_max: usize) -> Result<SumsStep, StorageError> {
        if let Some(end) = self.end {
            return Ok(SumsStep::Ended(end));
        }
        // Without a class in the scope a call visits a bounded number of versions.
        let scope = Scope { since_seq: self.since_seq, ..Scope::EVERYTHING };
        let entries = self.snapshot.next(&scope, Detail::Keys, versions_max.max(1))?;
        if entries.is_empty() {
            let end = self.end_walk();
            self.end = Some(end);
            return Ok(SumsStep::Ended(end));
        }
        for entry in &entries {
            if is_of_class(&self.buckets, &entry.key, self.turn.class.n) {
                let (digest, seq, expires_secs) = (entry.digest, entry.seq, entry.expires_secs);
                self.found.add(&entry.key, IndexedVersion { digest, seq, expires_secs });
            }
        }
        Ok(SumsStep::More)
    }

    fn end_walk(&mut self) -> WalkEnd {
        let class = self.turn.class.clone();
        let versions = self.found.total().versions;
        let end = WalkEnd { is_current: self.sums.is_current(&class), versions, differences: 0, seq: self.last_seq };
        if !end.is_current {
            self.turn.end(false);
            return end;
        }
        let differences = self.unexplained();
        if differences > 0 {
            class.set_checked(false);
            self.sums.note_differences(class.n, differences);
        } else {
            self.correct();
        }
        WalkEnd { differences, ..end }
    }

    /// Takes over what the walk has found in the place of wrong sums. The caller has noted durably
    /// that the store lost or gained something. Does nothing if the walk has not ended, found
    /// nothing wrong, or was in vain.
    pub fn accept(&mut self) {
        if self.end.is_some_and(|end| end.differences > 0) && !self.turn.is_over {
            self.correct();
        }
    }

    fn correct(&mut self) {
        let class = &self.turn.class;
        class.correct(&self.found, &self.expected);
        class.set_checked(true);
        self.turn.end(true);
    }

    /// How many sums are wrong that were not known to be behind. Where a range is behind, any slot
    /// may be.
    fn unexplained(&self) -> u32 {
        let (found, expected, walked) = (&self.found, &self.expected, &self.turn.walked);
        let differing = found.all.minus(&expected.all).chain(found.expiring.minus(&expected.expiring));
        let is_wrong = |range: &u32| !walked.contains(*range as usize);
        let ranges = differing.map(|(range, _)| range).filter(is_wrong).collect::<BTreeSet<_>>().len();
        let slots = if walked.count() > 0 { 0 } else { missing_slots(found, expected).len() };
        u32::try_from(ranges + slots).unwrap_or(u32::MAX)
    }
}
