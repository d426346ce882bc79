//! The files in which the sums of partitions outlive an orderly stop.

use super::plain::Sums;
use super::run::StoreRun;
use super::saved::Saved;
use crate::buckets::BucketRegistry;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// The directory below that of the node.
const DIR: &str = "sums";
/// Longer files are neither written nor read: the sums are made anew.
const FILE_BYTES_MAX: usize = 64 << 20;

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
    match fs.remove_file(&path_of(data_dir, partition)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn path_of(data_dir: &Path, partition: u32) -> PathBuf {
    data_dir.join(DIR).join(format!("{partition}.sums"))
}

/// The file of one partition. It exists only between two runs: a start takes it away. A file that a
/// crash has left nevertheless says which run it belongs to.
pub(super) struct SumsFile {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    path: PathBuf,
    partition: u32,
    choice_print: u64,
}

impl SumsFile {
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
                warn!(%file, is_damaged, ?removed, "saved sums cannot be used: they are made anew");
                None
            }
        }
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
        if bytes.len() > FILE_BYTES_MAX {
            return Ok(());
        }
        self.fs.create_dir_all(&self.dir)?;
        replace_file(&*self.fs, &self.path, &bytes)
    }
}
