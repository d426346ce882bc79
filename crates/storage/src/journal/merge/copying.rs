//! Decides for each record of an input file whether and how to copy it.

use super::job::MergeJob;
use super::outputs::{BUFFER_BYTES, Move};
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::fs::{File, is_media_error, read_at_twice};
use crate::journal::coding::{Compression, CompressionPoint, compress};
use crate::journal::data_file::DataFile;
use crate::journal::format::{
    ALL_SYNCED, BodyCoding, Kind, RECORD_HEADER_BYTES, RecordFields, RecordHeader, encode_record, reseal,
};
use crate::journal::index::{Entry, KeyIndex};
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use std::sync::Arc;

impl MergeJob {
    /// Decides whether and how to copy one record.
    pub(super) fn copy_if_current<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
        input: &Arc<DataFile>,
        handle: &dyn File,
        offset: u64,
        header: &RecordHeader,
        key: Vec<u8>,
    ) -> Result<(), StorageError> {
        let hashed = P::Index::key(&key);
        let current = core.index.get(hashed, ReadMode::Blocking)?.map(|found| found.entry);
        let here = |entry: &Entry| entry.position.file_id == input.id && u64::from(entry.position.offset) == offset;
        let hides_something = self.outside_seq_min < header.seq;
        match header.kind {
            Kind::Tombstone => {
                let superseded = current.is_some_and(|entry| entry.seq > header.seq);
                let is_kept = hides_something || core.retention.keeps(header.seq);
                if is_kept && !superseded {
                    self.copy_tombstone(core, key, header)?;
                } else if !superseded {
                    self.forgotten_seq = self.forgotten_seq.max(header.seq);
                }
            }
            Kind::Put => match current.filter(here) {
                // The version was deleted, or was swept when it had expired. Whether it counts as
                // expired now does not matter, because clocks can go back.
                None if current.is_none() && hides_something && expires_at(core, header) != 0 => {
                    self.copy_tombstone(core, key, header)?;
                }
                None => {}
                Some(entry) if core.shared.config.forgets_expired() && core.is_expired(entry.expires_secs) => {
                    // The versions that it superseded must not become visible again.
                    if hides_something {
                        self.copy_tombstone(core, key.clone(), header)?;
                    }
                    if core.forget(&key, here)?.is_some() {
                        input.counters.remove_live(entry.position.size);
                    }
                }
                Some(entry) if !self.copy_compressed(core, handle, &entry, header, &key)? => {
                    self.copy_version(core, input, handle, &entry, header, key)?;
                }
                Some(_) => {}
            },
        }
        if self.outputs.copies.bytes.len() >= BUFFER_BYTES { self.outputs.flush(core) } else { Ok(()) }
    }

    fn copy_version<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
        input: &DataFile,
        handle: &dyn File,
        entry: &Entry,
        header: &RecordHeader,
        key: Vec<u8>,
    ) -> Result<(), StorageError> {
        let size = header.total_len() as usize;
        let (salt, at) = self.outputs.place(core, size as u64)?;
        let start = self.outputs.copies.bytes.len();
        self.outputs.copies.bytes.resize(start + size, 0);
        let record = &mut self.outputs.copies.bytes[start..];
        let offset = u64::from(entry.position.offset);
        let failure = match read_at_twice(handle, record, offset, ReadMode::Blocking) {
            Ok(count) if count == size => {
                reseal(record, header.meta_len() as usize, salt, at);
                None
            }
            Ok(_) => Some(input.damaged(offset, "the file ends before the record does")),
            Err(source) if is_media_error(&source) => {
                Some(core.judge_media_error(Some(input.id), input.media_error(offset, source)))
            }
            Err(source) => Some(input.io_error("read", source)),
        };
        if let Some(error) = failure {
            self.outputs.copies.bytes.truncate(start);
            // The version stays where it is, and so does its file. The others are copied.
            return if error.is_unreadable_version() { Ok(()) } else { Err(error) };
        }
        self.bytes_read += u64::from(header.body_len);
        self.outputs.copies.moves.push(Move { key, header: *header, from: Some(entry.position) });
        Ok(())
    }

    /// Copies a version whose body is to be compressed at its first merge. False if there is
    /// nothing to compress.
    fn copy_compressed<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
        handle: &dyn File,
        entry: &Entry,
        header: &RecordHeader,
        key: &[u8],
    ) -> Result<bool, StorageError> {
        let config = &core.shared.config;
        let is_due = config.compression_point == CompressionPoint::OnCompact && config.compression != Compression::None;
        if !is_due || header.coding != BodyCoding::Plain {
            return Ok(false);
        }
        let meta_len = header.meta_len() as usize;
        let mut record = vec![0; header.total_len() as usize];
        let read = read_at_twice(handle, &mut record, u64::from(entry.position.offset), ReadMode::Blocking);
        // A body that cannot be read or has a wrong checksum is copied unchanged, so the damage
        // stays detectable.
        if !matches!(read, Ok(count) if count == record.len()) {
            return Ok(false);
        }
        let (meta, body) = record.split_at(meta_len);
        if crc32fast::hash(body) != header.crc_body {
            return Ok(false);
        }
        let Some((coding, body)) = compress(config.compression, &[body]) else { return Ok(false) };
        let fields = RecordFields {
            kind: Kind::Put,
            tstamp_secs: header.tstamp_secs,
            expires_secs: header.expires_secs,
            synced_to: ALL_SYNCED,
            seq: header.seq,
            digest: header.digest,
            coding,
            has_terms: header.has_terms,
            crc_body: crc32fast::hash(&body),
        };
        let head = &meta[header.key_start() + key.len()..];
        let (salt, at) = self.outputs.place(core, (meta_len + body.len()) as u64)?;
        encode_record(&mut self.outputs.copies.bytes, &fields, key, head, &[&body], salt, at);
        self.bytes_read += u64::from(header.body_len);
        let header = RecordHeader { coding, body_len: body.len() as u32, crc_body: fields.crc_body, ..*header };
        self.outputs.copies.moves.push(Move { key: key.to_vec(), header, from: Some(entry.position) });
        Ok(true)
    }

    fn copy_tombstone<P: JournalPolicy>(
        &mut self,
        core: &Core<P>,
        key: Vec<u8>,
        header: &RecordHeader,
    ) -> Result<(), StorageError> {
        let (salt, at) = self.outputs.place(core, (RECORD_HEADER_BYTES + key.len()) as u64)?;
        let fields = RecordFields {
            kind: Kind::Tombstone,
            tstamp_secs: header.tstamp_secs,
            expires_secs: 0,
            coding: BodyCoding::Plain,
            has_terms: false,
            synced_to: ALL_SYNCED,
            seq: header.seq,
            digest: 0,
            crc_body: 0,
        };
        encode_record(&mut self.outputs.copies.bytes, &fields, &key, &[], &[], salt, at);
        let header = RecordHeader {
            kind: Kind::Tombstone,
            coding: BodyCoding::Plain,
            has_terms: false,
            expires_secs: 0,
            head_len: 0,
            body_len: 0,
            digest: 0,
            ..*header
        };
        self.outputs.copies.moves.push(Move { key, header, from: None });
        Ok(())
    }
}

fn expires_at<P: JournalPolicy>(core: &Core<P>, header: &RecordHeader) -> u32 {
    core.shared.config.expires_at(header.tstamp_secs, header.expires_secs)
}
