//! The parts of a checkpoint that the policies of several backends share.

use super::core::Core;
use crate::error::StorageError;
use crate::journal::checkpoint::{Checkpoint, FileState};
use crate::journal::index::PersistentIndex;
use crate::journal::policy::JournalPolicy;
use crate::journal::writer::Writer;
use std::collections::BTreeMap;

impl<P: JournalPolicy> Core<P> {
    /// Takes a checkpoint of the index; see [`JournalPolicy::checkpoint`]. The caller holds
    /// `background`, so that no merge copies anything meanwhile, and has settled the outputs of a
    /// merge that is under way.
    pub(in crate::journal) fn checkpoint(&self) -> Result<(), StorageError> {
        if self.writer.lock().last_seq() == 0 {
            // Nothing was ever written to this store, so no checkpoint is needed.
            return Ok(());
        }
        P::checkpoint(self)?;
        drop(self.renew_inventory());
        Ok(())
    }

    /// The first half of a checkpoint: calls `take` while no append can begin, and returns the last
    /// append before it.
    pub(crate) fn take_checkpoint(&self, take: impl FnOnce(&mut Writer)) -> u64 {
        let mut writer = self.writer.lock();
        take(&mut writer);
        writer.last_seq()
    }

    /// A checkpoint of this moment, without the states of files.
    pub(crate) fn checkpoint_of(&self, writer: &Writer) -> Checkpoint {
        Checkpoint { seq: writer.last_seq(), next_id: writer.next_id, files: BTreeMap::new() }
    }

    /// The states of all data files.
    pub(crate) fn file_states(&self) -> BTreeMap<u32, FileState> {
        self.files.read().values().map(|file| (file.id, FileState::of(file))).collect()
    }
}

impl<P: JournalPolicy> Core<P>
where
    P::Index: PersistentIndex,
{
    /// Writes an earlier checkpoint that could not be written when it was taken.
    pub(crate) fn flush_unwritten(&self) -> Result<(), StorageError> {
        if !self.index.has_unwritten() {
            return Ok(());
        }
        self.sync_appended()?;
        self.index.flush()
    }

    /// The second half of a checkpoint: on disk when this returns. The first half took everything
    /// up to `seq`.
    pub(crate) fn write_checkpoint(&self, seq: u64) -> Result<(), StorageError> {
        // The index on disk must not point at records that are not on disk.
        self.sync(seq)?;
        self.index.flush()
    }
}
