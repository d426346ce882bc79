//! A record of a data file (docs/riak/backends.md §2.2, §2.4).

/// Bytes before the key: checksum, time, key size, value size.
pub const HEADER_BYTES: usize = 14;

/// The largest record that is read, in bytes. Riak warns of objects from 5 MiB and refuses objects
/// from 50 MiB.
pub const RECORD_BYTES_MAX: u64 = 512 << 20;

/// The header before a record's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// CRC-32 of everything after it.
    pub crc: u32,
    /// Unix seconds of the write.
    pub tstamp_secs: u32,
    /// Length of the key in bytes.
    pub key_bytes: u16,
    /// Length of the value in bytes.
    pub value_bytes: u32,
}

impl Header {
    /// Decodes the first bytes of a record.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[c0, c1, c2, c3, t0, t1, t2, t3, k0, k1, v0, v1, v2, v3] = bytes.first_chunk::<HEADER_BYTES>()?;
        Some(Self {
            crc: u32::from_be_bytes([c0, c1, c2, c3]),
            tstamp_secs: u32::from_be_bytes([t0, t1, t2, t3]),
            key_bytes: u16::from_be_bytes([k0, k1]),
            value_bytes: u32::from_be_bytes([v0, v1, v2, v3]),
        })
    }

    /// Length of the whole record in bytes.
    pub fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    /// Whether `record`, which starts with this header, has this header's checksum.
    pub fn matches(&self, record: &[u8]) -> bool {
        record.get(4..).is_some_and(|rest| crc32fast::hash(rest) == self.crc)
    }
}

/// A value which marks its key as removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tombstone {
    /// Versions 0 and 1: covers all older records of the key.
    Older,
    /// Version 2: covers the records of the key in this file and in earlier ones.
    UpToFile(u32),
}

const TOMBSTONE: &[u8] = b"bitcask_tombstone";

impl Tombstone {
    /// The length in bytes of the longest tombstone value.
    pub const BYTES_MAX: usize = TOMBSTONE.len() + 5;

    /// The kind of tombstone that a value is; `None` for any other value. A value that only starts
    /// like a tombstone, such as one of an unknown version, counts as the oldest kind, as in Riak.
    pub fn of(value: &[u8]) -> Option<Self> {
        let rest = value.strip_prefix(TOMBSTONE)?;
        Some(match rest {
            [b'2', a, b, c, d] => Self::UpToFile(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => Self::Older,
        })
    }
}
