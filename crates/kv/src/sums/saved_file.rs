//! The file in which something of a partition outlives an orderly stop.

use super::file::SumsSetup;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// Longer files are neither written nor read: their content is made anew.
const FILE_BYTES_MAX: usize = 64 << 20;

/// What files of one kind hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedFileKind {
    /// The content, as the log calls it. It is the directory below that of the node, and ends the
    /// names of the files.
    pub(crate) content: &'static str,
}

impl SavedFileKind {
    fn path_of(self, data_dir: &Path, partition: u32) -> PathBuf {
        let Self { content } = self;
        data_dir.join(content).join(format!("{partition}.{content}"))
    }

    /// Removes the file of a partition of a stopped node, because its stores were changed without
    /// it. A file that is not there is none. Blocks.
    pub(crate) fn remove(self, fs: &dyn FileSystem, data_dir: &Path, partition: u32) -> io::Result<()> {
        match fs.remove_file(&self.path_of(data_dir, partition)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// The file of one partition. It exists only between two runs: a start takes it away. A file that a
/// crash has left nevertheless says which run it belongs to.
pub(crate) struct SavedFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    kind: SavedFileKind,
}

impl SavedFile {
    pub(crate) fn new(setup: &SumsSetup, kind: SavedFileKind, partition: u32) -> Self {
        Self { fs: setup.fs.clone(), path: kind.path_of(&setup.data_dir, partition), kind }
    }

    /// Takes what was saved, if it decodes. Blocks.
    pub(crate) fn take<T>(&self, decode: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let bytes = match read_file(&*self.fs, &self.path, FILE_BYTES_MAX as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            bytes => bytes,
        };
        let saved = bytes.ok().and_then(|bytes| decode(&bytes));
        match (saved, self.fs.remove_file(&self.path)) {
            (Some(saved), Ok(())) => Some(saved),
            (saved, removed) => {
                let (is_damaged, file, content) = (saved.is_none(), self.path.display(), self.kind.content);
                warn!(%file, is_damaged, ?removed, "saved {content} cannot be used: they are made anew");
                None
            }
        }
    }

    /// Saves the content, unless it is too long. Blocks.
    pub(crate) fn save(&self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > FILE_BYTES_MAX {
            return Ok(());
        }
        if let Some(dir) = self.path.parent() {
            self.fs.create_dir_all(dir)?;
        }
        replace_file(&*self.fs, &self.path, bytes)
    }
}
