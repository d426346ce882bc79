//! The state that all stores of one root share.

use super::budget::IoBudget;
use super::config::JournalConfig;
use super::data_file::Handles;
use super::media_errors::MediaErrors;
use super::root::{create_root, finish_drop, remove_dropped};
use super::space::DiskSpace;
use crate::append_marks::{AppendMarks, StoreMark};
use crate::error::{StorageError, io_error};
use crate::fs::{FileLock, FileSystem};
use crate::inventory::InventoryConfig;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const LOCK_FILE: &str = "lock";
/// Offsets in data files have 32 bits.
const FILE_BYTES_MAX: u64 = u32::MAX as u64;

/// See [`Shared::open`].
type ForgetIndex = dyn Fn(u32) -> Result<(), StorageError> + Send + Sync;

pub(crate) struct Shared {
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) root: PathBuf,
    pub(super) config: JournalConfig,
    pub(super) handles: Handles,
    pub(super) budget: IoBudget,
    pub(super) space: DiskSpace,
    pub(super) media_errors: MediaErrors,
    /// The partition that is merging: only one at a time for each root.
    pub(super) merging: Mutex<Option<u32>>,
    pub(super) open_partitions: Mutex<BTreeSet<u32>>,
    inventory: OnceLock<InventoryConfig>,
    append_marks: OnceLock<Option<Arc<AppendMarks>>>,
    /// Removes the files that an index has on disk for a partition.
    forget_index: Box<ForgetIndex>,
    #[expect(dead_code, reason = "held as long as a store of the root may write")]
    lock: Box<dyn FileLock>,
}

impl Shared {
    /// Takes the root directory: creates and locks it. Fails if another process or factory uses the
    /// root. `setting` is the name of the option for error messages. `forget_index` removes the
    /// files that the index of a partition has on disk.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        root: PathBuf,
        config: JournalConfig,
        setting: &str,
        forget_index: impl Fn(u32) -> Result<(), StorageError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, StorageError> {
        let config = JournalConfig { file_bytes_max: config.file_bytes_max.min(FILE_BYTES_MAX), ..config };
        create_root(&*fs, &root)?;
        let lock = Self::take_lock(&*fs, &root, setting)?;
        remove_dropped(&*fs, &root, &forget_index)?;
        Ok(Arc::new(Self {
            forget_index: Box::new(forget_index),
            handles: Handles::new(fs.clone(), config.open_files_max),
            budget: IoBudget::new(config.merge.io_bytes_per_sec, fs.machine().now()),
            space: DiskSpace::new(&*fs, &root, config.disk_reserve_bytes),
            media_errors: MediaErrors::default(),
            merging: Mutex::new(None),
            open_partitions: Mutex::default(),
            inventory: OnceLock::new(),
            append_marks: OnceLock::new(),
            fs,
            root,
            config,
            lock,
        }))
    }

    /// Sets how inventories are kept. Called at most once, before a store is opened.
    pub(crate) fn keep_inventories(&self, config: InventoryConfig) {
        assert!(self.inventory.set(config).is_ok(), "how inventories are kept is said once, before a store is opened");
    }

    /// How inventories are kept.
    pub(super) fn inventory(&self) -> &InventoryConfig {
        self.inventory.get_or_init(InventoryConfig::default)
    }

    /// Sets where stores count their appends, if anywhere. Called at most once, before a store is
    /// opened.
    pub(crate) fn keep_append_marks(&self, marks: Option<Arc<AppendMarks>>) {
        assert!(
            self.append_marks.set(marks).is_ok(),
            "where appends are counted is said once, before a store is opened"
        );
    }

    /// The mark of a partition's store, if its appends are counted.
    pub(super) fn append_mark(&self, partition: u32) -> Option<StoreMark> {
        self.append_marks.get()?.as_ref()?.of_store(partition)
    }

    /// Finishes the drop of a partition that failed half-way.
    pub(super) fn finish_drop(&self, partition: u32) -> Result<(), StorageError> {
        finish_drop(&*self.fs, &self.root, partition, &self.forget_index)
    }

    /// Locks a root directory.
    pub(crate) fn take_lock(
        fs: &dyn FileSystem,
        root: &Path,
        setting: &str,
    ) -> Result<Box<dyn FileLock>, StorageError> {
        let lock_path = root.join(LOCK_FILE);
        fs.lock(&lock_path).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => StorageError::Unusable {
                path: root.to_owned(),
                what: format!("another process uses this directory: stop it, or configure another {setting}"),
            },
            _ => io_error("lock", &lock_path, source),
        })
    }

    /// Marks a partition as open. Fails if it is open already.
    pub(super) fn enter(&self, partition: u32) -> Result<(), StorageError> {
        if self.open_partitions.lock().insert(partition) {
            return Ok(());
        }
        Err(StorageError::Unusable {
            path: self.root.join(partition.to_string()),
            what: "this partition is open already in this process".into(),
        })
    }

    pub(super) fn leave(&self, partition: u32) {
        self.open_partitions.lock().remove(&partition);
    }
}
