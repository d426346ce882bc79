//! The header of a data file.

use super::{FORMAT_VERSION, READABLE_VERSIONS, le_at};

/// Length of a data file's header in bytes.
pub(crate) const FILE_HEADER_BYTES: usize = 40;
const MAGIC: &[u8; 8] = b"OMBAKJNL";
const CRC_AT: usize = 36;

/// The header of a data file. Layout: magic 8, version u16, zero u16, file id u32, created (Unix
/// seconds) u64, salt u64, zero u32, CRC-32 of all that u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) file_id: u32,
    pub(crate) created_secs: u64,
    /// A random number that binds records to this file.
    pub(crate) salt: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The header is too short, has another magic or a wrong checksum.
    Damaged,
    /// The header is intact, but of a version that this build does not read.
    Version(u16),
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.file_id.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.created_secs.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.salt.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The original of a header in which one bit is wrong.
    pub(crate) fn decode_corrected(bytes: &[u8]) -> Option<Self> {
        let mut bytes: [u8; FILE_HEADER_BYTES] = bytes.get(..FILE_HEADER_BYTES)?.try_into().ok()?;
        for bit in 0..FILE_HEADER_BYTES * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(header) = Self::decode(&bytes) {
                return Some(header);
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        None
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        if bytes.len() < FILE_HEADER_BYTES || &bytes[..8] != MAGIC {
            return Err(HeaderError::Damaged);
        }
        if crc32fast::hash(&bytes[..CRC_AT]) != le_at!(u32, bytes, CRC_AT) {
            return Err(HeaderError::Damaged);
        }
        match le_at!(u16, bytes, 8) {
            version if READABLE_VERSIONS.contains(&version) => Ok(Self {
                file_id: le_at!(u32, bytes, 12),
                created_secs: le_at!(u64, bytes, 16),
                salt: le_at!(u64, bytes, 24),
            }),
            other => Err(HeaderError::Version(other)),
        }
    }
}
