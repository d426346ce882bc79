//! Keeps the inventory of one store: compares it with the disk at a start, and writes it as the
//! store changes.

use super::lost_note::LostNote;
use super::root::create_root;
use super::shared::Shared;
use crate::error::{StorageError, io_error};
use crate::fs::FileSystem;
use crate::identity::random_id;
use crate::inventory::{
    Comparison, CopyState, Inventory, InventoryCopies, MissingItem, MissingKind, PromisedFile, Remedies, SmallFiles,
    compare, refusal_error,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The keeper of one store's inventory; see the module.
pub(super) struct InventoryKeeper {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    partition: u32,
    copies: InventoryCopies,
    /// The promises that the start found, without those that an accepted loss removed.
    promised: Inventory,
    written: Mutex<Written>,
    /// Whether something has changed that the inventory should record.
    is_due: AtomicBool,
    /// The synced length of the active file that the inventory has recorded.
    active_length: AtomicU64,
}

/// The content of both copies.
#[derive(Default)]
struct Written {
    store: Option<Inventory>,
    node: Option<Inventory>,
    has_failed: bool,
}

impl InventoryKeeper {
    /// Compares the inventory of a store with the disk. If something is missing, this fails with
    /// nothing changed. If the operator accepts the loss, the loss is on disk when this returns.
    pub(super) fn open(shared: &Shared, partition: u32, dir: &Path) -> Result<Self, StorageError> {
        let config = shared.inventory();
        let copies = InventoryCopies::of(dir, partition, config.node_dir.as_deref());
        let Comparison { store, node, missing } = compare(&*shared.fs, dir, &copies)?;
        if !missing.is_empty() && !config.accepts_loss {
            return Err(refusal_error(dir, partition, &missing, Remedies::ConsentOrRepair));
        }
        log_copies(dir, &copies, &store, &node);
        let comparison = Comparison { store, node, missing };
        let promised = comparison.promised().cloned();
        let Comparison { store, node, missing } = comparison;
        let promised = match promised {
            Some(promised) => promised,
            None => Inventory { lineage: random_id(shared.fs.machine(), dir)?, ..Inventory::default() },
        };
        let written = Written { store: store.whole().cloned(), node: node.whole().cloned(), has_failed: false };
        let mut keeper = Self {
            fs: shared.fs.clone(),
            dir: dir.to_owned(),
            partition,
            copies,
            promised,
            written: Mutex::new(written),
            is_due: AtomicBool::new(false),
            active_length: AtomicU64::new(0),
        };
        if !missing.is_empty() {
            keeper.accept_loss(&shared.root, &missing)?;
        }
        Ok(keeper)
    }

    /// Records durably that something is missing. From now on the inventory promises what is there.
    fn accept_loss(&mut self, root: &Path, missing: &[MissingItem]) -> Result<(), StorageError> {
        for item in missing {
            tracing::error!(partition = self.partition, missing = %item, "an accepted loss: the store goes on without it");
        }
        let fs = &*self.fs;
        create_root(fs, root)?;
        fs.create_dir_all(&self.dir).map_err(|source| io_error("create", &self.dir, source))?;
        fs.sync_dir(root).map_err(|source| io_error("fsync", root, source))?;
        let mut note = LostNote::read(fs, &self.dir)?;
        missing.iter().for_each(|item| note.add_place(item.place_fingerprint()));
        note.write(fs, &self.dir)?;
        for item in missing {
            match item.kind {
                MissingKind::FileShortened { id, length, .. } => {
                    self.promised.lost_files.insert(id);
                    self.promised.files.entry(id).and_modify(|file| file.length = length);
                }
                MissingKind::FileMissing { id } | MissingKind::AnotherFile { id } => {
                    self.promised.lost_files.insert(id);
                    self.promised.files.remove(&id);
                }
                // The tree is gone with the store.
                MissingKind::StoreGone => self.promised.index_seq = 0,
                MissingKind::AnotherStore
                | MissingKind::OlderStore { .. }
                | MissingKind::InventoryDamaged
                | MissingKind::SmallFileMissing { .. } => {}
            }
        }
        self.promised.small_files = self.small_files()?;
        self.write(self.promised.clone())
    }

    /// The promises that the start found.
    pub(super) fn promised(&self) -> &Inventory {
        &self.promised
    }

    /// Whether a data file is known to be lost, or to have lost its end.
    pub(super) fn is_lost(&self, id: u32) -> bool {
        self.promised.lost_files.contains(&id)
    }

    /// The synced length of a file that the start found promised; 0 if the file was not promised.
    pub(super) fn promised_length(&self, id: u32) -> u64 {
        self.promised.files.get(&id).map_or(0, |file| file.length)
    }

    /// Lets the next slice of background work write the inventory.
    pub(super) fn note_change(&self) {
        self.is_due.store(true, Ordering::Release);
    }

    /// Takes the flag that a change waits to be written. A later change sets it again.
    pub(super) fn take_due(&self) -> bool {
        self.is_due.swap(false, Ordering::AcqRel)
    }

    /// Synced bytes of the active file that the inventory has not recorded.
    pub(super) fn active_growth_bytes(&self, synced_length: u64) -> u64 {
        synced_length.saturating_sub(self.active_length.load(Ordering::Relaxed))
    }

    /// Writes these files to both copies. They are on disk when this returns. The names and
    /// contents of the files are on disk already.
    pub(super) fn renew(&self, files: BTreeMap<u32, PromisedFile>, index_seq: u64) -> Result<(), StorageError> {
        let active = files.values().filter(|file| !file.is_sealed).map(|file| file.length).max();
        let found = self.small_files()?;
        let (index_seq, lost_files, small_files) = {
            let written = self.written.lock();
            let last = written.store.as_ref().unwrap_or(&self.promised);
            let index_seq = index_seq.max(last.index_seq);
            // A store that was never written to has no directory yet, and nothing is promised.
            if written.store.is_none() && written.node.is_none() && files.is_empty() && index_seq == 0 {
                return Ok(());
            }
            // What goes while the store is open is missed by the next start.
            (index_seq, self.promised.lost_files.clone(), found.union(last.small_files))
        };
        let inventory =
            Inventory { lineage: self.promised.lineage, generation: 0, index_seq, files, lost_files, small_files };
        let renewed = self.write(inventory);
        match &renewed {
            Ok(()) => self.active_length.store(active.unwrap_or(0), Ordering::Relaxed),
            Err(_) => self.note_change(),
        }
        self.log_failure(&renewed);
        renewed
    }

    /// Removes the node's copy before the store is dropped, so that the next start does not report
    /// the store as missing.
    pub(super) fn forget(&self) -> Result<(), StorageError> {
        let mut written = self.written.lock();
        self.copies.remove_node(&*self.fs)?;
        *written = Written::default();
        Ok(())
    }

    /// Writes the store's copy first: the node's copy must never have a higher generation than the
    /// store's.
    fn write(&self, wanted: Inventory) -> Result<(), StorageError> {
        let mut written = self.written.lock();
        let generation = |copy: &Option<Inventory>| copy.as_ref().map_or(0, |copy| copy.generation);
        let last_generation = generation(&written.store).max(generation(&written.node));
        let current = match &written.store {
            Some(store) if store.promises_the_same(&wanted) && store.generation == last_generation => store.clone(),
            _ => {
                let new = Inventory { generation: last_generation + 1, ..wanted };
                // Syncs the names of the listed files. The first time, this also syncs the name of
                // the store's directory, which a kill may have left unsynced.
                self.sync_dir(&self.dir)?;
                if written.store.is_none() {
                    self.dir.parent().map_or(Ok(()), |root| self.sync_dir(root))?;
                }
                self.copies.write_store(&*self.fs, &new)?;
                written.store = Some(new.clone());
                new
            }
        };
        if self.copies.node.is_some() && written.node.as_ref() != Some(&current) {
            self.copies.write_node(&*self.fs, &current)?;
            written.node = Some(current);
        }
        Ok(())
    }

    /// The small files that are in the directory of the store.
    fn small_files(&self) -> Result<SmallFiles, StorageError> {
        match self.fs.list(&self.dir) {
            Ok(names) => Ok(SmallFiles::among(&names)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SmallFiles::default()),
            Err(source) => Err(io_error("list", &self.dir, source)),
        }
    }

    fn sync_dir(&self, dir: &Path) -> Result<(), StorageError> {
        self.fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source))
    }

    /// Logs the first failure only, until a write succeeds again.
    fn log_failure(&self, renewed: &Result<(), StorageError>) {
        let had_failed = std::mem::replace(&mut self.written.lock().has_failed, renewed.is_err());
        if let (Err(error), false) = (renewed, had_failed) {
            let what = "the inventory cannot be written: files that appear until then would not be missed";
            tracing::warn!(partition = self.partition, %error, "{what}");
        }
    }
}

/// Logs what a start found of the two copies, if that is unusual.
fn log_copies(dir: &Path, copies: &InventoryCopies, store: &CopyState, node: &CopyState) {
    let dir = dir.display();
    if *store == CopyState::Damaged {
        tracing::error!(%dir, "the inventory of this store is damaged; its copy is used");
    }
    if *node == CopyState::Damaged {
        tracing::error!(%dir, "the node's copy of the inventory of this store is damaged; the store has its own");
    }
    if *node == CopyState::Missing && copies.node.is_some() && store.whole().is_some() {
        tracing::info!(%dir, "the node had no copy of the inventory of this store: it keeps one from now on");
    }
}
