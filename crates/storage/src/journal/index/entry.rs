//! What an index stores about a version, and what it answers.

use crate::fold::WriteAttrs;
use crate::receipt::IndexedVersion;
use bytes::Bytes;

/// The longest head in units; longer heads are stored as [`HEAD_UNITS_MANY`].
const HEAD_UNITS_MAX: u32 = 62;
/// Marks a head that is longer than an index can record.
pub(crate) const HEAD_UNITS_MANY: u8 = 127;

/// The length of a head in units of 32 bytes.
pub(crate) fn head_units(head_len: u32) -> u8 {
    let units = head_len.div_ceil(32);
    if units <= HEAD_UNITS_MAX { units as u8 } else { HEAD_UNITS_MANY }
}

/// Where a version lies in the data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) file_id: u32,
    pub(crate) offset: u32,
    /// Length of the whole record in bytes.
    pub(crate) size: u32,
    /// The length of the head in units of 32 bytes, rounded up; [`HEAD_UNITS_MANY`] if it is too
    /// long to be recorded.
    pub(crate) head_units: u8,
    /// Whether the head has index entries.
    pub(crate) has_terms: bool,
}

/// What an index stores about a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) position: Position,
    /// When the version expires, in Unix seconds; 0: never.
    pub(crate) expires_secs: u32,
    pub(crate) seq: u64,
    pub(crate) digest: u64,
}

impl Entry {
    /// What is known of the version besides its place.
    pub(crate) const fn version(&self) -> IndexedVersion {
        IndexedVersion { digest: self.digest, seq: self.seq, expires_secs: self.expires_secs }
    }
}

/// The answer of an index: the entry and, if the index keeps more, the parts that need not be read
/// from the journal.
#[derive(Clone, Debug)]
pub(crate) struct IndexAnswer {
    pub(crate) entry: Entry,
    pub(crate) head: Option<Bytes>,
    pub(crate) body: Option<Bytes>,
    pub(crate) attrs: Option<WriteAttrs>,
}

impl IndexAnswer {
    /// The answer of an index that has only the entry.
    pub(crate) fn of_entry(entry: Entry) -> Self {
        Self { entry, head: None, body: None, attrs: None }
    }
}

/// The parts of a version that an index may keep besides its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [&'a [u8]],
    pub(crate) tstamp_secs: u32,
    /// As the writer asked; 0: never.
    pub(crate) expires_secs: u32,
}

/// The progress of a sweep over all entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct SweepCursor {
    /// For an index in memory: the shard, and the place in it.
    pub(crate) shard: usize,
    pub(crate) place: u32,
    /// How often the shard had been compacted. A place means nothing after another compaction.
    pub(crate) compactions: u32,
    /// For an index on disk: the last key that was visited.
    pub(crate) passed: Option<Bytes>,
    pub(crate) is_done: bool,
}

/// The result of loading one record into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loaded {
    /// It is the newest version of its key so far; holds the entry that it replaced.
    Newest(Option<Entry>),
    /// A newer version is known.
    Superseded,
}

/// Sizes of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexSizes {
    pub(crate) keys: u64,
    pub(crate) key_bytes: u64,
    /// Memory in bytes, keys included.
    pub(crate) bytes: u64,
}

/// Input and output sizes of one compaction of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    pub(crate) bytes_before: u64,
    pub(crate) bytes_after: u64,
}
