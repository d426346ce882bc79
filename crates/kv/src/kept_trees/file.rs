//! The files in which the trees of partitions outlive an orderly stop.

use super::leaves::KeptLeaves;
use super::saved::{Head, Saved, encode};
use crate::sums::saved_file::{SavedFile, SavedFileKind};
use crate::sums::{StoreRun, SumsSetup};
use ombak_storage::fs::FileSystem;
use std::io;
use std::path::Path;

const KIND: SavedFileKind = SavedFileKind { content: "trees" };

/// Removes the saved trees of a stopped node, because its stores were changed without it. A file
/// that is not there is none. Blocks.
pub fn remove_saved_trees(fs: &dyn FileSystem, data_dir: &Path, partition: u32) -> io::Result<()> {
    KIND.remove(fs, data_dir, partition)
}

/// The file of one partition.
pub(super) struct TreeFile {
    file: SavedFile,
    partition: u32,
    choice_print: u64,
}

impl TreeFile {
    pub(super) fn new(setup: &SumsSetup, partition: u32) -> Self {
        let file = SavedFile::new(setup, KIND, partition);
        Self { file, partition, choice_print: setup.choice_print }
    }

    /// Takes what was saved, if it can be used. Blocks.
    pub(super) fn take(&self) -> Option<Saved> {
        let saved = self.file.take(Saved::decode)?;
        Some(saved).filter(|saved| saved.partition == self.partition && saved.choice_print == self.choice_print)
    }

    /// Saves trees with this print of their keys, without versions up to `set_aside_to`. Blocks.
    pub(super) fn save<'a>(
        &self,
        (print, set_aside_to): (u64, u64),
        run: &StoreRun,
        trees: impl ExactSizeIterator<Item = (u32, &'a KeptLeaves)>,
    ) -> io::Result<()> {
        let Self { partition, choice_print, .. } = *self;
        let bytes = encode(&Head { partition, print, choice_print, run, set_aside_to }, trees);
        self.file.save(&bytes)
    }
}
