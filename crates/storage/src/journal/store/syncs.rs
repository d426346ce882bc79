//! Syncs of what was appended: one fsync serves all callers that wait.

use super::core::Core;
use crate::error::{StorageError, io_error};
use crate::journal::config::SyncStrategy;
use crate::journal::data_file::{DataFile, data_path};
use crate::journal::format::FILE_HEADER_BYTES;
use crate::journal::policy::JournalPolicy;
use crate::journal::writer::Appender;
use parking_lot::MutexGuard;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl<P: JournalPolicy> Core<P> {
    pub(in crate::journal) fn is_synced(&self, seq: u64) -> bool {
        self.synced_seq.load(Ordering::Acquire) >= seq
    }

    /// Syncs up to `seq`. One caller syncs for all that wait; callers that arrive during a sync are
    /// served by the next one.
    pub(crate) fn sync(&self, seq: u64) -> Result<(), StorageError> {
        let mut leading = self.sync_leader.lock();
        loop {
            if self.is_synced(seq) {
                return Ok(());
            }
            if let Err(refused) = self.check_writable() {
                // A close that has ended meanwhile synced everything before it closed the store.
                return if self.is_synced(seq) { Ok(()) } else { Err(refused) };
            }
            if *leading {
                self.sync_done.wait(&mut leading);
                continue;
            }
            *leading = true;
            let last_seq = MutexGuard::unlocked(&mut leading, || self.sync_all());
            *leading = false;
            self.sync_done.notify_all();
            if seq > last_seq {
                // Waiting for a `seq` that was never appended could last forever.
                let what = format!("{seq} was to be synced, and the last append is {last_seq}");
                let source = io::Error::new(io::ErrorKind::InvalidInput, what);
                return Err(io_error("fsync", &self.dir, source));
            }
        }
    }

    /// Syncs everything that was appended so far, and returns the last `seq` of it. A failure
    /// poisons the store.
    fn sync_all(&self) -> u64 {
        let (target, mark, files, dir_dirty, root_dirty) = {
            let mut writer = self.writer.lock();
            let unsynced =
                |appender: &&Appender| appender.file.counters.synced_length.load(Ordering::Acquire) < appender.length;
            let all = writer.closed_unsealed.iter().chain(writer.active.as_ref()).filter(unsynced);
            let files: Vec<_> =
                all.map(|appender| (appender.file.clone(), appender.handle.clone(), appender.length)).collect();
            let dirty = (std::mem::take(&mut writer.dir_dirty), std::mem::take(&mut writer.root_dirty));
            (writer.last_seq(), writer.mark(), files, dirty.0, dirty.1)
        };
        let has_new = files.iter().any(|(file, ..)| file.counters.synced_length.load(Ordering::Acquire) == 0);
        let result = files
            .iter()
            .try_for_each(|(file, handle, _)| {
                handle.sync_data().map_err(|source| file.io_error("fsync", source))?;
                self.name_synced(file)
            })
            .and_then(|()| if dir_dirty { self.sync_dir() } else { Ok(()) })
            .inspect(|()| {
                // Only after the directory is synced: a file that counts as synced may get a hint
                // file, and a hint file must not survive a loss of power that removes the name of
                // its data file.
                for (file, _, length) in &files {
                    file.counters.synced_length.fetch_max(*length, Ordering::AcqRel);
                }
                // This comes last: background work that saw the change earlier would not find the
                // file synced yet, and would not list it.
                if has_new {
                    self.inventory.note_change();
                }
            })
            .and_then(|()| {
                let root = &self.shared.root;
                if root_dirty { self.shared.fs.sync_dir(root).map_err(|e| io_error("fsync", root, e)) } else { Ok(()) }
            });
        match result {
            Ok(()) => {
                if let Some((mark, appended)) = mark {
                    mark.note_synced(target, appended);
                }
                self.synced_seq.fetch_max(target, Ordering::AcqRel);
            }
            Err(error) => self.poison(&error),
        }
        target
    }

    /// Renames a file at its first sync to the name of a synced file. The caller syncs the
    /// directory afterwards.
    fn name_synced(&self, file: &DataFile) -> Result<(), StorageError> {
        if file.counters.synced_length.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        let path = data_path(&self.dir, file.id);
        self.shared.fs.rename(&file.path(), &path).map_err(|source| file.io_error("rename", source))?;
        file.set_path(path);
        Ok(())
    }

    pub(in crate::journal) fn sync_dir(&self) -> Result<(), StorageError> {
        self.shared.fs.sync_dir(&self.dir).map_err(|source| io_error("fsync", &self.dir, source))
    }

    /// Syncs everything that was appended so far.
    pub(in crate::journal) fn sync_appended(&self) -> Result<(), StorageError> {
        let seq = self.writer.lock().last_seq();
        self.sync(seq)
    }

    /// Syncs the appends when the interval is over. Takes no lock that a merge, a backup or
    /// `catch_up` holds.
    pub(in crate::journal) fn sync_if_due(&self, now: Instant) -> Result<(), StorageError> {
        let SyncStrategy::Interval(interval) = self.shared.config.sync else { return Ok(()) };
        if self.check_writable().is_err() {
            // The status has the reason.
            return Ok(());
        }
        {
            let mut last_sync = self.last_sync.lock();
            if now.saturating_duration_since(*last_sync) < interval {
                return Ok(());
            }
            *last_sync = now;
        }
        self.sync_appended()
    }

    /// Syncs the active file if it was never synced, whatever the sync strategy: once for each
    /// file. Only a synced file is listed in the inventory, and only a listed file can be missed by
    /// a start. With the strategy `none`, nothing else syncs the file before it is closed.
    pub(in crate::journal) fn sync_new_file(&self) -> Result<(), StorageError> {
        let is_unsynced = self.writer.lock().active.as_ref().is_some_and(|active| {
            active.length > FILE_HEADER_BYTES as u64 && active.file.counters.synced_length.load(Ordering::Acquire) == 0
        });
        if is_unsynced { self.sync_appended() } else { Ok(()) }
    }
}
