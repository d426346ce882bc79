//! The frame of the small files of a store: magic 8, version u16, content, CRC-32 of all that u32. Little-endian.
//!
//! Invariant: what a newer build wrote is refused by name; it is not taken for damage, which a start may set right.

use super::format::le_at;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, read_file};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

/// Longer than any of them, newer ones included: bounds what a start reads.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Where the content begins.
pub(super) const CONTENT_AT: usize = 10;

/// What a kind of small file begins with.
pub(crate) struct Frame {
    pub(crate) magic: &'static [u8; 8],
    /// Versions that this build reads; it writes the last one.
    pub(crate) versions: RangeInclusive<u16>,
}

impl Frame {
    /// The file as `put` completes it.
    pub(crate) fn seal(&self, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&self.versions.end().to_le_bytes());
        put(&mut bytes);
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// All of the file but its checksum; none when that is wrong. An error when it is of another version.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8], path: &Path) -> Result<Option<&'a [u8]>, StorageError> {
        let Some((sealed, crc)) = bytes.split_last_chunk::<4>() else { return Ok(None) };
        let is_whole = sealed.len() >= CONTENT_AT && sealed.starts_with(self.magic);
        if !is_whole || crc32fast::hash(sealed) != u32::from_le_bytes(*crc) {
            return Ok(None);
        }
        match le_at!(u16, sealed, 8) {
            version if self.versions.contains(&version) => Ok(Some(sealed)),
            version => Err(StorageError::other_format(path, version)),
        }
    }
}

/// The bytes of a small file, none of them when there are too many; none when there is no file.
pub(super) fn read_small_file(fs: &dyn FileSystem, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match read_file(fs, path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Vec::new())),
        Err(source) => Err(io_error("read", path, source)),
    }
}
