//! Reads a data file from end to end and skips damaged parts.

use super::record::{EXTRA_BYTES_MAX, RECORD_HEADER_BYTES, RecordHeader, looks_like_record};
use crate::backend::ReadMode;
use crate::fs::{BLOCK_BYTES, File, is_media_error, read_at_twice};
use std::collections::BTreeMap;
use std::io;

/// Bytes that are read at once.
const WINDOW_BYTES: usize = 256 << 10;

/// How many blocks are skipped at most until the caller has taken them. One more ends the scan, and
/// is among those that the caller takes: the disk fails as a whole.
const SKIPPED_MAX: usize = 32;

/// One step of a scan.
#[derive(Debug)]
pub(crate) enum Scanned {
    /// A record whose fixed part, key and head are verified, and whose body lies within the file.
    Record { offset: u64, header: RecordHeader },
    /// Bytes that are not a record, up to the next record or the end of the file.
    Damage { offset: u64, length: u64 },
}

/// Reads records in file order. Its memory is one window, or one record's key and head if those are
/// longer.
pub(crate) struct Scanner<'a> {
    file: &'a dyn File,
    salt: u64,
    offset: u64,
    end: u64,
    window: Vec<u8>,
    window_start: u64,
    /// The blocks that the disk does not give back, with its errors, if they are to be skipped.
    unreadable: Option<BTreeMap<u64, io::Error>>,
}

impl<'a> Scanner<'a> {
    /// A scanner from `offset` (the start of a record) to `end`.
    pub(crate) fn new(file: &'a dyn File, salt: u64, offset: u64, end: u64) -> Self {
        Self { file, salt, offset, end, window: Vec::new(), window_start: 0, unreadable: None }
    }

    /// A scanner that takes what the disk does not give back for damage, and goes on behind it.
    pub(crate) fn skipping_unreadable(file: &'a dyn File, salt: u64, offset: u64, end: u64) -> Self {
        Self { unreadable: Some(BTreeMap::new()), ..Self::new(file, salt, offset, end) }
    }

    /// The offsets of the blocks that were skipped since the last call, with the errors of the
    /// disk.
    pub(crate) fn take_unreadable(&mut self) -> BTreeMap<u64, io::Error> {
        self.unreadable.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The next record or damaged range; none at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Scanned>> {
        if self.offset >= self.end {
            return Ok(None);
        }
        let offset = self.offset;
        if let Some(header) = self.record_at(offset)? {
            self.offset = offset + header.total_len();
            return Ok(Some(Scanned::Record { offset, header }));
        }
        self.offset = self.next_record_after(offset)?;
        Ok(Some(Scanned::Damage { offset, length: self.offset - offset }))
    }

    /// Lets the window begin with the next record, unless it has that record as a whole.
    pub(crate) fn hold_next(&mut self) {
        if !self.holds_next() {
            self.window.clear();
        }
    }

    /// Whether the window has the next record as a whole. If so, the next step does not move it.
    pub(crate) fn holds_next(&self) -> bool {
        let held = self.offset.checked_sub(self.window_start).and_then(|at| self.window.get(at as usize..));
        let Some(held) = held.filter(|held| held.len() >= RECORD_HEADER_BYTES + EXTRA_BYTES_MAX) else { return false };
        RecordHeader::parse(held, self.salt).is_some_and(|header| header.total_len() <= held.len() as u64)
    }

    /// The key of the record that this scanner returned last.
    pub(crate) fn key(&mut self, offset: u64, header: &RecordHeader) -> io::Result<&[u8]> {
        let meta = self.bytes(offset, header.meta_len())?;
        let start = header.key_start().min(meta.len());
        Ok(&meta[start..(start + header.key_len as usize).min(meta.len())])
    }

    /// The head of the record that this scanner returned last.
    pub(crate) fn head(&mut self, offset: u64, header: &RecordHeader) -> io::Result<&[u8]> {
        let meta = self.bytes(offset, header.meta_len())?;
        let start = (header.key_start() + header.key_len as usize).min(meta.len());
        Ok(&meta[start..])
    }

    /// The fixed part, the key and the head of the record that this scanner returned last.
    pub(crate) fn meta(&mut self, offset: u64, header: &RecordHeader) -> io::Result<&[u8]> {
        self.bytes(offset, header.meta_len())
    }

    /// All bytes of the record that this scanner returned last. The window grows to hold them.
    pub(crate) fn record(&mut self, offset: u64, header: &RecordHeader) -> io::Result<&[u8]> {
        self.bytes(offset, header.total_len())
    }

    /// The body of the record that this scanner returned last.
    pub(crate) fn body(&mut self, offset: u64, header: &RecordHeader) -> io::Result<Vec<u8>> {
        let mut body = vec![0; header.body_len as usize];
        match read_at_twice(self.file, &mut body, offset + header.meta_len(), ReadMode::Blocking)? {
            read if read == body.len() => Ok(body),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Whether the body of a record matches its checksum.
    pub(crate) fn body_matches(&mut self, offset: u64, header: &RecordHeader) -> io::Result<bool> {
        let mut hasher = crc32fast::Hasher::new();
        let mut at = offset + header.meta_len();
        let end = offset + header.total_len();
        while at < end {
            let part = self.bytes(at, (end - at).min(WINDOW_BYTES as u64))?;
            if part.is_empty() {
                return Ok(false);
            }
            hasher.update(part);
            at += part.len() as u64;
        }
        Ok(hasher.finalize() == header.crc_body)
    }

    fn record_at(&mut self, offset: u64) -> io::Result<Option<RecordHeader>> {
        let (salt, end) = (self.salt, self.end);
        let Some(header) =
            RecordHeader::parse(self.bytes(offset, (RECORD_HEADER_BYTES + EXTRA_BYTES_MAX) as u64)?, salt)
        else {
            return Ok(None);
        };
        if header.total_len() > end - offset {
            return Ok(None);
        }
        let meta = self.bytes(offset, header.meta_len())?;
        Ok(header.meta_matches(meta, salt, offset).then_some(header))
    }

    fn next_record_after(&mut self, damaged: u64) -> io::Result<u64> {
        let mut at = damaged + 1;
        while at + RECORD_HEADER_BYTES as u64 <= self.end {
            let salt = self.salt;
            let window = self.bytes(at, ((self.end - at) as usize).min(WINDOW_BYTES) as u64)?;
            let Some(found) = window.windows(RECORD_HEADER_BYTES).position(|bytes| looks_like_record(bytes, salt))
            else {
                let tail = RECORD_HEADER_BYTES as u64 - 1;
                at += (window.len() as u64).saturating_sub(tail).max(1);
                continue;
            };
            at += found as u64;
            if self.record_at(at)?.is_some() {
                return Ok(at);
            }
            at += 1;
        }
        Ok(self.end)
    }

    /// Fills the window, from `offset` on, with what the disk gives back, and with zeros for the
    /// rest: no record has only zeros.
    fn read_blocks(&mut self, offset: u64) -> io::Result<()> {
        let mut at = 0;
        while at < self.window.len() {
            let block = (offset + at as u64) / BLOCK_BYTES * BLOCK_BYTES;
            let stop = self.window.len().min((block + BLOCK_BYTES - offset) as usize);
            let part = &mut self.window[at..stop];
            let error = match read_at_twice(self.file, part, offset + at as u64, ReadMode::Blocking) {
                Ok(count) if count == part.len() => None,
                Ok(_) => Some(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if is_media_error(&error) => Some(error),
                Err(error) => return Err(error),
            };
            if let Some(error) = error {
                part.fill(0);
                let Some(skipped) = &mut self.unreadable else { return Err(error) };
                let same = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
                skipped.insert(block, error);
                if skipped.len() > SKIPPED_MAX {
                    // A disk that fails as a whole may take seconds for each block.
                    return Err(same);
                }
            }
            at = stop;
        }
        Ok(())
    }

    /// Returns `length` bytes from `offset`, or fewer at the end of the file. Reads the file only
    /// if the window does not have them.
    fn bytes(&mut self, offset: u64, length: u64) -> io::Result<&[u8]> {
        let length = length.min(self.end - offset.min(self.end)) as usize;
        let window_end = self.window_start + self.window.len() as u64;
        if offset < self.window_start || offset + length as u64 > window_end {
            let wanted = length.max(WINDOW_BYTES).min((self.end - offset) as usize);
            self.window.resize(wanted, 0);
            self.window_start = offset;
            // A failed read must not leave bytes of an earlier one in the window.
            match read_at_twice(self.file, &mut self.window, offset, ReadMode::Blocking) {
                Ok(count) if count == wanted => {}
                odd if self.unreadable.is_some() && odd.as_ref().err().is_none_or(is_media_error) => {
                    self.read_blocks(offset).inspect_err(|_| self.window.clear())?;
                }
                short => {
                    // The file is longer. To go on would mean to take readable data for lost.
                    self.window.clear();
                    return Err(short.err().unwrap_or(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
        let start = (offset - self.window_start) as usize;
        let end = (start + length).min(self.window.len());
        Ok(&self.window[start.min(end)..end])
    }
}
