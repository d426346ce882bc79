//! A record of a data file (docs/riak/backends.md §2.2, §2.4).

/// Bytes before the key: checksum, time, key size, value size.
pub const HEADER_BYTES: usize = 14;

/// The largest record that is read, in bytes. Riak warns of objects from 5 MiB and refuses them
/// from 50 MiB.
pub const RECORD_BYTES_MAX: u64 = 512 << 20;

/// What stands in front of a record's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// CRC-32 of everything behind it.
    pub crc: u32,
    /// Unix seconds of the write.
    pub tstamp_secs: u32,
    /// Length of the key.
    pub key_bytes: u16,
    /// Length of the value.
    pub value_bytes: u32,
}

impl Header {
    /// From the first bytes of a record.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let &[c0, c1, c2, c3, t0, t1, t2, t3, k0, k1, v0, v1, v2, v3] = bytes.first_chunk::<HEADER_BYTES>()?;
        Some(Self {
            crc: u32::from_be_bytes([c0, c1, c2, c3]),
            tstamp_secs: u32::from_be_bytes([t0, t1, t2, t3]),
            key_bytes: u16::from_be_bytes([k0, k1]),
            value_bytes: u32::from_be_bytes([v0, v1, v2, v3]),
        })
    }

    /// Length of the whole record.
    pub fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    /// Whether `record`, which starts with this header, has this header's checksum.
    pub fn matches(&self, record: &[u8]) -> bool {
        record.get(4..).is_some_and(|rest| crc32fast::hash(rest) == self.crc)
    }
}

/// A value that says that the key was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tombstone {
    /// Versions 0 and 1: of everything older.
    Older,
    /// Version 2: of what lies in this file or an earlier one.
    UpToFile(u32),
}

const TOMBSTONE: &[u8] = b"bitcask_tombstone";

impl Tombstone {
    /// The longest value that can be one, in bytes.
    pub const BYTES_MAX: usize = TOMBSTONE.len() + 5;

    /// What kind of tombstone a value is; `None` for any other value. A value that only starts like
    /// one, such as one of a version that is not known, is taken for the oldest kind, as Riak takes
    /// it.
    pub fn of(value: &[u8]) -> Option<Self> {
        let rest = value.strip_prefix(TOMBSTONE)?;
        Some(match rest {
            [b'2', a, b, c, d] => Self::UpToFile(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => Self::Older,
        })
    }
}
