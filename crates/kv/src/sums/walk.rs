//! A fold over a class that makes its sums exact, or shows that they are.

use super::behind::RangeSet;
use super::class_sums::{ClassSums, missing_slots};
use super::partition_sums::PartitionSums;
use super::plain::{RANGES, Sums};
use crate::buckets::Snapshot as Buckets;
use crate::routing::is_of_class;
use ombak_storage::{Detail, IndexedVersion, Scope, Snapshot, StorageError};
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
    /// How many ranges and slots were wrong although they counted as exact. They are corrected.
    pub differences: u32,
}

impl SumsWalk {
    /// A walk over a snapshot. Nothing has changed since the snapshot was taken.
    pub(super) fn new(
        sums: Arc<PartitionSums>,
        turn: Turn,
        buckets: Arc<Buckets>,
        since_seq: u64,
        snapshot: Box<dyn Snapshot>,
    ) -> Self {
        let expected = turn.class.read();
        Self { sums, turn, buckets, since_seq, snapshot, expected, found: Sums::default(), end: None }
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
        if !self.sums.is_current(&class) {
            self.turn.end(false);
            return WalkEnd { is_current: false, versions, differences: 0 };
        }
        let differences = self.unexplained();
        class.correct(&self.found, &self.expected);
        self.turn.end(true);
        if differences > 0 {
            self.sums.note_differences(class.n, differences);
        }
        WalkEnd { is_current: true, versions, differences }
    }

    /// How many sums are wrong that were not known to be behind. Where a range is behind, any slot
    /// may be.
    fn unexplained(&self) -> u32 {
        let (found, expected, walked) = (&self.found, &self.expected, &self.turn.walked);
        let is_wrong = |range: &usize| {
            let is_same = found.all_at(*range) == expected.all_at(*range)
                && found.expiring_at(*range) == expected.expiring_at(*range);
            !is_same && !walked.contains(*range)
        };
        let ranges = (0..RANGES).filter(is_wrong).count();
        let slots = if walked.count() > 0 { 0 } else { missing_slots(found, expected).len() };
        u32::try_from(ranges + slots).unwrap_or(u32::MAX)
    }
}
