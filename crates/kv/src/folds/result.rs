//! What a fold has gathered on all nodes.

use super::entry::GatheredEntry;
use super::stats::FoldStats;
use super::wants::{FoldWants, FoundKey};
use ombak_tictac::{Tree, TreeSize};
use ombak_types::{Bucket, Error, StoreFailure};
use std::collections::BTreeSet;

/// The most keys or buckets that one fold returns.
pub(crate) const FOUND_MAX: usize = 1_000_000;
/// The most bytes that these take. Keys may be long.
const FOUND_BYTES_MAX: u64 = 256 << 20;

/// The result of a fold. What the fold did not ask for is empty.
#[derive(Debug)]
pub struct FoldResult {
    /// The keys, ordered by bucket and key.
    pub keys: Vec<FoundKey>,
    /// The buckets.
    pub buckets: BTreeSet<Bucket>,
    /// The statistics.
    pub stats: FoldStats,
    /// The tree.
    pub tree: Tree,
    /// The root of the tree that was asked for: 4 bytes for each branch, big-endian.
    pub root: Vec<u8>,
    /// About how many bytes the nodes have sent for it.
    pub bytes: u64,
}

impl FoldResult {
    /// A result without objects.
    pub fn empty(wants: &FoldWants) -> Self {
        let size = match wants {
            FoldWants::Tree(size, _) => *size,
            _ => TreeSize::XxSmall,
        };
        let root = match wants {
            FoldWants::Root(size, _) => Tree::new(*size).root(),
            _ => Vec::new(),
        };
        Self {
            keys: Vec::new(),
            buckets: BTreeSet::new(),
            stats: FoldStats::default(),
            tree: Tree::new(size),
            root,
            bytes: 0,
        }
    }

    /// Adds what the store of a home partition has gathered.
    pub(crate) fn add(&mut self, entries: Vec<GatheredEntry>) -> Result<(), Error> {
        for entry in entries {
            self.bytes += entry.bytes() as u64;
            match entry {
                GatheredEntry::Key(found) => self.keys.push(found),
                GatheredEntry::Bucket(bucket) => {
                    self.buckets.insert(bucket);
                }
                GatheredEntry::Stats(stats) => self.stats.merge(&stats),
                GatheredEntry::Branch(branch, leaves) => {
                    if !self.tree.add_branch(branch, &leaves) {
                        return Err(StoreFailure::internal("a node has sent a branch of another tree").into());
                    }
                }
                GatheredEntry::Root(hashes) => {
                    if hashes.len() != self.root.len() {
                        return Err(StoreFailure::internal("a node has sent the root of another tree").into());
                    }
                    self.root.iter_mut().zip(hashes).for_each(|(hash, added)| *hash ^= added);
                }
            }
        }
        let found = self.keys.len().max(self.buckets.len());
        if found > FOUND_MAX {
            return Err(Error::TooManyFound(FOUND_MAX));
        }
        if found > 0 && self.bytes > FOUND_BYTES_MAX {
            return Err(Error::TooManyFound(found));
        }
        Ok(())
    }

    /// Takes the keys that have come so far. They do not count against the limit any more.
    pub(crate) fn take_keys(&mut self) -> Vec<FoundKey> {
        self.bytes = 0;
        std::mem::take(&mut self.keys)
    }

    /// Puts the keys in the order in which Riak has them: those of typed buckets come first.
    pub(crate) fn finish(&mut self) {
        let place = |found: &FoundKey| (found.bucket.is_default_type(), found.bucket.clone(), found.key.clone());
        self.keys.sort_by_cached_key(place);
    }
}
