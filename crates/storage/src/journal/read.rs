//! Reads one record: one read of known length, verified and cut into slices.

use super::coding::decompress;
use super::data_file::{DataFile, Handles};
use super::format::{EXTRA_BYTES_MAX, Kind, RECORD_HEADER_BYTES, RecordHeader};
use super::index::Entry;
use crate::backend::{CACHED_READ_BYTES_MAX, ReadMode, Stored};
use crate::error::StorageError;
use crate::fold::WriteAttrs;
use crate::fs::{is_media_error, read_at_twice};
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// How much of a record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Head,
    Whole,
}

/// A version, and the attributes of its write if the source knows them.
pub(super) struct Read {
    pub(super) stored: Stored,
    pub(super) attrs: Option<WriteAttrs>,
}

pub(super) fn read_record(
    handles: &Handles,
    file: &Arc<DataFile>,
    entry: &Entry,
    key: &[u8],
    mode: ReadMode,
    wanted: Wanted,
) -> Result<Read, StorageError> {
    let size = entry.position.size as usize;
    let length = match wanted {
        Wanted::Whole => size,
        Wanted::Head => {
            let head_max = usize::from(entry.position.head_units) * 32;
            size.min(RECORD_HEADER_BYTES + EXTRA_BYTES_MAX + key.len() + head_max)
        }
    };
    let mut bytes = read(handles, file, entry, length, mode)?;
    let offset = u64::from(entry.position.offset);
    let Some(header) = RecordHeader::parse(&bytes, file.salt) else {
        return Err(file.damaged(offset, "no record"));
    };
    let meta_len = header.meta_len();
    if header.total_len() != size as u64 {
        return Err(file.damaged(offset, "another length than the index says"));
    }
    if (bytes.len() as u64) < meta_len {
        // The head is longer than the index could record.
        bytes = read(handles, file, entry, meta_len as usize, mode)?;
    }
    let meta_len = meta_len as usize;
    let head_start = header.key_start() + key.len();
    if bytes.len() < meta_len || !header.meta_matches(&bytes[..meta_len], file.salt, offset) {
        return Err(file.damaged(offset, "the checksum of its key and head is wrong"));
    }
    if header.kind != Kind::Put || header.key_len as usize != key.len() || &bytes[header.key_start()..head_start] != key
    {
        return Err(file.damaged(offset, "another record than the index says"));
    }
    if wanted == Wanted::Whole && crc32fast::hash(&bytes[meta_len..]) != header.crc_body {
        return Err(file.damaged(offset, "the checksum of its body is wrong"));
    }
    let bytes = Bytes::from(bytes);
    let body = match wanted {
        Wanted::Head => None,
        Wanted::Whole => {
            let body = decompress(header.coding, bytes.slice(meta_len..));
            Some(body.ok_or_else(|| file.damaged(offset, "its body cannot be decompressed"))?)
        }
    };
    let RecordHeader { tstamp_secs, expires_secs, has_terms, .. } = header;
    let head = bytes.slice(head_start..meta_len);
    Ok(Read {
        stored: Stored { head, body, digest: header.digest, seq: entry.seq, stored_secs: Some(tstamp_secs) },
        attrs: Some(WriteAttrs { tstamp_secs, expires_secs, has_terms }),
    })
}

fn read(
    handles: &Handles,
    file: &Arc<DataFile>,
    entry: &Entry,
    length: usize,
    mode: ReadMode,
) -> Result<Vec<u8>, StorageError> {
    if mode == ReadMode::Cached && length > CACHED_READ_BYTES_MAX {
        return Err(StorageError::WouldBlock);
    }
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::WouldBlock => StorageError::WouldBlock,
        _ => file.io_error("read", source),
    };
    // A file that cannot be opened is no matter of one version.
    let handle = handles.get(file, mode).map_err(failed)?;
    let mut bytes = vec![0; length];
    let offset = u64::from(entry.position.offset);
    match read_at_twice(&*handle, &mut bytes, offset, mode) {
        Ok(count) if count == length => Ok(bytes),
        Ok(_) => Err(file.damaged(offset, "the file ends before the record does")),
        Err(source) if is_media_error(&source) => Err(file.media_error(offset, source)),
        Err(source) => Err(failed(source)),
    }
}
