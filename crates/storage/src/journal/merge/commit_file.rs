//! The commit file of a merge: the list of the input files. Once it has its name, these files count
//! as removed, even if a directory still lists them.
//!
//! Layout: magic 8, version u16, zero u16, count u32, then id u32 and salt u64 of each file, CRC-32
//! of all that u32.

use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::error::io_error;
use crate::fs::{FileSystem, OpenMode};
use crate::journal::data_file::{data_path, hint_path};
use crate::journal::format::{FILE_HEADER_BYTES, FileHeader, READABLE_VERSIONS, le_at};
use crate::journal::small_file::{Frame, read_small_file};
use std::io;
use std::path::{Path, PathBuf};

/// The suffix of a commit file's name.
pub(crate) const COMMIT_SUFFIX: &str = ".merged";
/// The layout has been the same since version 1.
const FRAME: Frame = Frame { magic: b"OMBAKCMT", versions: READABLE_VERSIONS };
const PREFIX_BYTES: usize = 16;
const ENTRY_BYTES: usize = 12;
/// The most input files of one merge. Bounds what a start reads.
pub(super) const INPUTS_MAX: usize = 10_000;

pub(crate) fn encode(files: &[(u32, u64)]) -> Vec<u8> {
    FRAME.seal(|bytes| {
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&(files.len() as u32).to_le_bytes());
        for (id, salt) in files {
            bytes.extend_from_slice(&id.to_le_bytes());
            bytes.extend_from_slice(&salt.to_le_bytes());
        }
    })
}

/// None if the content is damaged.
pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Option<Vec<(u32, u64)>>, StorageError> {
    let Some(content) = FRAME.open(bytes, path)?.filter(|content| content.len() >= PREFIX_BYTES) else {
        return Ok(None);
    };
    let (count, entries) = (le_at!(u32, content, 12) as usize, &content[PREFIX_BYTES..]);
    let files = entries.chunks_exact(ENTRY_BYTES).map(|entry| (le_at!(u32, entry, 0), le_at!(u64, entry, 4)));
    Ok((entries.len() == count * ENTRY_BYTES).then(|| files.collect()))
}

/// The path of the commit file with this number.
pub(super) fn commit_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:010}{COMMIT_SUFFIX}"))
}

/// Writes the commit file. It is on disk when this returns.
pub(crate) fn write_commit(
    fs: &dyn FileSystem,
    dir: &Path,
    number: u32,
    files: &[(u32, u64)],
) -> Result<PathBuf, StorageError> {
    let path = commit_path(dir, number);
    let temporary = path.with_extension("tmp");
    let write = || {
        let file = fs.open(&temporary, OpenMode::CreateNew)?;
        file.write_at(&encode(files), 0)?;
        file.sync_data()?;
        fs.rename(&temporary, &path)?;
        fs.sync_dir(dir)
    };
    write().map_err(|source| {
        // Under its temporary name the file has no effect, and the next attempt has another number.
        let _ = fs.remove_file(&temporary);
        io_error("write", &path, source)
    })?;
    Ok(path)
}

/// Finishes a merge that a crash interrupted after its commit. False if the commit file is damaged:
/// it and the files that it named stay, and deleted versions may be visible again.
pub(crate) fn finish_commit(fs: &dyn FileSystem, dir: &Path, name: &str) -> Result<bool, StorageError> {
    let path = dir.join(name);
    let Some(files) = read_commit(fs, &path)? else {
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

/// The files that a commit file names, with their salts; none if it is damaged.
pub(crate) fn read_commit(fs: &dyn FileSystem, path: &Path) -> Result<Option<Vec<(u32, u64)>>, StorageError> {
    match read_small_file(fs, path)? {
        Some(bytes) => decode(&bytes, path),
        None => Err(io_error("read", path, io::ErrorKind::NotFound.into())),
    }
}

/// Whether an intact file with another salt has this path now.
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
    // The commit file must stay until no file that it names can come back after a loss of power.
    fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source))?;
    fs.remove_file(commit).map_err(|source| io_error("remove", commit, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::replace_file;
    use crate::fs::sim::FaultyFs;

    const COMMIT: &str = "0000000009.merged";

    fn with_version(version: u8) -> Vec<u8> {
        let mut bytes = encode(&[(1, 2), (3, 4)]);
        bytes.truncate(bytes.len() - 4);
        bytes[8] = version;
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn in_directory(commit: &[u8]) -> std::sync::Arc<FaultyFs> {
        let (fs, dir) = (FaultyFs::new(1), Path::new("/0"));
        fs.create_dir_all(dir).unwrap();
        for path in [data_path(dir, 1), data_path(dir, 2), hint_path(dir, 3)] {
            fs.open(&path, OpenMode::CreateNew).unwrap();
        }
        replace_file(&*fs, &dir.join(COMMIT), commit).unwrap();
        fs
    }

    fn names(fs: &FaultyFs) -> Vec<String> {
        let mut names = fs.list(Path::new("/0")).unwrap();
        names.sort();
        names
    }

    /// Bytes as each version wrote them: files 1 and 3 with the salts 2 and 4.
    const OF_EACH_VERSION: [&[u8]; 2] = [
        b"OMBAKCMT\x01\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\
          \x03\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00d5\xd4\xd2",
        b"OMBAKCMT\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\
          \x03\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\xdb=\xcb\x1b",
    ];

    #[test]
    fn a_merge_is_finished_whichever_version_began_it() {
        for commit in OF_EACH_VERSION {
            let fs = in_directory(commit);
            assert!(finish_commit(&*fs, Path::new("/0"), COMMIT).unwrap(), "{commit:?}");
            assert_eq!(names(&fs), ["0000000002.data"]);
        }
    }

    #[test]
    fn a_newer_commit_is_refused_by_name_and_removes_nothing() {
        let fs = in_directory(&with_version(9));
        let before = names(&fs);
        let text = finish_commit(&*fs, Path::new("/0"), COMMIT).unwrap_err().to_string();
        assert!(text.contains(COMMIT) && text.contains("format 9"), "{text}");
        assert_eq!(names(&fs), before);
    }

    #[test]
    fn a_damaged_commit_removes_nothing() {
        let whole = encode(&[(1, 2), (3, 4)]);
        for bit in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let fs = in_directory(&bad);
            let before = names(&fs);
            assert!(!finish_commit(&*fs, Path::new("/0"), COMMIT).unwrap(), "bit {bit}");
            assert_eq!(names(&fs), before, "bit {bit}");
        }
    }
}
