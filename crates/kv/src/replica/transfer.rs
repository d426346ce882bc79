//! The questions by which nodes bring copies back to where they belong.
//!
//! All of them name a class, never a bare partition (docs/design/replication.md §1). Answers carry
//! the version of the home that the answering node knows: an answer at another version of the home
//! proves nothing.

use super::client::{ReplicaStore, StoredVersion};
use super::counters::NodeCounter;
use super::told::ToldSeq;
use bytes::Bytes;
use ombak_ring::RingVersion;
use ombak_runtime::BoxFuture;
use ombak_types::{Error, NodeId, VectorClock};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

/// Maximum number of versions in one question.
pub const COMPARE_KEYS_MAX: usize = 1_000;
/// The bytes of keys and clocks, or of copies, that one question has at most. One version may be
/// larger; then it travels alone.
pub const TRANSFER_BYTES_MAX: usize = 256 << 10;
/// How long a node waits for the answer to a comparison or a push. Then it tries again later.
pub const TRANSFER_ANSWER_MAX: Duration = Duration::from_secs(30);
/// The number of ranges of key hashes in one summary, at most. It is a power of two.
pub const SUMMARY_RANGES_MAX: u32 = 4_096;

/// The unit of responsibility: the copies of one home partition that belong to buckets with one
/// n_val.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId {
    /// The home partition.
    pub partition: u32,
    /// The n_val of the buckets.
    pub n: u32,
}

/// A version of a key that the asking node holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldVersion {
    /// The storage key.
    pub key: Bytes,
    /// The digest of the version.
    pub digest: u64,
    /// The clock of the version; empty for a version without one (`write_once`).
    pub clock: VectorClock,
}

/// What a replica holds of a key, compared with the version in the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The same version: the digests are equal.
    Same,
    /// Another version that contains everything of the asked one.
    Covers,
    /// A version that the asked one contains.
    Less,
    /// Nothing.
    Nothing,
    /// Neither contains the other, or the replica cannot read what it holds.
    Other,
}

impl Held {
    /// Whether the replica holds the asked version or a descendant.
    pub const fn includes(self) -> bool {
        matches!(self, Self::Same | Self::Covers)
    }

    /// All answers, for encodings.
    pub const ALL: [Self; 5] = [Self::Same, Self::Covers, Self::Less, Self::Nothing, Self::Other];
}

/// Asks a replica what it holds of some keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The class of all keys.
    pub class: ClassId,
    /// The versions, at most [`COMPARE_KEYS_MAX`].
    pub versions: Vec<HeldVersion>,
    /// Whether the replica syncs its store, after it has compared and before it answers.
    pub synced: bool,
}

/// What a replica found.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The version of the home that the replica knows.
    pub home_version: RingVersion,
    /// Whether the replica is known to hold everything of the class.
    pub is_full: bool,
    /// For each version of the question, in its order, what the replica holds.
    pub held: Vec<Held>,
    /// The replica's counter of fences, as of before it looked.
    pub counter: NodeCounter,
}

/// Copies for one replica, which merges each by clock with its own.
#[derive(Clone, Debug)]
pub struct Push {
    /// The class of all copies.
    pub class: ClassId,
    /// The copies. Their fields `synced` are not looked at.
    pub copies: Vec<ReplicaStore>,
    /// Whether the replica syncs its store once, after it has stored the copies and before it
    /// answers.
    pub synced: bool,
    /// The checksum of the copies ([`checksum_of`]) as the sender read them. Version 1 sends none.
    pub checksum: Option<u64>,
}

/// A checksum over keys, heads and bodies of copies. The receiver verifies it before it stores any.
pub fn checksum_of(copies: &[ReplicaStore]) -> u64 {
    let mut hash = Xxh3::new();
    for part in copies.iter().flat_map(|copy| [&copy.key, &copy.head, &copy.body]) {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.digest()
}

/// What a replica did with copies.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// The version of the home that the replica knows.
    pub home_version: RingVersion,
    /// For each copy, in its order, what the replica holds now, or why it did not store the copy.
    pub stored: Vec<Result<StoredVersion, Error>>,
    /// The replica's counter of fences.
    pub counter: NodeCounter,
}

/// Asks a replica for sums over all versions of a class that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summarize {
    /// The class.
    pub class: ClassId,
    /// Into how many ranges of equal size the key hashes are split: a power of two, at most
    /// [`SUMMARY_RANGES_MAX`].
    pub ranges: u32,
    /// Whether the replica syncs its store, after it has summed up and before it answers. Version 1
    /// does not know that.
    pub synced: bool,
}

/// The sum of one range of key hashes. Two replicas that hold the same versions have equal sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSum {
    /// The number of versions.
    pub versions: u64,
    /// The wrapping sum of a hash over key and digest of each version.
    pub sum: u64,
}

/// The sums of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The version of the home that the replica knows.
    pub home_version: RingVersion,
    /// One sum for each range, in the order of the hashes.
    pub ranges: Vec<RangeSum>,
    /// What the replica was told of the stores of other nodes for the partition, at most
    /// [`TOLD_NODES_MAX`](super::TOLD_NODES_MAX). Whoever fills keeps it. Nodes of an earlier
    /// version send nothing.
    pub told: Vec<(NodeId, ToldSeq)>,
}

/// Asks a replica to compare its copies of some ranges with those of another node, and to push what
/// that node lacks. The order is repeated until it is done: a replica that restarts forgets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Give {
    /// The class.
    pub class: ClassId,
    /// The node that gets the copies.
    pub to: NodeId,
    /// A random number that tells this order from earlier ones.
    pub order: u64,
    /// Into how many ranges the key hashes are split, as in [`Summarize`].
    pub ranges: u32,
    /// The numbers of the ranges, ascending.
    pub wanted: Vec<u32>,
    /// Which copies the node takes. A replica of an earlier version gives all.
    pub pass: GivePass,
}

/// Which copies a node takes that compares a class with all other primaries, one after the other
/// (docs/design/anti-entropy.md §5, "Filling").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GivePass {
    /// All: it asks once.
    #[default]
    All,
    /// Those that are not left to exchanges, or that no other primary lacks.
    First,
    /// The others, when it was compared with all primaries. What a full primary lacks is left out.
    Last,
    /// The others, although a primary has not answered for a while. Only what is in doubt is left
    /// out. The last pass comes when that primary answers.
    Early,
}

/// How far an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giving {
    /// The replica has not pushed everything yet.
    Working,
    /// The other node durably holds everything that the replica held when the work began.
    Done,
}

/// One node, as a place where copies belong: the same questions for this node and for others.
pub trait TransferClient: Send + Sync {
    /// Compares versions with what the replica holds.
    fn compare(&self, compare: Compare) -> BoxFuture<'static, Result<Compared, Error>>;

    /// Stores copies by clock alone.
    fn push(&self, push: Push) -> BoxFuture<'static, Result<Pushed, Error>>;

    /// Sums up what the replica holds.
    fn summarize(&self, summarize: Summarize) -> BoxFuture<'static, Result<Summary, Error>>;

    /// Lets the replica push what another node lacks.
    fn give(&self, give: Give) -> BoxFuture<'static, Result<Giving, Error>>;
}

/// The number of the range that a key hash is in, of `ranges` ranges of equal size.
pub fn range_of(hash: u64, ranges: u32) -> u32 {
    // The result is below `ranges`.
    ((u128::from(hash) * u128::from(ranges)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_ascending_and_complete() {
        for ranges in [1, 2, 64, SUMMARY_RANGES_MAX] {
            assert_eq!((range_of(0, ranges), range_of(u64::MAX, ranges)), (0, ranges - 1));
            let step = (u64::MAX / u64::from(ranges)).saturating_add(1);
            for number in 1..ranges {
                let first = step.wrapping_mul(u64::from(number));
                assert_eq!((range_of(first - 1, ranges), range_of(first, ranges)), (number - 1, number));
            }
        }
    }
}
