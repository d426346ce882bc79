//! Hint files: they list the records of a closed data file, so that a start need not read the data.
//!
//! ```text
//! header   magic 8, version u16, zero u16, file id u32, salt u64, zero u32, CRC-32 u32
//! block*   length u32, CRC-32 of the payload u32, payload: entries
//!   entry  seq u64, digest u64, offset u32, key_len u32, head_len u32, body_len u32, tstamp u32,
//!          kind u8, flags u8, zero 2, expires u32 with flag 1, key;
//!          flag 2 says that the head has index entries
//! trailer  ffffffff, CRC-32 of the rest u32, length of the data file u64, entries u64,
//!          lost ranges u32, zero u32
//! ```
//!
//! Invariant: a hint file gets its name only after its data file was synced. So the presence of a
//! hint file proves that the whole data file had reached the disk.

use super::record::{EXTRA_BYTES_MAX, RecordHeader, extra_len};
use super::{FORMAT_VERSION, Kind, READABLE_VERSIONS, le_at};
use crate::backend::ReadMode;
use crate::fs::{File, FileSystem, OpenMode, is_media_error, read_at_twice};
use crate::limits::{KEY_BYTES_MAX, SEQ_MAX};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"OMBAKHNT";
const HEADER_BYTES: usize = 32;
const BLOCK_HEADER_BYTES: usize = 8;
const ENTRY_BYTES: usize = 40;
const TRAILER_BYTES: usize = 32;
const EXPIRES: u8 = 1;
const TERMS: u8 = 2;
const TRAILER_MARK: u32 = u32::MAX;
/// Entries are gathered into blocks of about this size.
const BLOCK_BYTES: usize = 64 << 10;
/// The longest block: its last entry may have the longest key.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + ENTRY_BYTES + EXTRA_BYTES_MAX + KEY_BYTES_MAX;

/// The description of one record in a hint file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HintEntry<'a> {
    pub(crate) kind: Kind,
    pub(crate) seq: u64,
    pub(crate) digest: u64,
    pub(crate) offset: u32,
    pub(crate) head_len: u32,
    pub(crate) body_len: u32,
    pub(crate) tstamp_secs: u32,
    /// Unix seconds; 0: never.
    pub(crate) expires_secs: u32,
    /// Whether the head has index entries.
    pub(crate) has_terms: bool,
    pub(crate) key: &'a [u8],
}

impl<'a> HintEntry<'a> {
    /// The hint entry of a record whose header has been read. `offset` lies within a data file.
    pub(crate) fn of(offset: u64, header: &RecordHeader, key: &'a [u8]) -> Self {
        Self {
            kind: header.kind,
            seq: header.seq,
            digest: header.digest,
            offset: offset as u32,
            head_len: header.head_len,
            body_len: header.body_len,
            tstamp_secs: header.tstamp_secs,
            expires_secs: header.expires_secs,
            has_terms: header.has_terms,
            key,
        }
    }
}

/// What the trailer of a complete hint file says about the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HintTrailer {
    pub(crate) data_length: u64,
    pub(crate) entries: u64,
    pub(crate) lost_ranges: u32,
}

/// Writes a hint file beside its data file, under a temporary name until it is complete.
pub(crate) struct HintWriter {
    file: Arc<dyn File>,
    temporary: PathBuf,
    block: Vec<u8>,
    written: u64,
    entries: u64,
}

impl HintWriter {
    pub(crate) fn create(fs: &dyn FileSystem, temporary: PathBuf, file_id: u32, salt: u64) -> io::Result<Self> {
        let file = fs.open(&temporary, OpenMode::CreateNew)?;
        let begun = file.write_at(&encode_header(FORMAT_VERSION, file_id, salt), 0);
        let hint = Self { file, temporary, block: Vec::new(), written: HEADER_BYTES as u64, entries: 0 };
        match begun {
            Ok(()) => Ok(hint),
            Err(error) => {
                hint.abandon(fs);
                Err(error)
            }
        }
    }

    pub(crate) fn add(&mut self, entry: &HintEntry<'_>) -> io::Result<()> {
        if self.block.is_empty() {
            self.block.extend_from_slice(&[0; BLOCK_HEADER_BYTES]);
        }
        let block = &mut self.block;
        block.extend_from_slice(&entry.seq.to_le_bytes());
        block.extend_from_slice(&entry.digest.to_le_bytes());
        block.extend_from_slice(&entry.offset.to_le_bytes());
        block.extend_from_slice(&(entry.key.len() as u32).to_le_bytes());
        block.extend_from_slice(&entry.head_len.to_le_bytes());
        block.extend_from_slice(&entry.body_len.to_le_bytes());
        block.extend_from_slice(&entry.tstamp_secs.to_le_bytes());
        let flags = (u8::from(entry.expires_secs != 0) * EXPIRES) | (u8::from(entry.has_terms) * TERMS);
        block.extend_from_slice(&[entry.kind.code(), flags, 0, 0]);
        if flags & EXPIRES != 0 {
            block.extend_from_slice(&entry.expires_secs.to_le_bytes());
        }
        block.extend_from_slice(entry.key);
        self.entries += 1;
        if self.block.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let (header, payload) = self.block.split_at_mut(BLOCK_HEADER_BYTES);
        header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[4..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        self.file.write_at(&self.block, self.written)?;
        self.written += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// The length in bytes that the complete file will have.
    pub(crate) fn length(&self) -> u64 {
        self.written + (self.block.len() + TRAILER_BYTES) as u64
    }

    /// Completes the file, syncs it and gives it its name. The data file must have been synced
    /// before.
    pub(crate) fn finish(
        mut self,
        fs: &dyn FileSystem,
        path: &Path,
        data_length: u64,
        lost_ranges: u32,
    ) -> io::Result<()> {
        let result = self.complete(data_length, lost_ranges).and_then(|()| fs.rename(&self.temporary, path));
        if result.is_err() {
            self.abandon(fs);
        }
        result
    }

    fn complete(&mut self, data_length: u64, lost_ranges: u32) -> io::Result<()> {
        self.flush()?;
        let trailer = HintTrailer { data_length, entries: self.entries, lost_ranges };
        self.file.write_at(&encode_trailer(&trailer), self.written)?;
        self.file.sync_data()
    }

    /// Removes the unfinished file. If that fails, the next start removes it.
    pub(crate) fn abandon(self, fs: &dyn FileSystem) {
        let _ = fs.remove_file(&self.temporary);
    }
}

fn encode_header(version: u16, file_id: u32, salt: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&version.to_le_bytes());
    bytes[12..16].copy_from_slice(&file_id.to_le_bytes());
    bytes[16..24].copy_from_slice(&salt.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..28]);
    bytes[28..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn encode_trailer(trailer: &HintTrailer) -> [u8; TRAILER_BYTES] {
    let mut bytes = [0; TRAILER_BYTES];
    bytes[..4].copy_from_slice(&TRAILER_MARK.to_le_bytes());
    bytes[8..16].copy_from_slice(&trailer.data_length.to_le_bytes());
    bytes[16..24].copy_from_slice(&trailer.entries.to_le_bytes());
    bytes[24..28].copy_from_slice(&trailer.lost_ranges.to_le_bytes());
    let crc = crc32fast::hash(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The salt of the data file that a hint file belongs to; none if its header is damaged or names
/// another file.
pub(crate) fn salt_of_hint(file: &dyn File, file_id: u32) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER_BYTES];
    let Some(read) = read_if_there(file, &mut header, 0)? else { return Ok(None) };
    let salt = le_at!(u64, header, 16);
    let is_header = |version| header == encode_header(version, file_id, salt);
    Ok((read == HEADER_BYTES && READABLE_VERSIONS.clone().any(is_header)).then_some(salt))
}

/// Reads a hint file block by block.
pub(crate) struct HintReader {
    file: Arc<dyn File>,
    trailer: HintTrailer,
    offset: u64,
    end: u64,
    entries_read: u64,
    block: Vec<u8>,
}

impl HintReader {
    /// None if the file is of another format version, belongs to another data file or is
    /// incomplete.
    pub(crate) fn open(file: Arc<dyn File>, file_id: u32, salt: u64) -> io::Result<Option<Self>> {
        let length = file.length()?;
        let Some(end) = length.checked_sub(TRAILER_BYTES as u64).filter(|end| *end >= HEADER_BYTES as u64) else {
            return Ok(None);
        };
        let mut header = [0; HEADER_BYTES];
        let mut trailer = [0; TRAILER_BYTES];
        let is_read = read_if_there(&*file, &mut header, 0)?.is_some();
        if !is_read || read_if_there(&*file, &mut trailer, end)?.is_none() {
            return Ok(None);
        }
        let whole = READABLE_VERSIONS.clone().any(|version| header == encode_header(version, file_id, salt))
            && le_at!(u32, trailer, 0) == TRAILER_MARK
            && le_at!(u32, trailer, 4) == crc32fast::hash(&trailer[8..]);
        let trailer = HintTrailer {
            data_length: le_at!(u64, trailer, 8),
            entries: le_at!(u64, trailer, 16),
            lost_ranges: le_at!(u32, trailer, 24),
        };
        let offset = HEADER_BYTES as u64;
        Ok(whole.then_some(Self { file, trailer, offset, end, entries_read: 0, block: Vec::new() }))
    }

    /// Opens a hint file whose data file is missing, and returns the salt that the hint file names.
    /// None in the same cases as [`open`](Self::open).
    pub(crate) fn open_alone(file: Arc<dyn File>, file_id: u32) -> io::Result<Option<(u64, Self)>> {
        let Some(salt) = salt_of_hint(&*file, file_id)? else { return Ok(None) };
        Ok(Self::open(file, file_id, salt)?.map(|reader| (salt, reader)))
    }

    pub(crate) fn trailer(&self) -> HintTrailer {
        self.trailer
    }

    /// Calls `visit` with every entry. False if the file turns out to be damaged: entries seen
    /// before are right, later ones are missing.
    pub(crate) fn for_each(mut self, mut visit: impl FnMut(HintEntry<'_>)) -> io::Result<bool> {
        while self.offset < self.end {
            if !self.read_block()? {
                return Ok(false);
            }
            let mut rest = self.block.as_slice();
            while !rest.is_empty() {
                let Some((entry, after)) = split_entry(rest) else { return Ok(false) };
                visit(entry);
                self.entries_read += 1;
                rest = after;
            }
        }
        Ok(self.entries_read == self.trailer.entries)
    }

    fn read_block(&mut self) -> io::Result<bool> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        if read_if_there(&*self.file, &mut header, self.offset)? != Some(BLOCK_HEADER_BYTES) {
            return Ok(false);
        }
        let length = le_at!(u32, header, 0) as usize;
        let start = self.offset + BLOCK_HEADER_BYTES as u64;
        if length > BLOCK_BYTES_MAX || start + length as u64 > self.end {
            return Ok(false);
        }
        self.block.resize(length, 0);
        let read = read_if_there(&*self.file, &mut self.block, start)?;
        self.offset = start + length as u64;
        Ok(read == Some(length) && crc32fast::hash(&self.block) == le_at!(u32, header, 4))
    }
}

/// Reads a part of a hint file; none if the disk does not give it back. A hint file only repeats
/// what its data file says, so it counts as damaged then.
fn read_if_there(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    match read_at_twice(file, buffer, offset, ReadMode::Blocking) {
        Err(error) if is_media_error(&error) => Ok(None),
        read => read.map(Some),
    }
}

fn split_entry(bytes: &[u8]) -> Option<(HintEntry<'_>, &[u8])> {
    if bytes.len() < ENTRY_BYTES {
        return None;
    }
    let (fixed, rest) = bytes.split_at(ENTRY_BYTES);
    let key_len = le_at!(u32, fixed, 20) as usize;
    let flags = fixed[37];
    if flags & !(EXPIRES | TERMS) != 0 {
        return None;
    }
    let (expires_secs, rest) = match flags & EXPIRES {
        0 => (0, rest),
        _ => rest.split_first_chunk::<4>().map(|(secs, rest)| (u32::from_le_bytes(*secs), rest))?,
    };
    if rest.len() < key_len {
        return None;
    }
    let (key, after) = rest.split_at(key_len);
    let entry = HintEntry {
        kind: Kind::from_code(fixed[36])?,
        seq: le_at!(u64, fixed, 0),
        digest: le_at!(u64, fixed, 8),
        offset: le_at!(u32, fixed, 16),
        head_len: le_at!(u32, fixed, 24),
        body_len: le_at!(u32, fixed, 28),
        tstamp_secs: le_at!(u32, fixed, 32),
        expires_secs,
        has_terms: flags & TERMS != 0,
        key,
    };
    let size = (super::RECORD_HEADER_BYTES + extra_len(expires_secs)) as u64
        + u64::from(entry.head_len)
        + u64::from(entry.body_len)
        + key_len as u64;
    let is_possible = key_len <= KEY_BYTES_MAX && size <= u64::from(u32::MAX) && entry.seq <= SEQ_MAX;
    is_possible.then_some((entry, after))
}
