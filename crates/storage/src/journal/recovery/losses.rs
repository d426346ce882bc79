//! The losses that a start finds. They stay known when their evidence is removed.

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::journal::lost_note::{LostNote, missing_file};
use std::path::Path;

/// The lost ranges of a store that no open data file counts.
pub(crate) struct Losses<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    /// How many there are.
    pub(super) ranges: u64,
}

impl<'a> Losses<'a> {
    pub(super) fn new(fs: &'a dyn FileSystem, dir: &'a Path) -> Self {
        Self { fs, dir, ranges: 0 }
    }

    /// Counts the losses that earlier starts have recorded.
    pub(super) fn count_recorded(&mut self) -> Result<(), StorageError> {
        self.ranges += LostNote::read(self.fs, self.dir)?.count();
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
        Ok(())
    }

    /// Counts missing files, now and at every start from now on, each once.
    pub(crate) fn note_missing(&mut self, ids: &[u32]) -> Result<(), StorageError> {
        let mut note = LostNote::read(self.fs, self.dir)?;
        let known = note.count();
        ids.iter().for_each(|id| note.add_place(missing_file(*id)));
        let new = note.count() - known;
        self.ranges += new;
        if new > 0 { note.write(self.fs, self.dir) } else { Ok(()) }
    }
}
