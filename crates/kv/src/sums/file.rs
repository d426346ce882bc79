//! The files in which the sums of partitions outlive an orderly stop.

use super::plain::Sums;
use super::run::StoreRun;
use super::saved::Saved;
use super::saved_file::{SavedFile, SavedFileKind};
use crate::buckets::BucketRegistry;
use ombak_storage::fs::FileSystem;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KIND: SavedFileKind = SavedFileKind { content: "sums" };

/// What partitions need to keep sums.
#[derive(Clone)]
pub(crate) struct SumsSetup {
    /// They say in which class a key is.
    pub(crate) buckets: Arc<BucketRegistry>,
    pub(crate) fs: Arc<dyn FileSystem>,
    /// The directory of the node.
    pub(crate) data_dir: PathBuf,
    /// A print of the rules by which buckets are on backends.
    pub(crate) choice_print: u64,
    /// Whether sums that are wrong for no known reason do not end the process.
    pub(crate) tolerates_differences: bool,
}

/// Removes the saved sums of a stopped node, because its stores were changed without it. A file
/// that is not there is none. Blocks.
pub fn remove_saved_sums(fs: &dyn FileSystem, data_dir: &Path, partition: u32) -> io::Result<()> {
    KIND.remove(fs, data_dir, partition)
}

/// The file of one partition.
pub(super) struct SumsFile {
    file: SavedFile,
    partition: u32,
    choice_print: u64,
}

impl SumsFile {
    pub(super) fn new(setup: &SumsSetup, partition: u32) -> Self {
        let file = SavedFile::new(setup, KIND, partition);
        Self { file, partition, choice_print: setup.choice_print }
    }

    /// Takes what was saved, if it can be used. Blocks.
    pub(super) fn take(&self) -> Option<Saved> {
        let saved = self.file.take(Saved::decode)?;
        Some(saved).filter(|saved| saved.partition == self.partition && saved.choice_print == self.choice_print)
    }

    /// Saves sums of the class maps with this print, without versions up to `set_aside_to`. Blocks.
    pub(super) fn save(
        &self,
        class_print: u64,
        set_aside_to: u64,
        run: StoreRun,
        classes: Vec<(u32, Sums)>,
    ) -> io::Result<()> {
        let Self { partition, choice_print, .. } = *self;
        let bytes = Saved { partition, class_print, choice_print, run, set_aside_to, classes }.encode();
        self.file.save(&bytes)
    }
}
