//! Opens stores with a ledger: one directory a partition for the journal, another for the ledger
//! beside it.

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

/// Sizes of ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerConfig {
    /// What one ledger gathers in memory before it writes it, in bytes.
    pub memory_bytes_max: u64,
    /// Blocks that are kept in memory, in bytes, for all ledgers together.
    pub cache_bytes: u64,
    /// About the size of a table file, in bytes.
    pub table_bytes: u64,
    /// Table files that are held open, for all ledgers together.
    pub open_files_max: usize,
    /// Whether blocks on disk are compressed (lz4).
    pub compresses: bool,
    /// Whether tables have filters that spare reads of absent keys.
    pub filters: bool,
    /// About the size of a block, in bytes before compression.
    pub block_bytes: u32,
    /// Keys of a block of which only the first is written as a whole.
    pub restart_interval: u8,
    /// While the ledgers on disk are smaller than this together, in bytes, they are taken to be in
    /// the page cache and read by network threads.
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

/// Opens stores with a ledger. With `INLINE` the ledger has the values, too.
pub struct LedgerFactory<const INLINE: bool> {
    journals: Arc<Shared>,
    ledgers: Arc<LedgerShared>,
    root: PathBuf,
}

impl<const INLINE: bool> LedgerFactory<INLINE> {
    /// Takes the root directory, creating and locking it. A root that another process or factory
    /// uses is an error.
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

    /// The same with inventories kept in this way. To be said before a store is opened.
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
