//! A directory of stores.

use super::examination::PartitionExamination;
use super::quarantine::QUARANTINE_DIR;
use super::report::PartitionReport;
use crate::append_marks::AppendMarks;
use crate::backend::HeadTerms;
use crate::error::{StorageError, io_error};
use crate::fs::{FileLock, FileSystem};
use crate::inventory::{InventoryConfig, InventoryCopies, partitions_in, root_is_gone};
use crate::journal::{JournalConfig, Shared};
use crate::ledger::LedgerConfig;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of the stores in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Journals and, where one was built, an ordered index of their keys.
    Bitcask,
    /// Journals, and ledgers of keys and heads.
    Leveled,
    /// Trees with everything, and journals of what the trees have only in memory.
    Leveldb,
}

impl StoreKind {
    /// The name of the backend.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitcask => "bitcask",
            Self::Leveled => "leveled",
            Self::Leveldb => "leveldb",
        }
    }

    fn ledger_suffix(self) -> &'static str {
        match self {
            Self::Bitcask => "order",
            Self::Leveled | Self::Leveldb => "ledger",
        }
    }
}

/// The configuration of a directory of stores.
#[derive(Clone)]
pub struct StoreRootConfig {
    /// The kind of the stores.
    pub kind: StoreKind,
    /// The options of the journals.
    pub journal: JournalConfig,
    /// The options of the ledgers or ordered indexes.
    pub ledger: LedgerConfig,
    /// Reads the index entries in heads.
    pub terms: Arc<dyn HeadTerms>,
    /// The options of the inventories.
    pub inventory: InventoryConfig,
}

/// A directory of stores that no other process uses, for verification and repair.
pub struct StoreRoot {
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) path: PathBuf,
    pub(super) kind: StoreKind,
    pub(super) journal: JournalConfig,
    pub(super) ledger: LedgerConfig,
    pub(super) terms: Arc<dyn HeadTerms>,
    pub(super) inventory: InventoryConfig,
    pub(super) append_marks: Option<Arc<AppendMarks>>,
    /// None while a repair opens the stores as a node does.
    pub(super) lock: Option<Box<dyn FileLock>>,
}

impl StoreRoot {
    /// Locks a directory. None if the directory does not exist; an error if it does not and the
    /// node has used stores in it. Creates nothing but a missing lock file.
    pub fn open(
        fs: Arc<dyn FileSystem>,
        path: impl Into<PathBuf>,
        config: StoreRootConfig,
    ) -> Result<Option<Self>, StorageError> {
        let path = path.into();
        match fs.list(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let known = config.inventory.node_dir.as_deref().map(|dir| partitions_in(&*fs, dir)).transpose()?;
                let count = known.map_or(0, |known| known.len());
                return if count > 0 { Err(root_is_gone(&path, count)) } else { Ok(None) };
            }
            Err(source) => return Err(io_error("list", &path, source)),
        }
        let StoreRootConfig { kind, journal, ledger, terms, inventory } = config;
        let lock = Shared::take_lock(&*fs, &path, &format!("{}.data_root", kind.name()))?;
        Ok(Some(Self { fs, path, kind, journal, ledger, terms, inventory, append_marks: None, lock: Some(lock) }))
    }

    /// Sets where the stores count their appends, if anywhere, so that a repair hides no loss of
    /// the run before.
    #[must_use]
    pub fn with_append_marks(self, append_marks: Option<Arc<AppendMarks>>) -> Self {
        Self { append_marks, ..self }
    }

    /// The kind of the stores.
    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory in which repairs keep copies of what they remove.
    pub fn quarantine(&self) -> PathBuf {
        self.path.join(QUARANTINE_DIR)
    }

    /// The partitions that have files here, or that the node has used, in order.
    pub fn partitions(&self) -> Result<Vec<u32>, StorageError> {
        let names = self.fs.list(&self.path).map_err(|source| io_error("list", &self.path, source))?;
        let mut partitions: BTreeSet<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        if let Some(node_dir) = &self.inventory.node_dir {
            partitions.extend(partitions_in(&*self.fs, node_dir)?);
        }
        // Trees are always on the real file system, even if the journals are not.
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().filter_map(Result::ok);
        let suffix = format!(".{}", self.kind.ledger_suffix());
        partitions
            .extend(entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(&suffix)?.parse::<u32>().ok()));
        Ok(partitions.into_iter().collect())
    }

    /// The bytes of a partition's files that an examination reads.
    pub fn bytes(&self, partition: u32) -> u64 {
        let dir = self.dir(partition);
        let names = self.fs.list(&dir).unwrap_or_default();
        let data = names.iter().filter(|name| crate::journal::parse_name(name).is_some());
        let length = |name: &String| {
            let file = self.fs.open(&dir.join(name), crate::fs::OpenMode::Read).ok()?;
            file.length().ok()
        };
        let tree = crate::ledger::TreeFiles::read(&self.ledger_dir(partition));
        let tree_bytes = tree.ok().and_then(Result::ok).flatten().map_or(0, |files| files.bytes());
        data.filter_map(length).sum::<u64>() + tree_bytes
    }

    /// Reads all files of a partition and reports what is damaged. Changes nothing. `observe` gets
    /// the number of bytes that were read, and returns whether to go on. If it ends the
    /// examination, the report is not complete.
    pub fn verify(
        &self,
        partition: u32,
        observe: &mut dyn FnMut(u64) -> bool,
    ) -> Result<PartitionReport, StorageError> {
        Ok(PartitionExamination::new(self, partition, observe)?.report())
    }

    pub(super) fn dir(&self, partition: u32) -> PathBuf {
        self.path.join(partition.to_string())
    }

    pub(super) fn inventory_copies(&self, partition: u32) -> InventoryCopies {
        InventoryCopies::of(&self.dir(partition), partition, self.inventory.node_dir.as_deref())
    }

    pub(super) fn ledger_dir(&self, partition: u32) -> PathBuf {
        self.path.join(format!("{partition}.{}", self.kind.ledger_suffix()))
    }
}
