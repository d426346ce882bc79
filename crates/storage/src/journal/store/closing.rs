//! The end of a store: a clean close, a recorded loss, and the removal of all its data.

use super::core::Core;
use crate::error::{StorageError, io_error};
use crate::journal::data_file::DataFile;
use crate::journal::index::KeyIndex;
use crate::journal::index_must_have_seen;
use crate::journal::lost_note::LostNote;
use crate::journal::policy::JournalPolicy;
use crate::journal::root::{DROPPED_SUFFIX, remove_store_dir};
use crate::journal::writer::Writer;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<P: JournalPolicy> Core<P> {
    /// Refuses further appends, syncs everything that was appended before, and then marks the store
    /// as cleanly closed. The mark is therefore true even if other threads write meanwhile.
    pub(super) fn close(&self) -> Result<(), StorageError> {
        let mut background = self.background.lock();
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        background.merges.abandon(self);
        {
            let mut writer = self.writer.lock();
            self.is_closing.store(true, Ordering::Release);
            writer.close_active();
        }
        let sealed = self
            .check_writable()
            .and_then(|()| self.seal_closed_files(usize::MAX))
            .and_then(|()| self.settle_and_checkpoint(&mut background))
            .and_then(|()| self.check_writable())
            .inspect(|()| drop(self.renew_inventory()))
            .and_then(|()| self.identity.end(self.writer.lock().last_seq()));
        self.closed.store(true, Ordering::Release);
        sealed
    }

    /// Records up to where an index on disk must have seen the journal at the next start.
    pub(crate) fn note_index_must_have_seen(&self, seq: u64) -> Result<(), StorageError> {
        index_must_have_seen::write(&*self.shared.fs, &self.dir, seq)
    }

    /// Counts further lost ranges, now and at every start from now on.
    pub(crate) fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        self.take_over_loss(lost_ranges, &[])?;
        self.lost_up_to.store(u64::MAX, Ordering::Release);
        Ok(())
    }

    /// As [`Self::note_loss`], for the ranges of files that are about to be removed. None of them
    /// counts twice meanwhile: a consumer would take that for another loss.
    pub(in crate::journal) fn take_over_loss(
        &self,
        lost_ranges: u64,
        files: &[Arc<DataFile>],
    ) -> Result<(), StorageError> {
        let mut writer = self.writer.lock();
        self.check_writable()?;
        let fs = &*self.shared.fs;
        if !writer.dir_exists {
            fs.create_dir_all(&self.dir).map_err(|source| io_error("create", &self.dir, source))?;
            writer.dir_exists = true;
            let root = &self.shared.root;
            fs.sync_dir(root).map_err(|source| io_error("fsync", root, source))?;
        }
        let mut note = LostNote::read(fs, &self.dir)?;
        note.add_unlisted(lost_ranges);
        note.write(fs, &self.dir)?;
        self.inventory.note_change();
        let _files = self.files.write();
        files.iter().for_each(|file| file.counters.lost_ranges.store(0, Ordering::Relaxed));
        self.lost_ranges.fetch_add(lost_ranges, Ordering::Relaxed);
        Ok(())
    }

    /// Removes the store. The directory is renamed first: after a crash it is either the whole
    /// store, or debris whose name says so.
    pub(super) fn drop_partition(&self) -> Result<(), StorageError> {
        let mut background = self.background.lock();
        background.merges.abandon(self);
        self.closed.store(true, Ordering::Release);
        let mut writer = self.writer.lock();
        *writer = Writer::new(writer.seqs.clone(), writer.last_seq(), writer.next_id, writer.dir_exists, None);
        self.files.write().clear();
        if !writer.dir_exists {
            return self.index.destroy();
        }
        self.inventory.forget()?;
        let (fs, root) = (&*self.shared.fs, &self.shared.root);
        let aside = root.join(format!("{}{DROPPED_SUFFIX}", self.partition));
        if fs.list(&aside).is_ok() {
            remove_store_dir(fs, &aside)?;
        }
        fs.rename(&self.dir, &aside).map_err(|source| io_error("rename", &self.dir, source))?;
        writer.dir_exists = false;
        fs.sync_dir(root).map_err(|source| io_error("fsync", root, source))?;
        // Until the renamed directory is gone, each start removes the index again.
        self.index.destroy()?;
        remove_store_dir(fs, &aside)
    }
}
