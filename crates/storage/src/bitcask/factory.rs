//! Opens the stores of a node.

use super::head_cache::HeadCache;
use super::index::MemoryIndex;
use crate::backend::{Backend, BackendFactory};
use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::journal::{JournalConfig, Shared, Store};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens bitcask stores, one directory a partition, under one root.
pub struct BitcaskFactory {
    shared: Arc<Shared>,
    heads: Arc<HeadCache>,
}

impl BitcaskFactory {
    /// Takes the root directory, creating and locking it. A root that another process or factory uses is an error.
    pub fn new(fs: Arc<dyn FileSystem>, root: impl Into<PathBuf>, config: JournalConfig) -> Result<Self, StorageError> {
        let shared = Shared::open(fs, root.into(), config, "bitcask.data_root")?;
        Ok(Self { shared, heads: Arc::new(HeadCache::new()) })
    }
}

impl BackendFactory for BitcaskFactory {
    fn open(&self, partition: u32) -> Result<Arc<dyn Backend>, StorageError> {
        let store = Store::open(&self.shared, partition, |_dir| Ok(MemoryIndex::new(self.heads.clone())))?;
        Ok(Arc::new(store))
    }

    fn name(&self) -> &'static str {
        "bitcask"
    }
}
