//! Opens the bitcask stores of a node.

use super::head_cache::HeadCache;
use super::index::MemoryIndex;
use super::ordered_index::OrderedIndexShared;
use super::policy::BitcaskPolicy;
use crate::append_marks::AppendMarks;
use crate::backend::{Backend, BackendFactory, HeadTerms, NoTerms};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::inventory::InventoryConfig;
use crate::journal::{JournalConfig, JournalPolicy, Shared, Store};
use crate::ledger::{LedgerConfig, TreeShared, remove_dir};
use crate::parted::PartedStore;
use crate::seq::SeqSource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens bitcask stores under one root, with one directory for each partition.
pub struct BitcaskFactory {
    shared: Arc<Shared>,
    heads: Arc<HeadCache>,
    orders: Arc<OrderedIndexShared>,
    root: PathBuf,
}

impl BitcaskFactory {
    /// Takes the root directory: creates and locks it. Fails if another process or factory uses the
    /// root.
    pub fn new(fs: Arc<dyn FileSystem>, root: impl Into<PathBuf>, config: JournalConfig) -> Result<Self, StorageError> {
        Self::with_terms(fs, root, config, &LedgerConfig::default(), Arc::new(NoTerms))
    }

    /// A factory for stores with secondary indexes. `terms` reads the index entries in heads;
    /// `order` limits the ordered index of keys and index entries.
    pub fn with_terms(
        fs: Arc<dyn FileSystem>,
        root: impl Into<PathBuf>,
        config: JournalConfig,
        order: &LedgerConfig,
        terms: Arc<dyn HeadTerms>,
    ) -> Result<Self, StorageError> {
        let root = root.into();
        let orders_root = root.clone();
        let forget_order = move |partition| remove_dir(&order_dir(&orders_root, partition));
        let shared = Shared::open(fs, root.clone(), config, "bitcask.data_root", forget_order)?;
        let trees = TreeShared::new(order.tree_limits());
        let orders = OrderedIndexShared { trees, terms, memory_bytes_max: order.memory_bytes_max };
        Ok(Self { shared, heads: Arc::new(HeadCache::new()), orders: Arc::new(orders), root })
    }

    /// Sets how inventories are kept. Must be called before a store is opened.
    #[must_use]
    pub fn with_inventory(self, inventory: InventoryConfig) -> Self {
        self.shared.keep_inventories(inventory);
        self
    }

    /// Sets where the stores count their appends, if anywhere. Must be called before a store is
    /// opened.
    #[must_use]
    pub fn with_append_marks(self, marks: Option<Arc<AppendMarks>>) -> Self {
        self.shared.keep_append_marks(marks);
        self
    }
}

fn order_dir(root: &Path, partition: u32) -> PathBuf {
    root.join(format!("{partition}.order"))
}

impl BackendFactory for BitcaskFactory {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        let order_dir = order_dir(&self.root, partition);
        let index = |_: &std::path::Path| MemoryIndex::new(self.heads.clone(), self.orders.clone(), order_dir);
        let store = Store::<BitcaskPolicy>::open(&self.shared, partition, seqs, index)?;
        Ok(Arc::new(PartedStore::over(Arc::new(store))))
    }

    fn name(&self) -> &'static str {
        BitcaskPolicy::BACKEND
    }
}
