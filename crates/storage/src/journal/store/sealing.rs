//! Completes files that are closed for appends: syncs them, and gives them hint files.

use super::core::Core;
use crate::error::StorageError;
use crate::journal::data_file::{DataFile, hint_path};
use crate::journal::policy::JournalPolicy;
use std::sync::atomic::Ordering;

impl<P: JournalPolicy> Core<P> {
    /// Syncs the files that are closed for appends, and completes the hint files of at most
    /// `count_max` of them.
    pub(crate) fn seal_closed_files(&self, count_max: usize) -> Result<(), StorageError> {
        if self.writer.lock().closed_unsealed.is_empty() {
            return Ok(());
        }
        self.sync_appended()?;
        let sealed = {
            let mut writer = self.writer.lock();
            let synced = |file: &DataFile, length| file.counters.synced_length.load(Ordering::Acquire) >= length;
            writer
                .closed_unsealed
                .extract_if(.., |closed| synced(&closed.file, closed.length))
                .take(count_max)
                .collect::<Vec<_>>()
        };
        let mut is_named = false;
        for appender in sealed {
            self.inventory.note_change();
            let Some(hint) = appender.hint else { continue };
            let path = hint_path(&self.dir, appender.file.id);
            self.counters.hint_bytes.fetch_add(hint.length(), Ordering::Relaxed);
            match hint.finish(&*self.shared.fs, &path, appender.length, 0) {
                Ok(()) => is_named = true,
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "no hint file: the next start will read the data");
                }
            }
        }
        if !is_named {
            return Ok(());
        }
        // The hint file proves that the last record of its data file was synced. Without a durable
        // name, a loss of power can remove the hint file, and damage to the last record (for
        // instance by a misdirected write) would look like a torn write. To prevent that is worth
        // one sync for each file.
        self.sync_dir().inspect_err(|error| self.poison(error))
    }
}
