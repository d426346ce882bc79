//! Where a backup is written: files under second names where that can be, copies elsewhere.

use super::error::{BackupError, io_error, unusable};
use ombak_storage::ReadMode;
use ombak_storage::fs::{FileSystem, OpenMode};
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Files are read and copied in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;

/// Told of each piece that was read; an error ends the work.
pub(super) type Observe<'a> = &'a dyn Fn(u64) -> Result<(), BackupError>;

/// A file that is read, and through what.
pub(super) type Source<'a> = (&'a dyn FileSystem, &'a Path);

/// A directory tree that is being written.
pub(super) struct Destination<'a> {
    fs: Arc<dyn FileSystem>,
    /// Those that are there.
    dirs: BTreeSet<PathBuf>,
    /// Those with names that may not be on disk yet.
    changed: BTreeSet<PathBuf>,
    observe: Observe<'a>,
}

impl<'a> Destination<'a> {
    /// One that has not written anything yet.
    pub(super) fn open(fs: Arc<dyn FileSystem>, observe: Observe<'a>) -> Self {
        Self { fs, dirs: BTreeSet::new(), changed: BTreeSet::new(), observe }
    }

    /// The file system that has it.
    pub(super) fn fs(&self) -> &dyn FileSystem {
        &*self.fs
    }

    /// Whether the work may go on, after so many bytes more were read.
    pub(super) fn observe(&self, bytes: u64) -> Result<(), BackupError> {
        (self.observe)(bytes)
    }

    /// The directories that are missing of a path, the deepest first.
    pub(super) fn missing_dirs(&self, dir: &Path) -> Vec<PathBuf> {
        let missing = dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && self.fs.list(dir).is_err());
        missing.map(Path::to_owned).collect()
    }

    /// Creates a directory and its missing parents.
    pub(super) fn create_dir(&mut self, dir: &Path) -> Result<(), BackupError> {
        if self.dirs.contains(dir) {
            return Ok(());
        }
        let missing = self.missing_dirs(dir);
        self.fs.create_dir_all(dir).map_err(io_error("create", dir))?;
        // The name of each lies in its parent.
        self.changed.extend(missing.iter().filter_map(|dir| dir.parent()).map(Path::to_owned));
        self.dirs.insert(dir.to_owned());
        Ok(())
    }

    /// Gives a file a second name at `path`, or says why that cannot be.
    pub(super) fn link(&mut self, from: &Path, path: &Path) -> Result<io::Result<()>, BackupError> {
        self.create_parent(path)?;
        Ok(self.fs.hard_link(from, path))
    }

    /// Copies the first `length` bytes of a file, or all of it, and says how many there were and what they come to.
    pub(super) fn copy(
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
    pub(super) fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
        self.create_parent(path)?;
        let to = self.fs.open(path, OpenMode::CreateNew).map_err(io_error("create", path))?;
        to.write_at(bytes, 0).map_err(io_error("write", path))?;
        to.sync_data().map_err(io_error("sync", path))
    }

    /// Length and checksum of a file.
    pub(super) fn read(&self, from: Source<'_>) -> Result<(u64, u64), BackupError> {
        read_pieces(from, None, self.observe, |_, _| Ok(()))
    }

    /// Puts all names on disk.
    pub(super) fn sync(&mut self) -> Result<(), BackupError> {
        for dir in std::mem::take(&mut self.changed) {
            let dir = dir.as_path();
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            match self.fs.sync_dir(dir) {
                // A parent that we may not read was there before.
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                    return Err(io_error("sync", dir)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A file is about to be created in its directory.
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

/// Where a file goes, or lies: `place` comes from a manifest, which must not lead elsewhere.
pub(super) fn place_in(dir: &Path, place: &str) -> Result<PathBuf, BackupError> {
    let place = Path::new(place);
    let is_inside = place.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || place.as_os_str().is_empty() {
        return Err(unusable(dir, format!("the place {:?} of a file leads out of the backup", place.display())));
    }
    Ok(dir.join(place))
}
