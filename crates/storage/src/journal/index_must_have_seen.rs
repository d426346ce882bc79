//! The `seq` up to which an index on disk must have seen the journal, because older parts of the
//! journal may be gone: whole files if the index keeps everything (leveldb), and storage tombstones
//! that merges removed if it is bitcask's ordered index. An index that has seen less than this is
//! not the one that belongs to the journal.
//!
//! Layout of the file `covered` in a partition's directory: magic 8, version u16, zero u16, seq
//! u64, CRC-32 of all that u32. All integers are little-endian.

use super::format::le_at;
use super::small_file::{Frame, read_small_file};
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, replace_file};
use std::path::{Path, PathBuf};

/// The file name.
pub(crate) const NAME: &str = "covered";
const FRAME: Frame = Frame { magic: b"OMBAKCOV", versions: 1..=1 };
const CONTENT_BYTES: usize = 20;

/// The file in the directory of a partition.
pub(crate) fn path_in(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

pub(crate) fn encode(seq: u64) -> Vec<u8> {
    FRAME.seal(|bytes| {
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&seq.to_le_bytes());
    })
}

/// None if the content is damaged.
pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Option<u64>, StorageError> {
    let content = FRAME.open(bytes, path)?.filter(|content| content.len() == CONTENT_BYTES);
    Ok(content.map(|content| le_at!(u64, content, 12)))
}

/// Writes the note. It is on disk when this returns.
pub(super) fn write(fs: &dyn FileSystem, dir: &Path, seq: u64) -> Result<(), StorageError> {
    let path = path_in(dir);
    replace_file(fs, &path, &encode(seq)).map_err(|source| io_error("write", &path, source))
}

/// Reads the note: 0 if there is none yet, none if it is damaged.
pub(crate) fn read_whole(fs: &dyn FileSystem, dir: &Path) -> Result<Option<u64>, StorageError> {
    let path = path_in(dir);
    match read_small_file(fs, &path)? {
        Some(bytes) => decode(&bytes, &path),
        None => Ok(Some(0)),
    }
}

/// Reads the note. A damaged one counts as 0, which matters only if the index is lost too.
pub(super) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<u64, StorageError> {
    let note = read_whole(fs, dir)?;
    if note.is_none() {
        let file = path_in(dir);
        tracing::error!(file = %file.display(), "damaged: it is unknown whether the ledger is as new as it must be");
    }
    Ok(note.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::{FaultyFs, Loss};

    /// Bytes as version 1 wrote them.
    #[test]
    fn version_1_is_read() {
        let bytes = b"OMBAKCOV\x01\x00\x00\x00\x08\x07\x06\x05\x04\x03\x02\x012\x9b\x02\x13";
        assert_eq!(decode(bytes, Path::new("covered")).unwrap(), Some(0x0102_0304_0506_0708));
        assert_eq!(encode(0x0102_0304_0506_0708), bytes);
    }

    #[test]
    fn a_note_comes_back_and_damage_says_nothing() {
        let (fs, dir) = (FaultyFs::new(1), Path::new("/0"));
        fs.create_dir_all(dir).unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        assert_eq!(read(&*fs, dir).unwrap(), 0);
        for seq in [1, 1 << 40] {
            write(&*fs, dir, seq).unwrap();
            assert_eq!(read(&*fs, dir).unwrap(), seq);
        }
        let fs = fs.restart(Loss::Everything);
        assert_eq!(read(&*fs, dir).unwrap(), 1 << 40);
        for bit in 0..encode(0).len() as u64 * 8 {
            fs.flip_bit(&path_in(dir), bit).unwrap();
            assert_eq!(read(&*fs, dir).unwrap(), 0, "bit {bit}");
            fs.flip_bit(&path_in(dir), bit).unwrap();
        }
    }

    #[test]
    fn a_newer_note_is_refused_by_name() {
        let (fs, dir) = (FaultyFs::new(1), Path::new("/0"));
        fs.create_dir_all(dir).unwrap();
        let mut newer = encode(7)[..CONTENT_BYTES].to_vec();
        newer[8] = 9;
        newer.extend_from_slice(b"and more than there is today");
        newer.extend_from_slice(&crc32fast::hash(&newer).to_le_bytes());
        replace_file(&*fs, &path_in(dir), &newer).unwrap();
        let text = read(&*fs, dir).unwrap_err().to_string();
        assert!(text.contains("/0/covered") && text.contains("format 9"), "{text}");
    }
}
