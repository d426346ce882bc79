//! Opens stores with a ledger. Each partition has one directory for the journal, and beside it
//! another one for the ledger.

use super::index::{LedgerIndex, LedgerShared};
use super::opening::remove_dir;
use super::tree::{TreeLimits, TreeShared};
use crate::backend::{Backend, BackendFactory, HeadTerms};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::inventory::InventoryConfig;
use crate::journal::{JournalConfig, KeyIndex, Shared, Store};
use crate::seq::SeqSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Opens stores with a ledger. With `INLINE`, the ledger has the values, too.
pub struct LedgerFactory<const INLINE: bool> {
    journals: Arc<Shared>,
    ledgers: Arc<LedgerShared>,
    root: PathBuf,
}

impl<const INLINE: bool> LedgerFactory<INLINE> {
    /// Takes the root directory: creates and locks it. Fails if another process or factory uses the
    /// root.
    pub fn new(
        fs: Arc<dyn FileSystem>,
        root: impl Into<PathBuf>,
        journal: JournalConfig,
        ledger: LedgerConfig,
        terms: Arc<dyn HeadTerms>,
    ) -> Result<Self, StorageError> {
        let root = root.into();
        let setting = format!("{}.data_root", LedgerIndex::<INLINE>::BACKEND);
        let ledgers_root = root.clone();
        let forget_ledger = move |partition| remove_dir(&ledger_dir(&ledgers_root, partition));
        let journals = Shared::open(fs, root.clone(), journal, &setting, forget_ledger)?;
        let (memory_bytes_max, cached_bytes_max) = (ledger.memory_bytes_max, ledger.cached_bytes_max);
        let trees = TreeShared::new(ledger.tree_limits());
        let ledgers = LedgerShared::new(trees, terms, memory_bytes_max, cached_bytes_max, journal);
        Ok(Self { journals, ledgers: Arc::new(ledgers), root })
    }

    /// Sets how inventories are kept. Must be called before a store is opened.
    #[must_use]
    pub fn with_inventory(self, inventory: InventoryConfig) -> Self {
        self.journals.keep_inventories(inventory);
        self
    }
}

/// The directory of a partition's ledger.
pub(crate) fn ledger_dir(root: &Path, partition: u32) -> PathBuf {
    root.join(format!("{partition}.ledger"))
}

impl<const INLINE: bool> BackendFactory for LedgerFactory<INLINE> {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        let dir = ledger_dir(&self.root, partition);
        let index = |_: &std::path::Path| LedgerIndex::<INLINE>::open(&dir, &self.ledgers);
        Ok(Arc::new(Store::open(&self.journals, partition, seqs, index)?))
    }

    fn name(&self) -> &'static str {
        LedgerIndex::<INLINE>::BACKEND
    }
}
