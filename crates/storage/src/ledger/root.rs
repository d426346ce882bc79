//! The root directory of the stores of one backend with a ledger. Each partition has one directory
//! for the journal, and beside it another one for the ledger.

use super::config::LedgerConfig;
use super::index::{LedgerIndex, LedgerShared};
use super::opening::remove_dir;
use super::tree::TreeShared;
use crate::append_marks::AppendMarks;
use crate::backend::{Backend, HeadTerms};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::inventory::InventoryConfig;
use crate::journal::{JournalConfig, JournalPolicy, Shared, Store};
use crate::parted::PartedStore;
use crate::seq::SeqSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The root of one backend with a ledger: its lock, and what its stores share.
pub(crate) struct LedgerRoot {
    journals: Arc<Shared>,
    ledgers: Arc<LedgerShared>,
    root: PathBuf,
}

impl LedgerRoot {
    /// Takes the root directory: creates and locks it. Fails if another process or factory uses the
    /// root. `backend` is the name of the backend for error messages.
    pub(crate) fn open(
        backend: &str,
        fs: Arc<dyn FileSystem>,
        root: PathBuf,
        journal: JournalConfig,
        ledger: LedgerConfig,
        terms: Arc<dyn HeadTerms>,
    ) -> Result<Self, StorageError> {
        let setting = format!("{backend}.data_root");
        let ledgers_root = root.clone();
        let forget_ledger = move |partition| remove_dir(&ledger_dir(&ledgers_root, partition));
        let journals = Shared::open(fs, root.clone(), journal, &setting, forget_ledger)?;
        let (memory_bytes_max, cached_bytes_max) = (ledger.memory_bytes_max, ledger.cached_bytes_max);
        let trees = TreeShared::new(ledger.tree_limits());
        let ledgers = LedgerShared::new(trees, terms, memory_bytes_max, cached_bytes_max, journal);
        Ok(Self { journals, ledgers: Arc::new(ledgers), root })
    }

    /// Sets how inventories are kept. Must be called before a store is opened.
    pub(crate) fn keep_inventories(&self, inventory: InventoryConfig) {
        self.journals.keep_inventories(inventory);
    }

    /// Sets where the stores count their appends, if anywhere. Must be called before a store is
    /// opened.
    pub(crate) fn keep_append_marks(&self, marks: Option<Arc<AppendMarks>>) {
        self.journals.keep_append_marks(marks);
    }

    /// Opens or creates the store of a partition.
    pub(crate) fn open_store<const HAS_VALUES: bool, P: JournalPolicy<Index = LedgerIndex<HAS_VALUES>>>(
        &self,
        partition: u32,
        seqs: &SeqSource,
    ) -> Result<Arc<dyn Backend>, StorageError> {
        let dir = ledger_dir(&self.root, partition);
        let index = |_: &Path| LedgerIndex::open(&dir, &self.ledgers);
        let store = Store::<P>::open(&self.journals, partition, seqs, index)?;
        Ok(Arc::new(PartedStore::over(Arc::new(store))))
    }
}

/// The directory of a partition's ledger.
pub(crate) fn ledger_dir(root: &Path, partition: u32) -> PathBuf {
    root.join(format!("{partition}.ledger"))
}
