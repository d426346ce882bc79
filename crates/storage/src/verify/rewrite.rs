//! Writes a new data file from the intact parts of others.
//!
//! The file is written like the output of a merge: under another name until all of it is on disk.
//! So a crash leaves either nothing or the whole file.

use crate::error::{StorageError, io_error};
use crate::fold::WriteAttrs;
use crate::fs::{File, FileSystem, OpenMode};
use crate::journal::format::{
    ALL_SYNCED, BodyCoding, FILE_HEADER_BYTES, FileHeader, HintEntry, HintWriter, Kind, RecordFields, RecordHeader,
    body_crc, encode_record, reseal,
};
use crate::journal::{data_path, hint_path, hint_temporary_path, merging_path};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A version that is to be written and is in no data file.
pub(super) struct Rescued<'a> {
    pub(super) key: &'a [u8],
    pub(super) head: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) seq: u64,
    pub(super) digest: u64,
    pub(super) attrs: WriteAttrs,
}

/// The writer of a new data file; see the module.
pub(super) struct Rewriter<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    id: u32,
    salt: u64,
    path: PathBuf,
    file: Arc<dyn File>,
    hint: HintWriter,
    length: u64,
    buffer: Vec<u8>,
}

impl<'a> Rewriter<'a> {
    /// Begins the file. Removes what an interrupted repair has left under its name.
    pub(super) fn create(fs: &'a dyn FileSystem, dir: &'a Path, id: u32, salt: u64) -> Result<Self, StorageError> {
        let path = merging_path(dir, id);
        let temporary = hint_temporary_path(dir, id);
        let create = || {
            for old in [&path, &temporary] {
                match fs.remove_file(old) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            let file = fs.open(&path, OpenMode::CreateNew)?;
            file.write_at(&FileHeader { file_id: id, created_secs: 0, salt }.encode(), 0)?;
            Ok((file, HintWriter::create(fs, temporary.clone(), id, salt)?))
        };
        let (file, hint) = create().map_err(|source| io_error("create", &path, source))?;
        let length = FILE_HEADER_BYTES as u64;
        Ok(Self { fs, dir, id, salt, path, file, hint, length, buffer: Vec::new() })
    }

    /// The length so far in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Copies an intact record.
    pub(super) fn copy(&mut self, record: &[u8], header: &RecordHeader, key: &[u8]) -> Result<(), StorageError> {
        self.buffer.clear();
        self.buffer.extend_from_slice(record);
        reseal(&mut self.buffer, header.meta_len() as usize, self.salt, self.length);
        self.append(header, key)
    }

    /// Writes a tombstone.
    pub(super) fn tombstone(&mut self, key: &[u8], seq: u64, tstamp_secs: u32) -> Result<(), StorageError> {
        let attrs = WriteAttrs { tstamp_secs, expires_secs: 0, has_terms: false };
        let gone = Rescued { key, head: &[], body: &[], seq, digest: 0, attrs };
        self.write(Kind::Tombstone, &gone)
    }

    /// Writes a version.
    pub(super) fn put(&mut self, version: &Rescued<'_>) -> Result<(), StorageError> {
        self.write(Kind::Put, version)
    }

    fn write(&mut self, kind: Kind, version: &Rescued<'_>) -> Result<(), StorageError> {
        let Rescued { key, head, body, seq, digest, attrs } = *version;
        let WriteAttrs { tstamp_secs, expires_secs, has_terms } = attrs;
        let fields = RecordFields {
            kind,
            tstamp_secs,
            expires_secs,
            synced_to: ALL_SYNCED,
            seq,
            digest,
            coding: BodyCoding::Plain,
            has_terms,
            crc_body: if kind == Kind::Tombstone { 0 } else { body_crc(&[body]) },
        };
        self.buffer.clear();
        encode_record(&mut self.buffer, &fields, key, head, &[body], self.salt, self.length);
        match RecordHeader::parse(&self.buffer, self.salt) {
            Some(header) => self.append(&header, key),
            None => Err(StorageError::TooLarge(format!("a version of {} bytes", self.buffer.len()))),
        }
    }

    fn append(&mut self, header: &RecordHeader, key: &[u8]) -> Result<(), StorageError> {
        let failed = |source| io_error("write", &self.path, source);
        self.file.write_at(&self.buffer, self.length).map_err(failed)?;
        self.hint.add(&HintEntry::of(self.length, header, key)).map_err(failed)?;
        self.length += self.buffer.len() as u64;
        Ok(())
    }

    /// Syncs the file and gives it its name.
    pub(super) fn finish(self) -> Result<(), StorageError> {
        let Self { fs, dir, id, path, file, hint, length, .. } = self;
        let finish = || {
            file.sync_data()?;
            fs.rename(&path, &data_path(dir, id))?;
            // A hint file without its data file would count as a loss.
            fs.sync_dir(dir)?;
            hint.finish(fs, &hint_path(dir, id), length, 0)?;
            fs.sync_dir(dir)
        };
        finish().map_err(|source| io_error("write", &path, source))
    }
}
