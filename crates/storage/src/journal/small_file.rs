//! The frame of the small files of a store: magic 8, version u16, content, CRC-32 of all that u32.
//! All integers are little-endian.
//!
//! Invariant: a file of a newer build is refused with an error that names it. It is not taken for
//! damage, which a start may repair.

use super::format::le_at;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, read_file};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

/// Longer than any small file, newer formats included. Bounds what a start reads.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The offset of the content.
pub(super) const CONTENT_AT: usize = 10;

/// The frame of one kind of small file.
pub(crate) struct Frame {
    pub(crate) magic: &'static [u8; 8],
    /// Versions that this build reads. It writes the last one.
    pub(crate) versions: RangeInclusive<u16>,
}

impl Frame {
    /// Builds the file; `put` appends the content.
    pub(crate) fn seal(&self, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&self.versions.end().to_le_bytes());
        put(&mut bytes);
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The file without its checksum; none if the checksum or the frame is wrong. An error if the
    /// version is unknown.
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

/// The bytes of a small file; none if there is no file. A file that is too long comes back empty,
/// so it counts as damaged.
pub(super) fn read_small_file(fs: &dyn FileSystem, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match read_file(fs, path, FILE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Vec::new())),
        Err(source) => Err(io_error("read", path, source)),
    }
}
