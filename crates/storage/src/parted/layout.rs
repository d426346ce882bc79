//! The bytes of head records and the keys of parts. All numbers are big-endian.
//!
//! ```text
//! key of a part     01  storage key of the object  u64 generation  u32 number
//! head of a part    50 02
//! head record       head: 50 01  u64 generation  u32 parts  u64 bytes of all parts  head
//!                   body: the tail
//! ```
//!
//! Storage keys of objects begin with 02 or 03 (`ombak_types::names`), heads of objects with 4F
//! (`ombak_types::stored_object`). A generation names the parts that began together. It is larger
//! than every `seq` that the store has given before.

use crate::backend::Stored;
use crate::error::StorageError;
use bytes::Bytes;

/// The first byte of the keys of parts.
pub(super) const PART_MARK: u8 = 0x01;
/// The head of each part.
pub(super) const PART_HEAD: [u8; 2] = [MAGIC, 2];

const MAGIC: u8 = 0x50;
const VERSION: u8 = 1;
const START_BYTES: usize = 22;
const SUFFIX_BYTES: usize = 12;

/// Which parts lie before the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) generation: u64,
    pub(super) parts: u32,
    /// The bytes of all parts together.
    pub(super) bytes: u64,
}

/// Whether a key is that of a part.
pub(super) fn is_part(key: &[u8]) -> bool {
    key.first() == Some(&PART_MARK)
}

/// The key of a part.
pub(super) fn part_key(key: &[u8], generation: u64, number: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + key.len() + SUFFIX_BYTES);
    out.push(PART_MARK);
    out.extend_from_slice(key);
    out.extend_from_slice(&generation.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// The object's key, the generation and the number in the key of a part.
pub(super) fn split_part_key(key: &[u8]) -> Option<(&[u8], u64, u32)> {
    let (&PART_MARK, rest) = key.split_first()? else { return None };
    let (object, suffix) = rest.split_at_checked(rest.len().checked_sub(SUFFIX_BYTES)?)?;
    let (generation, number) = suffix.split_at(8);
    Some((object, u64::from_be_bytes(generation.try_into().ok()?), u32::from_be_bytes(number.try_into().ok()?)))
}

impl Directory {
    /// The keys of the parts.
    pub(super) fn part_keys(&self, key: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        let generation = self.generation;
        (0..self.parts).map(move |number| part_key(key, generation, number))
    }

    /// The head of a head record.
    pub(super) fn head_record(&self, head: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(START_BYTES + head.len());
        out.extend_from_slice(&[MAGIC, VERSION]);
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&self.parts.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(head);
        out
    }
}

/// A version as its store has it.
pub(super) enum Found {
    /// It has no parts.
    Plain(Stored),
    /// The head is that of the object, and the body the tail.
    Parted(Stored, Directory),
}

impl Found {
    /// Takes a head record apart.
    ///
    /// # Errors
    /// The record was written in a later version.
    pub(super) fn of(stored: Stored) -> Result<Self, StorageError> {
        if stored.head.first() != Some(&MAGIC) {
            return Ok(Self::Plain(stored));
        }
        let directory = read(&stored.head).ok_or(StorageError::Incomplete("its list of parts cannot be read"))?;
        let head = stored.head.slice(START_BYTES..);
        Ok(Self::Parted(Stored { head, ..stored }, directory))
    }

    /// The version without its parts.
    pub(super) fn into_head(self) -> Stored {
        match self {
            Self::Plain(stored) | Self::Parted(stored, _) => stored,
        }
    }

    pub(super) fn directory(&self) -> Option<Directory> {
        match self {
            Self::Plain(_) => None,
            Self::Parted(_, directory) => Some(*directory),
        }
    }
}

fn read(head: &Bytes) -> Option<Directory> {
    let (start, _) = head.split_at_checked(START_BYTES)?;
    if start[1] != VERSION {
        return None;
    }
    Some(Directory {
        generation: u64::from_be_bytes(start[2..10].try_into().ok()?),
        parts: u32::from_be_bytes(start[10..14].try_into().ok()?),
        bytes: u64::from_be_bytes(start[14..22].try_into().ok()?),
    })
}
