//! What a store has gathered, in the parts of which it travels.

use super::stats::FoldStats;
use super::wants::FoundKey;
use ombak_types::Bucket;

/// A part of what the store of a home partition has gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatheredEntry {
    /// A key.
    Key(FoundKey),
    /// A bucket.
    Bucket(Bucket),
    /// The leaves of a branch of a tree: 4 bytes each, big-endian.
    Branch(u32, Vec<u8>),
    /// The root of a tree: 4 bytes for each branch, big-endian. A home partition has one such part
    /// at most.
    Root(Vec<u8>),
    /// Statistics. A home partition has one such part at most.
    Stats(FoldStats),
}

impl GatheredEntry {
    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Key(found) => found.bytes(),
            Self::Bucket(bucket) => bucket.bucket_type.len() + bucket.name.len() + 8,
            Self::Branch(_, leaves) => leaves.len() + 8,
            Self::Root(hashes) => hashes.len() + 8,
            Self::Stats(stats) => 32 + 16 * (stats.sizes.len() + stats.siblings.len()),
        }
    }
}
