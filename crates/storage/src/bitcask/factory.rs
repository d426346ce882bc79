//! Opens the stores of a node.

use super::config::BitcaskConfig;
use crate::backend::{Backend, BackendFactory};
use crate::error::StorageError;
use crate::fs::FileSystem;
use std::path::PathBuf;
use std::sync::Arc;

/// Opens bitcask stores, one directory a partition, under one root.
pub struct BitcaskFactory {
    _fs: Arc<dyn FileSystem>,
    root: PathBuf,
    _config: BitcaskConfig,
}

impl BitcaskFactory {
    /// Takes the root directory, creating and locking it. A root that another process or factory uses is an error.
    pub fn new(fs: Arc<dyn FileSystem>, root: impl Into<PathBuf>, config: BitcaskConfig) -> Result<Self, StorageError> {
        Ok(Self { _fs: fs, root: root.into(), _config: config })
    }
}

impl BackendFactory for BitcaskFactory {
    fn open(&self, _partition: u32) -> Result<Arc<dyn Backend>, StorageError> {
        Err(StorageError::Unusable { path: self.root.clone(), what: "under construction".into() })
    }

    fn name(&self) -> &'static str {
        "bitcask"
    }
}
