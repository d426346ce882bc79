//! The two copies of an inventory on disk.

use super::record::{Inventory, RECORD_NAME};
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, read_file, replace_file};
use crate::journal::create_root;
use std::io;
use std::path::{Path, PathBuf};

/// Longer than any inventory. Bounds what a start reads.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// The state of one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyState {
    /// There is no copy.
    Missing,
    /// The copy does not match its checksum.
    Damaged,
    /// The copy is intact.
    Whole(Inventory),
}

impl CopyState {
    /// The inventory in the copy, if it can be read.
    pub(crate) fn whole(&self) -> Option<&Inventory> {
        if let Self::Whole(inventory) = self { Some(inventory) } else { None }
    }
}

/// The paths of a store's copies.
#[derive(Clone, Debug)]
pub(crate) struct InventoryCopies {
    /// The copy in the directory of the store.
    pub(crate) store: PathBuf,
    /// The copy in the directory of the node.
    pub(crate) node: Option<PathBuf>,
}

impl InventoryCopies {
    /// The copies for the store of a partition in `dir`.
    pub(crate) fn of(dir: &Path, partition: u32, node_dir: Option<&Path>) -> Self {
        Self { store: dir.join(RECORD_NAME), node: node_dir.map(|node_dir| node_dir.join(partition.to_string())) }
    }

    /// Reads the copy of the store.
    pub(crate) fn read_store(&self, fs: &dyn FileSystem) -> Result<CopyState, StorageError> {
        read(fs, &self.store)
    }

    /// Reads the copy of the node.
    pub(crate) fn read_node(&self, fs: &dyn FileSystem) -> Result<CopyState, StorageError> {
        self.node.as_ref().map_or(Ok(CopyState::Missing), |path| read(fs, path))
    }

    /// Replaces the copy of the store. It is on disk when this returns. The directory of the store
    /// must exist.
    pub(crate) fn write_store(&self, fs: &dyn FileSystem, inventory: &Inventory) -> Result<(), StorageError> {
        replace_file(fs, &self.store, &inventory.encode()).map_err(|source| io_error("write", &self.store, source))
    }

    /// Replaces the copy of the node and creates its directory. It is on disk when this returns.
    pub(crate) fn write_node(&self, fs: &dyn FileSystem, inventory: &Inventory) -> Result<(), StorageError> {
        let Some(path) = &self.node else { return Ok(()) };
        let bytes = inventory.encode();
        let written = match (replace_file(fs, path, &bytes), path.parent()) {
            (Err(error), Some(dir)) if error.kind() == io::ErrorKind::NotFound => {
                create_root(fs, dir)?;
                replace_file(fs, path, &bytes)
            }
            (written, _) => written,
        };
        written.map_err(|source| io_error("write", path, source))
    }

    /// Removes the copy of the node durably, before its store is removed.
    pub(crate) fn remove_node(&self, fs: &dyn FileSystem) -> Result<(), StorageError> {
        let Some(path) = &self.node else { return Ok(()) };
        match fs.remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(io_error("remove", path, source)),
            Ok(()) => {}
        }
        match path.parent() {
            Some(dir) => fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source)),
            None => Ok(()),
        }
    }
}

fn read(fs: &dyn FileSystem, path: &Path) -> Result<CopyState, StorageError> {
    match read_file(fs, path, RECORD_BYTES_MAX) {
        Ok(bytes) => Ok(Inventory::decode(&bytes, path)?.map_or(CopyState::Damaged, CopyState::Whole)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(CopyState::Missing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(CopyState::Damaged),
        Err(source) => Err(io_error("read", path, source)),
    }
}
