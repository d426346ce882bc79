//! The options of ledgers.

use super::tree::TreeLimits;

/// The options of ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerConfig {
    /// Bytes that one ledger gathers in memory before it writes them.
    pub memory_bytes_max: u64,
    /// Bytes of the block cache that all ledgers share.
    pub cache_bytes: u64,
    /// The approximate size of a table file in bytes.
    pub table_bytes: u64,
    /// The most table files that are open at once, over all ledgers.
    pub open_files_max: usize,
    /// Whether blocks on disk are compressed (lz4).
    pub compresses: bool,
    /// Whether tables have Bloom filters, which save reads for absent keys.
    pub filters: bool,
    /// The approximate size of a block in bytes before compression.
    pub block_bytes: u32,
    /// Of this many consecutive keys in a block, only the first is stored whole.
    pub restart_interval: u8,
    /// While all ledgers together are smaller than this on disk, in bytes, they are assumed to be
    /// in the page cache, and network threads read them.
    pub cached_bytes_max: u64,
}

impl Default for LedgerConfig {
    fn default() -> Self {
        Self {
            memory_bytes_max: 4 << 20,
            cache_bytes: 64 << 20,
            table_bytes: 8 << 20,
            open_files_max: 512,
            compresses: true,
            filters: true,
            block_bytes: 4096,
            restart_interval: 16,
            cached_bytes_max: 2 << 30,
        }
    }
}

impl LedgerConfig {
    pub(crate) fn tree_limits(&self) -> TreeLimits {
        let Self { cache_bytes, open_files_max, table_bytes, compresses, .. } = *self;
        let Self { filters, block_bytes, restart_interval, .. } = *self;
        TreeLimits { cache_bytes, open_files_max, table_bytes, compresses, filters, block_bytes, restart_interval }
    }
}
