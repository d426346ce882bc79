//! Opens the stores of a node.

use super::budget::IoBudget;
use super::config::BitcaskConfig;
use super::data_file::Handles;
use super::head_cache::HeadCache;
use super::recovery;
use super::shared::Shared;
use crate::backend::{Backend, BackendFactory};
use crate::error::StorageError;
use crate::fs::FileSystem;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK_FILE: &str = "lock";
/// Marks the directory of a dropped partition until its files are gone.
pub(super) const DROPPED_SUFFIX: &str = ".dropped";
/// Offsets have 32 bits.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;

/// Opens bitcask stores, one directory a partition, under one root.
pub struct BitcaskFactory {
    shared: Arc<Shared>,
}

impl BitcaskFactory {
    /// Takes the root directory, creating and locking it. A root that another process or factory uses is an error.
    pub fn new(fs: Arc<dyn FileSystem>, root: impl Into<PathBuf>, config: BitcaskConfig) -> Result<Self, StorageError> {
        let root = root.into();
        let config = BitcaskConfig { file_bytes_max: config.file_bytes_max.min(FILE_BYTES_MAX), ..config };
        create_root(&*fs, &root)?;
        let lock_path = root.join(LOCK_FILE);
        let lock = fs.lock(&lock_path).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => StorageError::Unusable {
                path: root.clone(),
                what: "another process uses this directory: stop it, or configure another bitcask.data_root".into(),
            },
            _ => io_error("lock", &lock_path, source),
        })?;
        remove_dropped(&*fs, &root)?;
        let shared = Shared {
            handles: Handles::new(fs.clone(), config.open_files_max),
            heads: HeadCache::new(),
            budget: IoBudget::new(config.merge.io_bytes_per_sec),
            merging: Mutex::new(None),
            open_partitions: Mutex::default(),
            fs,
            root,
            config,
            lock,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl BackendFactory for BitcaskFactory {
    fn open(&self, partition: u32) -> Result<Arc<dyn Backend>, StorageError> {
        if !self.shared.open_partitions.lock().insert(partition) {
            return Err(StorageError::Unusable {
                path: self.shared.root.join(partition.to_string()),
                what: "this partition is open already in this process".into(),
            });
        }
        match recovery::open_store(&self.shared, partition) {
            Ok(store) => Ok(Arc::new(store)),
            Err(error) => {
                self.shared.open_partitions.lock().remove(&partition);
                Err(error)
            }
        }
    }

    fn name(&self) -> &'static str {
        "bitcask"
    }
}

/// Creates the root and makes sure that its name, and those of parents created with it, survive a loss of power.
fn create_root(fs: &dyn FileSystem, root: &Path) -> Result<(), StorageError> {
    let missing = root.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && fs.list(dir).is_err()).count();
    fs.create_dir_all(root).map_err(|source| io_error("create", root, source))?;
    // Of a root that was there, the name is synced once more: the start that created it may have been killed.
    for dir in root.ancestors().skip(1).take(missing.max(1)) {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        match fs.sync_dir(dir) {
            // A parent that we may not read was not created by us.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(io_error("fsync", dir, error)),
            _ => {}
        }
    }
    Ok(())
}

/// Finishes what a crash interrupted: see `drop_partition`.
fn remove_dropped(fs: &dyn FileSystem, root: &Path) -> Result<(), StorageError> {
    let names = fs.list(root).map_err(|source| io_error("list", root, source))?;
    for name in names.iter().filter(|name| name.ends_with(DROPPED_SUFFIX)) {
        remove_store_dir(fs, &root.join(name))?;
    }
    Ok(())
}

/// Removes a directory and the files in it.
pub(super) fn remove_store_dir(fs: &dyn FileSystem, dir: &Path) -> Result<(), StorageError> {
    for name in fs.list(dir).map_err(|source| io_error("list", dir, source))? {
        let path = dir.join(name);
        fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
    }
    fs.remove_dir(dir).map_err(|source| io_error("remove", dir, source))
}

pub(super) fn io_error(op: &'static str, path: &Path, source: io::Error) -> StorageError {
    StorageError::Io { op, path: path.to_owned(), source }
}
