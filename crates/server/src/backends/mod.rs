//! Opens the stores that the settings describe. This is the one place that knows how each backend
//! is opened.
//!
//! What it is: [`open`] for the stores that a node serves from, and [`open_one`] for tools that
//! read or write one backend of a stopped node.
//!
//! What it is not: it reads no configuration (`config::BackendSettings` does) and holds no lock on
//! the data directory; each backend locks its own directory.

mod inventories;
pub mod stores_file;

pub use inventories::Inventories;

use crate::config::{BackendSettings, DiskSettings, MultiSettings};
use crate::wall_clock::now_secs;
use bytes::Bytes;
use ombak_kv::{BackendChoice, head_terms, is_tombstone};
use ombak_storage::fs::{FileSystem, RealFs, SlowFs};
use ombak_storage::verify::{StoreKind, StoreRootConfig};
use ombak_storage::{
    AppendMarks, BackendFactory, BitcaskFactory, InventoryConfig, JournalConfig, LeveldbFactory, LeveledFactory,
    MemoryConfig, MemoryFactory, MultiFactory, StorageError, check_root,
};
use std::io;
use std::sync::Arc;

/// The stores that a node serves from.
pub struct Stores {
    /// Opens the store of each partition.
    pub factory: Arc<dyn BackendFactory>,
    /// With several backends, this says which of them holds a key. It needs the properties of the
    /// buckets before it can answer.
    pub choice: Option<Arc<BackendChoice>>,
}

/// Checks that every store in the settings may be opened and that no file of any store is missing.
/// This function changes nothing.
pub fn check(settings: &BackendSettings, inventories: &Inventories) -> Result<(), StorageError> {
    for (_, store) in settings.stores() {
        let Some(root) = store.disk().map(|disk| &disk.data_root) else { continue };
        let Some(config) = store_root_config(store, inventories.of(root)) else { continue };
        check_root(&RealFs, root, config.kind, &config.inventory)?;
    }
    Ok(())
}

/// Opens and locks the directories of all stores in the settings.
pub fn open(settings: &BackendSettings, inventories: &Inventories) -> Result<Stores, StorageError> {
    match settings {
        BackendSettings::Multi(multi) => open_several(multi, inventories),
        one => Ok(Stores { factory: open_with(one, inventories)?, choice: None }),
    }
}

fn open_with(settings: &BackendSettings, inventories: &Inventories) -> Result<Arc<dyn BackendFactory>, StorageError> {
    let inventory = settings.disk().map(|disk| inventories.of(&disk.data_root));
    open_one(settings, inventory.unwrap_or_default())
}

/// Opens and locks the directory of one backend.
///
/// A node with several backends needs one call for each of [`BackendSettings::stores`].
pub fn open_one(
    settings: &BackendSettings,
    inventory: InventoryConfig,
) -> Result<Arc<dyn BackendFactory>, StorageError> {
    match settings {
        BackendSettings::Bitcask(disk) => bitcask(disk, inventory),
        BackendSettings::Leveled(disk) => leveled(disk, inventory),
        BackendSettings::Leveldb(disk) | BackendSettings::Hanoidb(disk) => leveldb(disk, inventory),
        BackendSettings::Memory(config) => {
            let config = MemoryConfig { opened_at_secs: now_secs(), ..*config };
            Ok(Arc::new(MemoryFactory::with_terms(config, head_terms())))
        }
        BackendSettings::Multi(_) => Err(StorageError::NoBackend("several backends are opened one by one".into())),
    }
}

/// How the files of one backend are examined while no node serves from them; `None` for a backend
/// without files.
pub fn store_root_config(settings: &BackendSettings, inventory: InventoryConfig) -> Option<StoreRootConfig> {
    let kind = match settings {
        BackendSettings::Bitcask(_) => StoreKind::Bitcask,
        BackendSettings::Leveled(_) => StoreKind::Leveled,
        BackendSettings::Leveldb(_) | BackendSettings::Hanoidb(_) => StoreKind::Leveldb,
        BackendSettings::Memory(_) | BackendSettings::Multi(_) => return None,
    };
    let disk = settings.disk()?;
    let (journal, ledger) = (starting_now(&disk.journal), disk.ledger);
    Some(StoreRootConfig { kind, journal, ledger, terms: head_terms(), inventory })
}

fn open_several(multi: &MultiSettings, inventories: &Inventories) -> Result<Stores, StorageError> {
    let names = multi.backends.iter().map(|(name, _)| Bytes::copy_from_slice(name.as_bytes())).collect();
    let choice = Arc::new(BackendChoice::new(names, multi.default, multi.prefixes.clone()));
    let open = |(name, backend): &(String, BackendSettings)| Ok((name.clone(), open_with(backend, inventories)?));
    let backends = multi.backends.iter().map(open).collect::<Result<_, StorageError>>()?;
    let factory = Arc::new(MultiFactory::new(backends, choice.clone()));
    Ok(Stores { factory, choice: Some(choice) })
}

fn bitcask(disk: &DiskSettings, inventory: InventoryConfig) -> Result<Arc<dyn BackendFactory>, StorageError> {
    let (fs, journal) = (file_system(disk), starting_now(&disk.journal));
    let factory = BitcaskFactory::with_terms(fs, &disk.data_root, journal, &disk.ledger, head_terms())?;
    Ok(Arc::new(factory.with_inventory(inventory).with_append_marks(append_marks(disk))))
}

fn leveled(disk: &DiskSettings, inventory: InventoryConfig) -> Result<Arc<dyn BackendFactory>, StorageError> {
    let (fs, journal) = (file_system(disk), starting_now(&disk.journal));
    let factory = LeveledFactory::new(fs, &disk.data_root, journal, disk.ledger, head_terms())?;
    Ok(Arc::new(factory.with_inventory(inventory).with_append_marks(append_marks(disk))))
}

fn leveldb(disk: &DiskSettings, inventory: InventoryConfig) -> Result<Arc<dyn BackendFactory>, StorageError> {
    let (fs, journal) = (file_system(disk), starting_now(&disk.journal));
    let factory = LeveldbFactory::new(fs, &disk.data_root, journal, disk.ledger, head_terms())?;
    Ok(Arc::new(factory.with_inventory(inventory).with_append_marks(append_marks(disk))))
}

/// The append marks of a root of stores, which exists. Without them a start trusts the boot id of
/// the machine alone, so a failure is only a warning.
pub fn append_marks(disk: &DiskSettings) -> Option<Arc<AppendMarks>> {
    let dir = disk.append_marks_dir.as_ref()?;
    let Ok(Some(os_boot_id)) = RealFs.os_boot_id() else { return None };
    let marks = AppendMarks::open(dir, &disk.data_root, disk.partitions, os_boot_id);
    let failed = |error: &io::Error| {
        tracing::warn!(
            dir = %dir.display(), root = %disk.data_root.display(), %error,
            "append_marks_dir cannot be used: a start will not notice writes that a file system loses while the machine runs on"
        );
    };
    marks.inspect_err(failed).ok()
}

fn file_system(disk: &DiskSettings) -> Arc<dyn FileSystem> {
    match &disk.delay_file {
        None => Arc::new(RealFs),
        Some(file) => Arc::new(SlowFs::new(Arc::new(RealFs), file)),
    }
}

fn starting_now(journal: &JournalConfig) -> JournalConfig {
    JournalConfig { opened_at_secs: now_secs(), is_tombstone, ..*journal }
}
