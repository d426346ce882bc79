//! The bytes of the log's file, format 1. All numbers are little-endian.
//!
//! The file begins with a header of 32 bytes: the magic `OMBAKMDL`, the format (4 bytes), zero (4
//! bytes), the identity of the log (8 bytes), and the XXH3 of these 24 bytes (8 bytes).
//!
//! A record has 28 bytes and a body: the magic `MREC`, the length of the body (4 bytes), how many
//! bytes of the file were durable when the record was written (8 bytes), the kind (1 byte), zero (3
//! bytes), a checksum (8 bytes), the body. The checksum is the XXH3 of all other bytes of the
//! record, of the identity of the log and of the record's offset in the file. So a record of
//! another log, or one that was written to a wrong place, is no record.
//!
//! | kind | body |
//! | --- | --- |
//! | 1, entry | index (8 bytes), the entry |
//! | 2, removal of the newest entries | index of the first one that is removed (8 bytes) |
//! | 3, committed | which entry is known to be committed |
//! | 4, purged | index (8 bytes) of the last entry before the log begins, which entry that is |
//! | 5, seal | nothing |
//!
//! A seal begins at a multiple of 512 bytes, after zeros. It says in `durable` that the records
//! right before those zeros are durable. A disk that loses one sector therefore never takes a
//! record together with its seal.

use xxhash_rust::xxh3::Xxh3;

/// The format that is written.
pub(super) const FORMAT: u32 = 1;
const FILE_MAGIC: &[u8; 8] = b"OMBAKMDL";
const RECORD_MAGIC: &[u8; 4] = b"MREC";
pub(super) const HEADER_BYTES: usize = 32;
pub(super) const RECORD_HEADER_BYTES: usize = 28;
pub(super) const SECTOR_BYTES: usize = 512;
/// No entry is longer. The property maps of a bucket, a ring of 1024 partitions and a membership of
/// hundreds of nodes take far less.
pub(crate) const ENTRY_BYTES_MAX: usize = 16 << 20;

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Entry { index: u64, entry: &'a [u8] },
    RemoveFrom { index: u64 },
    Committed { which: &'a [u8] },
    Purged { index: u64, which: &'a [u8] },
    Seal,
}

impl Record<'_> {
    fn kind(&self) -> u8 {
        match self {
            Self::Entry { .. } => 1,
            Self::RemoveFrom { .. } => 2,
            Self::Committed { .. } => 3,
            Self::Purged { .. } => 4,
            Self::Seal => 5,
        }
    }

    fn body(&self) -> (Option<u64>, &[u8]) {
        match self {
            Self::Entry { index, entry } => (Some(*index), entry),
            Self::RemoveFrom { index } => (Some(*index), &[]),
            Self::Committed { which } => (None, which),
            Self::Purged { index, which } => (Some(*index), which),
            Self::Seal => (None, &[]),
        }
    }
}

/// A record that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub record: Record<'a>,
    /// How many bytes of the file were durable when the record was written.
    pub durable: u64,
    /// The offset of what follows.
    pub end: usize,
}

/// Why a file is not a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    /// Holds the format.
    Format(u32),
    Damaged,
}

pub(super) fn header(identity: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(FILE_MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&identity.to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The identity of the log.
pub(super) fn read_header(bytes: &[u8]) -> Result<u64, BadHeader> {
    let header = bytes.get(..HEADER_BYTES).ok_or(BadHeader::Damaged)?;
    if &header[..8] != FILE_MAGIC || xxhash_rust::xxh3::xxh3_64(&header[..24]) != u64_at(header, 24) {
        return Err(BadHeader::Damaged);
    }
    let format = u32_at(header, 8);
    if format == FORMAT { Ok(u64_at(header, 16)) } else { Err(BadHeader::Format(format)) }
}

/// Appends a record that will lie at `offset`.
pub(super) fn write_record(record: &Record<'_>, identity: u64, durable: u64, offset: u64, out: &mut Vec<u8>) {
    let start = out.len();
    let (index, rest) = record.body();
    let length = rest.len() + index.map_or(0, |_| 8);
    out.extend_from_slice(RECORD_MAGIC);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.extend_from_slice(&durable.to_le_bytes());
    out.extend_from_slice(&[record.kind(), 0, 0, 0]);
    out.extend_from_slice(&[0; 8]);
    if let Some(index) = index {
        out.extend_from_slice(&index.to_le_bytes());
    }
    out.extend_from_slice(rest);
    let sum = checksum(&out[start..], identity, offset);
    out[start + 20..start + 28].copy_from_slice(&sum.to_le_bytes());
}

/// The record at `offset`, or `None` if the bytes there are no record.
pub(super) fn read_record(file: &[u8], offset: usize, identity: u64) -> Option<Found<'_>> {
    let rest = file.get(offset..)?;
    let head = rest.get(..RECORD_HEADER_BYTES)?;
    if &head[..4] != RECORD_MAGIC {
        return None;
    }
    let length = u32_at(head, 4) as usize;
    let bytes = rest.get(..RECORD_HEADER_BYTES.checked_add(length)?)?;
    if checksum(bytes, identity, offset as u64) != u64_at(head, 20) {
        return None;
    }
    let body = &bytes[RECORD_HEADER_BYTES..];
    let index = || body.get(..8).map(|_| u64_at(body, 0));
    let record = match head[16] {
        1 => Record::Entry { index: index()?, entry: &body[8..] },
        2 => Record::RemoveFrom { index: index()? },
        3 => Record::Committed { which: body },
        4 => Record::Purged { index: index()?, which: &body[8..] },
        5 => Record::Seal,
        _ => return None,
    };
    Some(Found { record, durable: u64_at(head, 8), end: offset + bytes.len() })
}

/// Where the next seal begins when the records end at `end`.
pub(super) fn seal_offset(end: usize) -> usize {
    end.next_multiple_of(SECTOR_BYTES)
}

/// The seal of the records that end at `end`, if there is one.
pub(super) fn read_seal(file: &[u8], end: usize, identity: u64) -> Option<Found<'_>> {
    let at = seal_offset(end);
    let is_seal = |found: &Found<'_>| found.record == Record::Seal && found.durable == end as u64;
    let found = read_record(file, at, identity).filter(is_seal)?;
    file[end..at].iter().all(|byte| *byte == 0).then_some(found)
}

/// Looks after `offset` for a record which says that the byte at `offset` was durable.
pub(super) fn was_durable(file: &[u8], offset: usize, identity: u64) -> bool {
    let mut at = offset + 1;
    while let Some(next) = file.get(at..).and_then(|rest| rest.windows(4).position(|four| four == RECORD_MAGIC)) {
        at += next;
        if read_record(file, at, identity).is_some_and(|found| found.durable > offset as u64) {
            return true;
        }
        at += 1;
    }
    false
}

fn checksum(record: &[u8], identity: u64, offset: u64) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&record[..20]);
    hasher.update(&identity.to_le_bytes());
    hasher.update(&offset.to_le_bytes());
    hasher.update(&record[RECORD_HEADER_BYTES..]);
    hasher.digest()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
