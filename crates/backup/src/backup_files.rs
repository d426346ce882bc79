//! Reads, copies and hard-links files into and out of backups. Files are hard-linked where the file
//! system can, and copied elsewhere.

use crate::error::{BackupError, io_error, unusable};
use ombak_storage::ReadMode;
use ombak_storage::fs::{FileSystem, OpenMode};
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Files are read and copied in pieces of this many bytes.
const PIECE_BYTES: usize = 256 << 10;

/// Called with the length of each piece that was read; an error ends the work.
pub(crate) type Observe<'a> = &'a dyn Fn(u64) -> Result<(), BackupError>;

/// A file to read, with the file system that holds it.
pub(crate) type Source<'a> = (&'a dyn FileSystem, &'a Path);

/// Writes the files of a backup, or of a node that is restored, and reads those that exist. Knows
/// which directories it has created, and syncs them together.
pub(crate) struct BackupFiles<'a> {
    fs: Arc<dyn FileSystem>,
    /// Directories that are known to exist.
    dirs: BTreeSet<PathBuf>,
    /// Directories with names that may not be on disk yet.
    changed: BTreeSet<PathBuf>,
    observe: Observe<'a>,
}

impl<'a> BackupFiles<'a> {
    /// Creates it; nothing is written yet.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, observe: Observe<'a>) -> Self {
        Self { fs, dirs: BTreeSet::new(), changed: BTreeSet::new(), observe }
    }

    /// The file system that is written to.
    pub(crate) fn fs(&self) -> &dyn FileSystem {
        &*self.fs
    }

    /// Reports that `bytes` more bytes were read; an error means that the work must end.
    pub(crate) fn observe(&self, bytes: u64) -> Result<(), BackupError> {
        (self.observe)(bytes)
    }

    /// The missing directories of a path, the deepest first.
    pub(crate) fn missing_dirs(&self, dir: &Path) -> Vec<PathBuf> {
        let missing = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && self.fs.list(dir).is_err());
        missing.map(Path::to_owned).collect()
    }

    /// Creates a directory and its missing parents.
    pub(crate) fn create_dir(&mut self, dir: &Path) -> Result<(), BackupError> {
        if self.dirs.contains(dir) {
            return Ok(());
        }
        let missing = self.missing_dirs(dir);
        self.fs.create_dir_all(dir).map_err(io_error("create", dir))?;
        // The name of each new directory is stored in its parent.
        self.changed.extend(missing.iter().filter_map(|dir| dir.parent()).map(Path::to_owned));
        self.dirs.insert(dir.to_owned());
        Ok(())
    }

    /// Hard-links the file `from` as `path`. The inner error says why the file system cannot.
    pub(crate) fn link(&mut self, from: &Path, path: &Path) -> Result<io::Result<()>, BackupError> {
        self.create_parent(path)?;
        Ok(self.fs.hard_link(from, path))
    }

    /// Copies the first `length` bytes of a file, or all of it. Returns their number and checksum.
    pub(crate) fn copy(
        &mut self,
        from: Source<'_>,
        length: Option<u64>,
        path: &Path,
    ) -> Result<(u64, u64), BackupError> {
        self.create_parent(path)?;
        let to = self.fs.open(path, OpenMode::CreateNew).map_err(io_error("create", path))?;
        let write = |bytes: &[u8], offset| to.write_at(bytes, offset).map_err(io_error("write", path));
        let read = read_pieces(from, length, self.observe, write)?;
        to.sync_data().map_err(io_error("sync", path))?;
        Ok(read)
    }

    /// Writes a small file.
    pub(crate) fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
        self.create_parent(path)?;
        let to = self.fs.open(path, OpenMode::CreateNew).map_err(io_error("create", path))?;
        to.write_at(bytes, 0).map_err(io_error("write", path))?;
        to.sync_data().map_err(io_error("sync", path))
    }

    /// The length and the checksum of a file.
    pub(crate) fn read(&self, from: Source<'_>) -> Result<(u64, u64), BackupError> {
        read_pieces(from, None, self.observe, |_, _| Ok(()))
    }

    /// Syncs all directories with new names.
    pub(crate) fn sync(&mut self) -> Result<(), BackupError> {
        for dir in std::mem::take(&mut self.changed) {
            let dir = dir.as_path();
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            match self.fs.sync_dir(dir) {
                // A parent that this process may not read existed before, so its names did not
                // change.
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                    return Err(io_error("sync", dir)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Creates the directory of a file that is about to be created.
    fn create_parent(&mut self, path: &Path) -> Result<(), BackupError> {
        let Some(dir) = path.parent() else { return Ok(()) };
        self.changed.insert(dir.to_owned());
        self.create_dir(dir)
    }
}

fn read_pieces(
    (fs, path): Source<'_>,
    length: Option<u64>,
    observe: Observe<'_>,
    mut take: impl FnMut(&[u8], u64) -> Result<(), BackupError>,
) -> Result<(u64, u64), BackupError> {
    let file = fs.open(path, OpenMode::Read).map_err(io_error("open", path))?;
    let mut piece = vec![0; PIECE_BYTES];
    let (mut done, mut hash) = (0, Xxh3::new());
    loop {
        let left = length.map_or(PIECE_BYTES as u64, |length| length - done);
        let wanted = left.min(PIECE_BYTES as u64) as usize;
        let count = file.read_at(&mut piece[..wanted], done, ReadMode::Blocking).map_err(io_error("read", path))?;
        if count == 0 {
            return Ok((done, hash.digest()));
        }
        take(&piece[..count], done)?;
        hash.update(&piece[..count]);
        done += count as u64;
        observe(count as u64)?;
    }
}

/// The path of a file in `dir`. `place` comes from a manifest and must not lead out of `dir`.
pub(crate) fn path_inside(dir: &Path, place: &str) -> Result<PathBuf, BackupError> {
    let place = Path::new(place);
    let is_inside = place.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || place.as_os_str().is_empty() {
        return Err(unusable(dir, format!("the place {:?} of a file leads out of the backup", place.display())));
    }
    Ok(dir.join(place))
}
