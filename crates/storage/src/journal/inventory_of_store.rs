//! When a store updates its inventory, and with what.

use super::policy::JournalPolicy;
use super::store::Core;
use crate::error::StorageError;
use crate::inventory::{ACTIVE_GROWTH_BYTES, PromisedFile};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::atomic::Ordering;

impl<P: JournalPolicy> Core<P> {
    /// Records what a start found in the inventory. On a full disk this waits until there is room;
    /// reads go on.
    pub(super) fn begin_inventory(&self) -> Result<(), StorageError> {
        let (dir_exists, is_adopted) = {
            let writer = self.writer.lock();
            (writer.dir_exists, writer.last_seq() > 0 && self.inventory.promised().generation == 0)
        };
        if !dir_exists || !self.identity.has_begun() {
            self.inventory.note_change();
            return Ok(());
        }
        if is_adopted {
            let what = "this store had no inventory: what it has now is what it is held to from now on";
            tracing::info!(dir = %self.dir.display(), "{what}");
        }
        // A failure was logged already, and a later slice of work tries again.
        drop(self.renew_inventory());
        Ok(())
    }

    /// Logs at each start that something is known to be missing.
    pub(super) fn log_losses(&self) {
        let lost_ranges = self.status().lost_ranges;
        if lost_ranges > 0 {
            let what = "something that was stored here is known to be missing; 'ombak admin backend verify' says what is known";
            tracing::warn!(partition = self.partition, backend = P::BACKEND, lost_ranges, "{what}");
        }
    }

    /// Writes the inventory if something has changed that it should record. The caller holds
    /// `background`, as for each call of [`renew_inventory`](Self::renew_inventory).
    pub(super) fn renew_inventory_if_due(&self) {
        let synced_length = {
            let writer = self.writer.lock();
            writer.active.as_ref().map_or(0, |active| active.file.counters.synced_length.load(Ordering::Acquire))
        };
        let has_grown = self.inventory.active_growth_bytes(synced_length) >= ACTIVE_GROWTH_BYTES;
        if self.inventory.take_due() || has_grown {
            drop(self.renew_inventory());
        }
    }

    /// Writes what is on disk now to the inventory. A failure is logged and retried later; the
    /// previous inventory stays true.
    pub(super) fn renew_inventory(&self) -> Result<(), StorageError> {
        self.renew_inventory_with(0)
    }

    /// Writes the inventory and the `index_seq` up to which the tree has seen the journal. Older
    /// data is only in the tree.
    pub(super) fn renew_inventory_with(&self, index_seq: u64) -> Result<(), StorageError> {
        let files = self.promised_files();
        self.inventory.renew(files, index_seq)
    }

    /// The data files that have their durable name, with the synced length of each.
    fn promised_files(&self) -> BTreeMap<u32, PromisedFile> {
        let writer = self.writer.lock();
        let unsealed = writer.unsealed_ids();
        let mut promised = self.unreadable_files.clone();
        for file in self.files.read().values() {
            let length = file.counters.synced_length.load(Ordering::Acquire);
            let has_name = file.path().extension() == Some(OsStr::new("data"));
            if length > 0 && has_name && !file.is_unpromised.load(Ordering::Acquire) {
                let is_sealed = !unsealed.contains(&file.id);
                promised.insert(file.id, PromisedFile { salt: file.salt, length, is_sealed });
            }
        }
        promised
    }
}
