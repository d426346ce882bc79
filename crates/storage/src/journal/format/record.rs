//! A record: a version of a key, or a storage tombstone, which says that the store removed the key.
//!
//! ```text
//!  0 crc_meta  u32   of salt, offset, bytes 4…48, key and head
//!  4 crc_body  u32   of the body
//!  8 kind      u8    1 put, 2 tombstone
//!  9 flags     u8    1 expires, 2 body compressed by lz4, 4 by zstd, 8 the head has index entries
//! 10 mark      u16   low half of the file's salt: cheap to search for after damage
//! 12 key_len   u32
//! 16 head_len  u32
//! 20 body_len  u32
//! 24 tstamp    u32   Unix seconds of the write
//! 28 synced_to u32   bytes of this file that were known to be on disk when the record was written
//! 32 seq       u64
//! 40 digest    u64
//! 48 expires   u32   only with flag 1: Unix seconds
//!    key, head, body
//! ```
//!
//! A compressed body begins with its length before compression, u32. `body_len` and `crc_body`
//! refer to the stored bytes. Files of version 1 have no flags.
//!
//! After a crash, `synced_to` tells a reader which damage is a torn write and which is corruption.

use super::le_at;
use crate::limits::{KEY_BYTES_MAX, SEQ_MAX};
use crc32fast::Hasher;

/// Length of a record's fixed part in bytes.
pub(crate) const RECORD_HEADER_BYTES: usize = 48;
/// The value of `synced_to` in files that get their name only when all of them is on disk.
pub(crate) const ALL_SYNCED: u32 = u32::MAX;
const KIND_AT: usize = 8;
const MARK_AT: usize = 10;

const FLAGS_AT: usize = 9;
const EXPIRES: u8 = 1;
const LZ4: u8 = 2;
const ZSTD: u8 = 4;
const TERMS: u8 = 8;
const FLAGS_KNOWN: u8 = EXPIRES | LZ4 | ZSTD | TERMS;
/// The most bytes that can be between the fixed part and the key.
pub(crate) const EXTRA_BYTES_MAX: usize = 4;

/// How a stored body is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BodyCoding {
    #[default]
    Plain,
    Lz4,
    Zstd,
}

impl BodyCoding {
    fn flags(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Lz4 => LZ4,
            Self::Zstd => ZSTD,
        }
    }

    fn from_flags(flags: u8) -> Option<Self> {
        match flags & (LZ4 | ZSTD) {
            0 => Some(Self::Plain),
            LZ4 => Some(Self::Lz4),
            ZSTD => Some(Self::Zstd),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Tombstone,
}

impl Kind {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Put => 1,
            Self::Tombstone => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Put),
            2 => Some(Self::Tombstone),
            _ => None,
        }
    }
}

/// The fields of a record that the writer sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordFields {
    pub(crate) kind: Kind,
    pub(crate) tstamp_secs: u32,
    /// Unix seconds; 0: never.
    pub(crate) expires_secs: u32,
    pub(crate) synced_to: u32,
    pub(crate) seq: u64,
    pub(crate) digest: u64,
    pub(crate) coding: BodyCoding,
    /// Whether the head has index entries.
    pub(crate) has_terms: bool,
    pub(crate) crc_body: u32,
}

/// Number of bytes between the fixed part and the key.
pub(crate) fn extra_len(expires_secs: u32) -> usize {
    if expires_secs == 0 { 0 } else { EXTRA_BYTES_MAX }
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) crc_meta: u32,
    pub(crate) crc_body: u32,
    pub(crate) kind: Kind,
    pub(crate) coding: BodyCoding,
    /// Whether the head has index entries.
    pub(crate) has_terms: bool,
    pub(crate) key_len: u32,
    pub(crate) head_len: u32,
    pub(crate) body_len: u32,
    pub(crate) tstamp_secs: u32,
    /// Unix seconds; 0: never.
    pub(crate) expires_secs: u32,
    pub(crate) synced_to: u32,
    pub(crate) seq: u64,
    pub(crate) digest: u64,
}

impl RecordHeader {
    /// The fixed part at the start of `bytes`, if the bytes look like one. It is only plausible and
    /// not yet verified.
    pub(crate) fn parse(bytes: &[u8], salt: u64) -> Option<Self> {
        if bytes.len() < RECORD_HEADER_BYTES || !looks_like_record(bytes, salt) {
            return None;
        }
        let expires_secs = match bytes[FLAGS_AT] & EXPIRES {
            0 => 0,
            _ if bytes.len() < RECORD_HEADER_BYTES + EXTRA_BYTES_MAX => return None,
            _ => le_at!(u32, bytes, RECORD_HEADER_BYTES),
        };
        if expires_secs == 0 && bytes[FLAGS_AT] & EXPIRES != 0 {
            return None;
        }
        let header = Self {
            crc_meta: le_at!(u32, bytes, 0),
            crc_body: le_at!(u32, bytes, 4),
            kind: Kind::from_code(bytes[KIND_AT])?,
            coding: BodyCoding::from_flags(bytes[FLAGS_AT])?,
            has_terms: bytes[FLAGS_AT] & TERMS != 0,
            expires_secs,
            key_len: le_at!(u32, bytes, 12),
            head_len: le_at!(u32, bytes, 16),
            body_len: le_at!(u32, bytes, 20),
            tstamp_secs: le_at!(u32, bytes, 24),
            synced_to: le_at!(u32, bytes, 28),
            seq: le_at!(u64, bytes, 32),
            digest: le_at!(u64, bytes, 40),
        };
        let is_possible = header.key_len as usize <= KEY_BYTES_MAX
            && header.total_len() <= u64::from(u32::MAX)
            && header.seq <= SEQ_MAX;
        is_possible.then_some(header)
    }

    /// The offset of the key in the record.
    pub(crate) fn key_start(&self) -> usize {
        RECORD_HEADER_BYTES + extra_len(self.expires_secs)
    }

    /// Length in bytes of everything before the body.
    pub(crate) fn meta_len(&self) -> u64 {
        self.key_start() as u64 + u64::from(self.key_len) + u64::from(self.head_len)
    }

    /// Whether the record was appended to its file. Other files are written as a whole, by merges
    /// and repairs.
    pub(crate) fn is_append(&self) -> bool {
        self.synced_to != ALL_SYNCED
    }

    pub(crate) fn total_len(&self) -> u64 {
        self.meta_len() + u64::from(self.body_len)
    }

    /// Whether fixed part, key and head (`meta`, exactly those bytes) are those that were written
    /// at `offset`.
    pub(crate) fn meta_matches(&self, meta: &[u8], salt: u64, offset: u64) -> bool {
        meta.len() as u64 == self.meta_len() && meta_crc(meta, salt, offset) == self.crc_meta
    }
}

/// Whether kind, flags and mark are those of a record of this file. Random bytes pass this filter
/// once in 2^28.
pub(super) fn looks_like_record(bytes: &[u8], salt: u64) -> bool {
    let mark = (salt as u16).to_le_bytes();
    matches!(bytes[KIND_AT], 1 | 2) && bytes[FLAGS_AT] & !FLAGS_KNOWN == 0 && bytes[MARK_AT..MARK_AT + 2] == mark
}

fn meta_crc(meta: &[u8], salt: u64, offset: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&salt.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    let mut hasher = Hasher::new();
    hasher.update(&place);
    hasher.update(&meta[4..]);
    hasher.finalize()
}

/// Checksum of a body that consists of parts.
pub(crate) fn body_crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Appends a record to `out` that is to be written at `offset` of the file with this salt.
pub(crate) fn encode_record(
    out: &mut Vec<u8>,
    fields: &RecordFields,
    key: &[u8],
    head: &[u8],
    body: &[&[u8]],
    salt: u64,
    offset: u64,
) {
    let start = out.len();
    let body_len: usize = body.iter().map(|part| part.len()).sum();
    out.reserve(RECORD_HEADER_BYTES + EXTRA_BYTES_MAX + key.len() + head.len() + body_len);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&fields.crc_body.to_le_bytes());
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let flags = flag(fields.expires_secs != 0, EXPIRES) | flag(fields.has_terms, TERMS) | fields.coding.flags();
    out.extend_from_slice(&[fields.kind.code(), flags]);
    out.extend_from_slice(&(salt as u16).to_le_bytes());
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(head.len() as u32).to_le_bytes());
    out.extend_from_slice(&(body_len as u32).to_le_bytes());
    out.extend_from_slice(&fields.tstamp_secs.to_le_bytes());
    out.extend_from_slice(&fields.synced_to.to_le_bytes());
    out.extend_from_slice(&fields.seq.to_le_bytes());
    out.extend_from_slice(&fields.digest.to_le_bytes());
    if fields.expires_secs != 0 {
        out.extend_from_slice(&fields.expires_secs.to_le_bytes());
    }
    out.extend_from_slice(key);
    out.extend_from_slice(head);
    let crc = meta_crc(&out[start..], salt, offset);
    out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// Changes the verified record in `bytes` to one at another offset of another file that is synced
/// before it gets its name. The body's checksum stays, so a corrupt body is still detected.
pub(crate) fn reseal(bytes: &mut [u8], meta_len: usize, salt: u64, offset: u64) {
    bytes[MARK_AT..MARK_AT + 2].copy_from_slice(&(salt as u16).to_le_bytes());
    bytes[28..32].copy_from_slice(&ALL_SYNCED.to_le_bytes());
    let crc = meta_crc(&bytes[..meta_len], salt, offset);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        sample_with(|_| {})
    }

    fn sample_with(change: impl FnOnce(&mut RecordFields)) -> Vec<u8> {
        let mut fields = RecordFields {
            kind: Kind::Put,
            tstamp_secs: 5,
            expires_secs: 0,
            synced_to: 40,
            seq: 6,
            digest: 7,
            coding: BodyCoding::Plain,
            has_terms: false,
            crc_body: body_crc(&[b"bo", b"dy"]),
        };
        change(&mut fields);
        let mut out = Vec::new();
        encode_record(&mut out, &fields, b"key", b"head", &[b"bo", b"dy"], 0xABCD, 100);
        out
    }

    #[test]
    fn expiry_and_coding_come_back() {
        for coding in [BodyCoding::Plain, BodyCoding::Lz4, BodyCoding::Zstd] {
            for expires_secs in [0, 77] {
                let record = sample_with(|fields| (fields.coding, fields.expires_secs) = (coding, expires_secs));
                let header = RecordHeader::parse(&record, 0xABCD).unwrap();
                assert_eq!((header.coding, header.expires_secs), (coding, expires_secs));
                assert_eq!(&record[header.key_start()..][..7], b"keyhead");
                assert_eq!(header.total_len() as usize, record.len());
                assert!(header.meta_matches(&record[..header.meta_len() as usize], 0xABCD, 100));
            }
        }
    }

    #[test]
    fn a_record_comes_back_and_any_flipped_bit_of_its_meta_shows() {
        let good = sample();
        let header = RecordHeader::parse(&good, 0xABCD).unwrap();
        let meta_len = header.meta_len() as usize;
        assert_eq!((header.seq, header.digest, header.tstamp_secs, header.synced_to), (6, 7, 5, 40));
        assert_eq!(header.total_len() as usize, good.len());
        assert!(header.meta_matches(&good[..meta_len], 0xABCD, 100));
        assert_eq!(header.crc_body, crc32fast::hash(b"body"));
        for bit in 0..meta_len * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let accepted = RecordHeader::parse(&bad, 0xABCD).is_some_and(|header| {
                bad.get(..header.meta_len() as usize).is_some_and(|meta| header.meta_matches(meta, 0xABCD, 100))
            });
            // The bits of crc_body itself are covered by crc_meta too.
            assert!(!accepted, "bit {bit}");
        }
    }

    #[test]
    fn a_record_of_another_place_or_file_is_none() {
        let good = sample();
        let header = RecordHeader::parse(&good, 0xABCD).unwrap();
        let meta = &good[..header.meta_len() as usize];
        assert!(!header.meta_matches(meta, 0xABCD, 101));
        assert!(!header.meta_matches(meta, 0x1_0000_ABCD, 100));
        assert!(RecordHeader::parse(&good, 0xABCE).is_none());
    }

    #[test]
    fn resealing_moves_a_record() {
        let mut record = sample();
        let meta_len = RecordHeader::parse(&record, 0xABCD).unwrap().meta_len() as usize;
        reseal(&mut record, meta_len, 0x1234, 900);
        let header = RecordHeader::parse(&record, 0x1234).unwrap();
        assert!(header.meta_matches(&record[..meta_len], 0x1234, 900));
        assert_eq!((header.seq, header.synced_to), (6, ALL_SYNCED));
    }
}
