//! Removes data files that the index does not need any more, for a journal that is only a log.

use super::core::Core;
use crate::error::{StorageError, io_error};
use crate::journal::data_file::{DataFile, hint_path};
use crate::journal::policy::JournalPolicy;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<P: JournalPolicy> Core<P> {
    /// Removes the data files in which all appends have a number up to `seq`, because the index has
    /// their versions on its own disk.
    pub(crate) fn remove_files_up_to(&self, seq: u64) -> Result<(), StorageError> {
        self.seal_closed_files(usize::MAX)?;
        let covered = self.sealed_files_up_to(seq);
        if covered.is_empty() {
            return Ok(());
        }
        let lost = covered.iter().map(|file| u64::from(file.counters.lost_ranges.load(Ordering::Relaxed))).sum();
        if lost > 0 {
            // The loss must stay known after the file with the damage is removed.
            self.take_over_loss(lost, &covered)?;
        }
        // The inventory must stop promising these files before they are removed.
        covered.iter().for_each(|file| file.is_unpromised.store(true, Ordering::Release));
        self.renew_inventory_with(seq)?;
        // Records up to where the index must have seen the journal, so that an older index is
        // recognised.
        self.note_index_must_have_seen(seq)?;
        let mut files = self.files.write();
        covered.iter().for_each(|file| drop(files.remove(&file.id)));
        drop(files);
        for file in covered {
            for path in [hint_path(&self.dir, file.id), file.path()] {
                match self.shared.fs.remove_file(&path) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        return Err(io_error("remove", &path, source));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The files that are closed for appends and that have no record after `seq`. The caller must
    /// not look for them a second time: a file that was created since then has no record yet, and
    /// would seem to be one of them.
    fn sealed_files_up_to(&self, seq: u64) -> Vec<Arc<DataFile>> {
        let writer = self.writer.lock();
        let unsealed = writer.unsealed_ids();
        let is_covered =
            |file: &Arc<DataFile>| !unsealed.contains(&file.id) && file.counters.seq_max.load(Ordering::Acquire) <= seq;
        let files = self.files.read();
        files.values().filter(|file| is_covered(file)).cloned().collect()
    }
}
