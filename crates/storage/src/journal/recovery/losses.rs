//! The losses that a start finds. They stay known when their evidence is removed.

use super::lost_seqs::{LostBound, LostSeqs};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::journal::lost_note::{LostNote, missing_file};
use std::path::Path;

/// The lost ranges of a store that no open data file counts.
pub(crate) struct Losses<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    /// How many there are.
    ranges: u64,
    /// How high the seqs in them were, and in those that open data files count.
    bound: LostBound,
}

impl<'a> Losses<'a> {
    pub(super) fn new(fs: &'a dyn FileSystem, dir: &'a Path) -> Self {
        Self { fs, dir, ranges: 0, bound: LostBound::default() }
    }

    /// How many lost ranges no open data file counts.
    pub(super) fn ranges(&self) -> u64 {
        self.ranges
    }

    /// What is known of the seqs of everything that is lost.
    pub(super) fn bound(&self) -> LostBound {
        self.bound
    }

    /// Counts a lost range that no open data file counts.
    pub(super) fn add_range(&mut self, seqs: LostSeqs) {
        self.ranges += 1;
        self.bound.add(seqs);
    }

    /// Takes note of what a range had that an open data file counts.
    pub(super) fn add_seqs(&mut self, seqs: LostSeqs) {
        self.bound.add(seqs);
    }

    /// Counts the losses that earlier starts have recorded.
    pub(super) fn count_recorded(&mut self) -> Result<(), StorageError> {
        let recorded = LostNote::read(self.fs, self.dir)?.count();
        if recorded > 0 {
            self.bound.add(LostSeqs::Unknown);
        }
        self.ranges += recorded;
        Ok(())
    }

    /// Counts lost ranges, now and at every start from now on, because the evidence is about to be
    /// removed.
    pub(super) fn note_lost(&mut self, ranges: u64) -> Result<(), StorageError> {
        if ranges == 0 {
            return Ok(());
        }
        let mut note = LostNote::read(self.fs, self.dir)?;
        note.add_unlisted(ranges);
        note.write(self.fs, self.dir)?;
        self.ranges += ranges;
        self.bound.add(LostSeqs::Unknown);
        Ok(())
    }

    /// Counts missing files, now and at every start from now on, each once. `seqs` is what is known
    /// of those that were not recorded before.
    pub(crate) fn note_missing(&mut self, ids: &[u32], seqs: LostSeqs) -> Result<(), StorageError> {
        let mut note = LostNote::read(self.fs, self.dir)?;
        let known = note.count();
        ids.iter().for_each(|id| note.add_place(missing_file(*id)));
        let new = note.count() - known;
        self.ranges += new;
        if new == 0 {
            return Ok(());
        }
        self.bound.add(seqs);
        note.write(self.fs, self.dir)
    }
}
