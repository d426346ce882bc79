//! What a fold gathers.

use bytes::Bytes;
use ombak_tictac::{ClockHash, TreeSize};
use ombak_types::{Bucket, VectorClock};

/// What a fold gathers of the objects that it visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldWants {
    /// Each key with its clock.
    Clocks,
    /// Each key whose object is a tombstone, with its clock.
    Tombstones,
    /// Each key whose object is no tombstone, with its clock.
    Living,
    /// Each key with more siblings than this, and their number.
    SiblingsAbove(u64),
    /// Each key whose object has more bytes than this, and their number.
    BytesAbove(u64),
    /// How many objects there are, with how many bytes and siblings.
    Stats,
    /// A tree over keys and clocks.
    Tree(TreeSize, ClockHash),
    /// The root of such a tree alone.
    Root(TreeSize, ClockHash),
    /// The buckets.
    Buckets,
}

/// A key that a fold has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundKey {
    /// The bucket.
    pub bucket: Bucket,
    /// The key.
    pub key: Bytes,
    /// What the fold asked for.
    pub found: Found,
}

impl FoundKey {
    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let clock_bytes = match &self.found {
            Found::Clock(clock) => clock.entries().iter().map(|entry| entry.actor.as_bytes().len() + 12).sum(),
            Found::Number(_) => 8,
        };
        self.bucket.bucket_type.len() + self.bucket.name.len() + self.key.len() + clock_bytes
    }
}

/// What a fold has found of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The clock of its object.
    Clock(VectorClock),
    /// The number of siblings or bytes.
    Number(u64),
}
