//! The memory backend: an ordered map a partition, gone with the process.
//!
//! Invariants: with a limit, the oldest versions go first until the rest fits; an expired version reads as absent.

mod store;

pub use store::MemoryConfig;
use store::MemoryStore;

use crate::backend::{Backend, BackendFactory};
use crate::error::StorageError;
use std::sync::Arc;

/// Opens memory stores; each `open` gives a new, empty one.
#[derive(Clone, Debug, Default)]
pub struct MemoryFactory {
    config: MemoryConfig,
}

impl MemoryFactory {
    /// Stores with these limits.
    pub fn new(config: MemoryConfig) -> Self {
        Self { config }
    }
}

impl BackendFactory for MemoryFactory {
    fn open(&self, _partition: u32) -> Result<Arc<dyn Backend>, StorageError> {
        Ok(Arc::new(MemoryStore::new(self.config)))
    }

    fn name(&self) -> &'static str {
        "memory"
    }
}
