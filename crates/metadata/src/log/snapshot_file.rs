//! The file of the newest snapshot. It is replaced as a whole and durably.
//!
//! Format 1, all numbers little-endian: the magic `OMBAKMDS`, the format (4 bytes), the length of
//! the description (4 bytes), the length of the state (8 bytes), the description, the state, and
//! the XXH3 of all bytes before (8 bytes). The description says which entries the state includes.

use super::error::LogError;
use super::log_file::io_error;
use bytes::Bytes;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The name of the file.
pub(crate) const SNAPSHOT_FILE: &str = "metadata.snapshot";
/// No snapshot is longer: the largest number of types and buckets with long names takes less.
pub(crate) const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;
const MAGIC: &[u8; 8] = b"OMBAKMDS";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 24;

/// A snapshot, and its description. The file does not know what they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedSnapshot {
    pub description: Bytes,
    pub state: Bytes,
}

/// The file in the directory of a node.
#[derive(Clone)]
pub(crate) struct SnapshotFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl SnapshotFile {
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path) -> Self {
        Self { fs, path: dir.join(SNAPSHOT_FILE) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the snapshot; `None` without a file.
    pub fn read(&self) -> Result<Option<SavedSnapshot>, LogError> {
        let bytes = match read_file(&*self.fs, &self.path, SNAPSHOT_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LogError::Io { op: "read", path: self.path.clone(), source }),
        };
        decode(&Bytes::from(bytes)).map(Some).map_err(|what| LogError::Unusable { path: self.path.clone(), what })
    }

    /// Removes the snapshot. The caller makes the directory durable.
    pub fn remove(&self) -> Result<(), LogError> {
        match self.fs.remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &self.path)(e)),
            _ => Ok(()),
        }
    }

    /// Replaces the snapshot.
    pub fn save(&self, snapshot: &SavedSnapshot) -> Result<(), LogError> {
        replace_file(&*self.fs, &self.path, &encode(snapshot)).map_err(io_error("replace", &self.path))
    }
}

fn encode(snapshot: &SavedSnapshot) -> Vec<u8> {
    let SavedSnapshot { description, state } = snapshot;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + description.len() + state.len() + 8);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&(description.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(state.len() as u64).to_le_bytes());
    bytes.extend_from_slice(description);
    bytes.extend_from_slice(state);
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &Bytes) -> Result<SavedSnapshot, String> {
    let damaged = || "is damaged (it does not match its checksum)".to_owned();
    let end = bytes.len().checked_sub(8).filter(|end| *end >= HEADER_BYTES).ok_or_else(damaged)?;
    let number = |from: usize, to: usize| bytes[from..to].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    if &bytes[..8] != MAGIC || number(end, bytes.len()) != xxh3_64(&bytes[..end]) {
        return Err(damaged());
    }
    let format = number(8, 12);
    if format != u64::from(FORMAT) {
        return Err(format!("has format {format}, and this version of ombak reads format {FORMAT}"));
    }
    let state_at = HEADER_BYTES + number(12, 16) as usize;
    if Some(end as u64) != number(16, 24).checked_add(state_at as u64) {
        return Err(damaged());
    }
    Ok(SavedSnapshot { description: bytes.slice(HEADER_BYTES..state_at), state: bytes.slice(state_at..end) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flipped_bit_goes_unnoticed_and_no_missing_end() {
        let snapshot = SavedSnapshot { description: "which".into(), state: "what".into() };
        let bytes = encode(&snapshot);
        assert_eq!(decode(&bytes.clone().into()), Ok(snapshot));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&flipped.into()).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(decode(&Bytes::copy_from_slice(&bytes[..length])).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_later_format_is_named() {
        let mut bytes = encode(&SavedSnapshot { description: Bytes::new(), state: Bytes::new() });
        bytes[8] = 9;
        let end = bytes.len() - 8;
        let checksum = xxh3_64(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        assert!(decode(&bytes.into()).unwrap_err().starts_with("has format 9"));
    }
}
