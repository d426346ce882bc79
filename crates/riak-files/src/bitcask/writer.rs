//! Writes directories in Riak's bitcask format, for tests, fuzz targets and benchmarks. The server
//! never uses this.

use super::hint::{self, HintEntry};
use super::record::HEADER_BYTES;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Appends one record to `out`.
pub fn encode_record(tstamp_secs: u32, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&tstamp_secs.to_be_bytes());
    out.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    let crc = crc32fast::hash(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&crc.to_be_bytes());
}

/// One data file with its hint file, in memory until it is saved.
#[derive(Clone, Debug)]
pub struct FileWriter {
    id: u32,
    data: Vec<u8>,
    hints: Vec<OwnedHint>,
    mark_tombstones: bool,
}

#[derive(Clone, Debug)]
struct OwnedHint {
    tstamp_secs: u32,
    offset: u64,
    record_bytes: u32,
    tombstone: bool,
    key: Vec<u8>,
}

impl FileWriter {
    /// An empty file with this number.
    pub fn new(id: u32) -> Self {
        Self { id, data: Vec::new(), hints: Vec::new(), mark_tombstones: true }
    }

    /// The same file with a hint file as older versions wrote it: tombstones are not marked there.
    pub fn without_tombstone_marks(mut self) -> Self {
        self.mark_tombstones = false;
        self
    }

    /// Appends a value, and returns the offset of its record.
    pub fn put(&mut self, tstamp_secs: u32, key: &[u8], value: &[u8]) -> u64 {
        self.append(tstamp_secs, key, value, false)
    }

    /// Appends a tombstone of version 0.
    pub fn tombstone_v0(&mut self, tstamp_secs: u32, key: &[u8]) -> u64 {
        self.append(tstamp_secs, key, b"bitcask_tombstone", true)
    }

    /// Appends a tombstone of version 1 or 2 that names the file `file_id`.
    pub fn tombstone(&mut self, version: u8, tstamp_secs: u32, key: &[u8], file_id: u32) -> u64 {
        let mut value = format!("bitcask_tombstone{version}").into_bytes();
        value.extend_from_slice(&file_id.to_be_bytes());
        self.append(tstamp_secs, key, &value, true)
    }

    fn append(&mut self, tstamp_secs: u32, key: &[u8], value: &[u8], tombstone: bool) -> u64 {
        let offset = self.data.len() as u64;
        encode_record(tstamp_secs, key, value, &mut self.data);
        let record_bytes = u32::try_from(HEADER_BYTES + key.len() + value.len()).unwrap_or(u32::MAX);
        self.hints.push(OwnedHint { tstamp_secs, offset, record_bytes, tombstone, key: key.to_vec() });
        offset
    }

    /// Writes only the data file, and returns its path.
    pub fn save_data(&self, dir: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{}.bitcask.data", self.id));
        fs::write(&path, &self.data)?;
        Ok(path)
    }

    /// Writes the data file and the hint file, and returns the path of the data file.
    pub fn save(&self, dir: &Path) -> io::Result<PathBuf> {
        let path = self.save_data(dir)?;
        let mut hint = Vec::new();
        for OwnedHint { tstamp_secs, offset, record_bytes, tombstone, key } in &self.hints {
            let tombstone = *tombstone && self.mark_tombstones;
            let (tstamp_secs, offset, record_bytes) = (*tstamp_secs, *offset, *record_bytes);
            hint::encode(&HintEntry { tstamp_secs, offset, record_bytes, tombstone, key }, &mut hint);
        }
        hint::encode_trailer(&mut hint);
        fs::write(path.with_extension("hint"), hint)?;
        Ok(path)
    }
}
