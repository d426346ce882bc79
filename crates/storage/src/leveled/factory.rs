//! Opens the leveled stores of a node.

use super::policy::LeveledPolicy;
use crate::append_marks::AppendMarks;
use crate::backend::{Backend, BackendFactory, HeadTerms};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::inventory::InventoryConfig;
use crate::journal::{JournalConfig, JournalPolicy};
use crate::ledger::{LedgerConfig, LedgerRoot};
use crate::seq::SeqSource;
use std::path::PathBuf;
use std::sync::Arc;

/// Opens leveled stores under one root, with a directory for the journal and one for the ledger of
/// each partition.
pub struct LeveledFactory {
    root: LedgerRoot,
}

impl LeveledFactory {
    /// Takes the root directory: creates and locks it. Fails if another process or factory uses the
    /// root.
    pub fn new(
        fs: Arc<dyn FileSystem>,
        root: impl Into<PathBuf>,
        journal: JournalConfig,
        ledger: LedgerConfig,
        terms: Arc<dyn HeadTerms>,
    ) -> Result<Self, StorageError> {
        let root = LedgerRoot::open(LeveledPolicy::BACKEND, fs, root.into(), journal, ledger, terms)?;
        Ok(Self { root })
    }

    /// Sets how inventories are kept. Must be called before a store is opened.
    #[must_use]
    pub fn with_inventory(self, inventory: InventoryConfig) -> Self {
        self.root.keep_inventories(inventory);
        self
    }

    /// Sets where the stores count their appends, if anywhere. Must be called before a store is
    /// opened.
    #[must_use]
    pub fn with_append_marks(self, marks: Option<Arc<AppendMarks>>) -> Self {
        self.root.keep_append_marks(marks);
        self
    }
}

impl BackendFactory for LeveledFactory {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        self.root.open_store::<false, LeveledPolicy>(partition, seqs)
    }

    fn name(&self) -> &'static str {
        LeveledPolicy::BACKEND
    }
}
