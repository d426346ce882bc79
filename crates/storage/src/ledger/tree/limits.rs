//! Limits of the trees of one root, and what these trees share.

use lsm_tree::{Cache, DescriptorTable};
use std::sync::Arc;

/// Limits and options of all trees of a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TreeLimits {
    /// Bytes of the block cache, over all trees.
    pub(crate) cache_bytes: u64,
    /// The most table files that are open at once, over all trees.
    pub(crate) open_files_max: usize,
    /// The approximate size of a table file. One slice of compaction reads and writes a few times
    /// as much.
    pub(crate) table_bytes: u64,
    /// Whether blocks on disk are compressed.
    pub(crate) compresses: bool,
    /// Whether tables have Bloom filters, which save reads for absent keys.
    pub(crate) filters: bool,
    /// The approximate size of a block before compression.
    pub(crate) block_bytes: u32,
    /// Of this many consecutive keys in a block, only the first is stored whole.
    pub(crate) restart_interval: u8,
}

#[cfg(test)]
impl Default for TreeLimits {
    fn default() -> Self {
        crate::ledger::LedgerConfig::default().tree_limits()
    }
}

/// What the trees of a root share.
pub(crate) struct TreeShared {
    pub(super) limits: TreeLimits,
    pub(super) cache: Arc<Cache>,
    pub(super) descriptors: Arc<DescriptorTable>,
}

impl TreeShared {
    pub(crate) fn new(limits: TreeLimits) -> Self {
        Self {
            limits,
            cache: Arc::new(Cache::with_capacity_bytes(limits.cache_bytes)),
            descriptors: Arc::new(DescriptorTable::new(limits.open_files_max.max(1))),
        }
    }
}
