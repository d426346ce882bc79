//! The files of an earlier backup that a new backup can reuse.

use crate::backup_files::{BackupFiles, Source};
use crate::error::{BackupError, io_error};
use crate::manifest::{Manifest, SavedFile};
use ombak_storage::fs::OpenMode;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The files of an earlier backup.
#[derive(Default)]
pub(crate) struct EarlierBackup {
    /// Whether they are in the directory of the new backup.
    pub(crate) is_here: bool,
    /// The files by their part of the backup and their place in it.
    files: BTreeMap<(String, String), (PathBuf, SavedFile)>,
}

impl EarlierBackup {
    pub(crate) fn new(dir: &Path, manifest: &Manifest, is_here: bool) -> Result<Self, BackupError> {
        let mut files = BTreeMap::new();
        for (part, file) in manifest.files() {
            let path = file.path(dir, &part)?;
            files.insert((part, file.relative_path.clone()), (path, file.clone()));
        }
        Ok(Self { is_here, files })
    }

    /// Finds the saved copy of a file of the node that never changes again. Returns `None` when the
    /// backup lacks the file, or has it with other content.
    pub(crate) fn find(
        &self,
        part: &str,
        place: &Path,
        salt: Option<u64>,
        from: Source<'_>,
        destination: &BackupFiles<'_>,
    ) -> Result<Option<(PathBuf, SavedFile)>, BackupError> {
        let Some(place) = place.to_str() else { return Ok(None) };
        let Some((path, known)) = self.files.get(&(part.to_owned(), place.to_owned())) else { return Ok(None) };
        if known.salt != salt
            || length(from)? != Some(known.length)
            || length((destination.fs(), path))? != Some(known.length)
        {
            return Ok(None);
        }
        // A file without a salt is compared by its content.
        let is_same = salt.is_some() || destination.read(from)? == (known.length, known.checksum);
        Ok(is_same.then(|| (path.clone(), known.clone())))
    }
}

fn length((fs, path): Source<'_>) -> Result<Option<u64>, BackupError> {
    match fs.open(path, OpenMode::Read).and_then(|file| file.length()) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io_error("read", path)(source)),
    }
}
