//! The files in which the trees of partitions outlive an orderly stop.

use super::leaves::KeptLeaves;
use super::saved::{Head, Saved, encode};
use crate::sums::{StoreRun, SumsSetup};
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// The directory below that of the node.
const DIR: &str = "trees";
/// Longer files are neither written nor read: the trees are made anew.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Removes the saved trees of a stopped node, because its stores were changed without it. A file
/// that is not there is none. Blocks.
pub fn remove_saved_trees(fs: &dyn FileSystem, data_dir: &Path, partition: u32) -> io::Result<()> {
    match fs.remove_file(&path_of(data_dir, partition)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn path_of(data_dir: &Path, partition: u32) -> PathBuf {
    data_dir.join(DIR).join(format!("{partition}.trees"))
}

/// The file of one partition. It exists only between two runs: a start takes it away. A file that a
/// crash has left nevertheless says which run it belongs to.
pub(super) struct TreeFile {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    path: PathBuf,
    partition: u32,
    choice_print: u64,
}

impl TreeFile {
    pub(super) fn new(setup: &SumsSetup, partition: u32) -> Self {
        let dir = setup.data_dir.join(DIR);
        let path = path_of(&setup.data_dir, partition);
        Self { fs: setup.fs.clone(), dir, path, partition, choice_print: setup.choice_print }
    }

    /// Takes what was saved, if it can be used. Blocks.
    pub(super) fn take(&self) -> Option<Saved> {
        let bytes = match read_file(&*self.fs, &self.path, FILE_BYTES_MAX as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            bytes => bytes,
        };
        let saved = bytes.ok().and_then(|bytes| Saved::decode(&bytes));
        let removed = self.fs.remove_file(&self.path);
        match (saved, removed) {
            (Some(saved), Ok(())) => {
                Some(saved).filter(|saved| saved.partition == self.partition && saved.choice_print == self.choice_print)
            }
            (saved, removed) => {
                let (is_damaged, file) = (saved.is_none(), self.path.display());
                warn!(%file, is_damaged, ?removed, "saved trees cannot be used: they are made anew");
                None
            }
        }
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
        if bytes.len() > FILE_BYTES_MAX {
            return Ok(());
        }
        self.fs.create_dir_all(&self.dir)?;
        replace_file(&*self.fs, &self.path, &bytes)
    }
}
