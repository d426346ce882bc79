//! The commit file of a merge: which files go. Once it has its name, they are gone, whatever a directory says.
//!
//! Layout: magic 8, version u16, zero u16, count u32, then id u32 and salt u64 of each file, CRC-32 of all that u32.

use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::error::io_error;
use crate::fs::{FileSystem, OpenMode, read_file};
use crate::journal::data_file::{data_path, hint_path};
use crate::journal::format::{FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, le_at};
use std::io;
use std::path::{Path, PathBuf};

/// Ends the name of a commit file.
pub(crate) const COMMIT_SUFFIX: &str = ".merged";
const MAGIC: &[u8; 8] = b"OMBAKCMT";
const PREFIX_BYTES: usize = 16;
const ENTRY_BYTES: usize = 12;
/// Files that one merge takes at most: bounds what a start reads.
pub(super) const INPUTS_MAX: usize = 10_000;

fn encode(files: &[(u32, u64)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + files.len() * ENTRY_BYTES + 4);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 2]);
    bytes.extend_from_slice(&(files.len() as u32).to_le_bytes());
    for (id, salt) in files {
        bytes.extend_from_slice(&id.to_le_bytes());
        bytes.extend_from_slice(&salt.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Vec<(u32, u64)>> {
    let (content, crc) = bytes.split_last_chunk::<4>()?;
    if content.len() < PREFIX_BYTES
        || &content[..8] != MAGIC
        || le_at!(u16, content, 8) != FORMAT_VERSION
        || crc32fast::hash(content) != u32::from_le_bytes(*crc)
    {
        return None;
    }
    let entries = content[PREFIX_BYTES..].chunks_exact(ENTRY_BYTES);
    Some(entries.map(|entry| (le_at!(u32, entry, 0), le_at!(u64, entry, 4))).collect())
}

/// Writes the commit file: on disk when this returns.
pub(crate) fn write_commit(
    fs: &dyn FileSystem,
    dir: &Path,
    number: u32,
    files: &[(u32, u64)],
) -> Result<PathBuf, StorageError> {
    let path = dir.join(format!("{number:010}{COMMIT_SUFFIX}"));
    let temporary = path.with_extension("tmp");
    let write = || {
        let file = fs.open(&temporary, OpenMode::CreateNew)?;
        file.write_at(&encode(files), 0)?;
        file.sync_data()?;
        fs.rename(&temporary, &path)?;
        fs.sync_dir(dir)
    };
    match write() {
        Ok(()) => Ok(path),
        Err(source) => Err(io_error("write", &path, source)),
    }
}

/// Finishes a merge that a crash interrupted after its commit. False when the commit file is damaged: it and what it named
/// stay, and versions that were deleted may be back.
pub(crate) fn finish_commit(fs: &dyn FileSystem, dir: &Path, name: &str) -> Result<bool, StorageError> {
    let path = dir.join(name);
    let files = read_commit(fs, &path).map_err(|source| io_error("read", &path, source))?;
    let Some(files) = files else {
        tracing::error!(file = %path.display(), "damaged commit file of a merge: deleted keys may be back");
        return Ok(false);
    };
    let mut ids = Vec::with_capacity(files.len());
    for (id, salt) in files {
        if !is_another_file(fs, &data_path(dir, id), salt).map_err(|source| io_error("read", dir, source))? {
            ids.push(id);
        }
    }
    remove_committed(fs, dir, &ids, &path)?;
    Ok(true)
}

/// The files that a commit names, with their salts; none when it is damaged.
pub(crate) fn read_commit(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<Vec<(u32, u64)>>> {
    match read_file(fs, path, (PREFIX_BYTES + INPUTS_MAX * ENTRY_BYTES + 4) as u64) {
        Ok(bytes) => Ok(decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an intact file of another salt has the id now.
fn is_another_file(fs: &dyn FileSystem, path: &Path, salt: u64) -> io::Result<bool> {
    let file = match fs.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; FILE_HEADER_BYTES];
    let read = file.read_at(&mut bytes, 0, ReadMode::Blocking)?;
    Ok(FileHeader::decode(&bytes[..read]).is_ok_and(|header| header.salt != salt))
}

/// Removes the files of a commit, then the commit file.
pub(in crate::journal) fn remove_committed(
    fs: &dyn FileSystem,
    dir: &Path,
    ids: &[u32],
    commit: &Path,
) -> Result<(), StorageError> {
    for path in ids.iter().flat_map(|id| [hint_path(dir, *id), data_path(dir, *id)]) {
        match fs.remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(io_error("remove", &path, source)),
        }
    }
    // The commit must not be forgotten while a file that it names may come back.
    fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source))?;
    fs.remove_file(commit).map_err(|source| io_error("remove", commit, source))
}
