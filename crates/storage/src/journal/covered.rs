//! Up to where an index on disk must have seen the journal, because what came before may be gone: its files when the index
//! has everything, tombstones when they were merged. An index that has seen less is not the one that was there.
//!
//! Layout of the file `covered` in a partition's directory:
//! magic 8, version u16, zero u16, seq u64, CRC-32 of all that u32. All integers are little-endian.

use super::format::le_at;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, read_file, replace_file};
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "covered";
const MAGIC: &[u8; 8] = b"OMBAKCOV";
const VERSION: u16 = 1;
const BYTES: usize = 24;
const CRC_AT: usize = 20;

/// The file in the directory of a partition.
pub(crate) fn path_in(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

fn encode(seq: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..20].copy_from_slice(&seq.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..CRC_AT]);
    bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// None when it is damaged.
fn decode(bytes: &[u8]) -> Option<u64> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let seq = le_at!(u64, bytes, 12);
    (*bytes == encode(seq)).then_some(seq)
}

/// Takes the note: on disk when this returns.
pub(super) fn write(fs: &dyn FileSystem, dir: &Path, seq: u64) -> Result<(), StorageError> {
    let path = path_in(dir);
    replace_file(fs, &path, &encode(seq)).map_err(|source| io_error("write", &path, source))
}

/// The note; 0 when nothing was removed yet, none when it is damaged.
pub(crate) fn read_whole(fs: &dyn FileSystem, dir: &Path) -> Result<Option<u64>, StorageError> {
    let path = path_in(dir);
    match read_file(fs, &path, BYTES as u64) {
        Ok(bytes) => Ok(decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(0)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(source) => Err(io_error("read", &path, source)),
    }
}

/// The note; a damaged one says nothing, which matters only when the index is lost too.
pub(super) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<u64, StorageError> {
    let note = read_whole(fs, dir)?;
    if note.is_none() {
        let file = path_in(dir);
        tracing::error!(file = %file.display(), "damaged: whether the ledger is as new as it was cannot be told");
    }
    Ok(note.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::sim::{FaultyFs, Loss};

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
        for bit in 0..BYTES as u64 * 8 {
            fs.flip_bit(&path_in(dir), bit).unwrap();
            assert_eq!(read(&*fs, dir).unwrap(), 0, "bit {bit}");
            fs.flip_bit(&path_in(dir), bit).unwrap();
        }
    }
}
