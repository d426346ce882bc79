//! Loads entries into the index: from records that were scanned, and from hint files.

use super::{LostSeqs, Recovery};
use crate::error::{StorageError, io_error};
use crate::journal::data_file::{DataFile, data_path, hint_path};
use crate::journal::format::{HintEntry, HintReader, HintWriter, Kind};
use crate::journal::index::{Entry, KeyIndex, Loaded, Version};
use crate::journal::policy::{JournalPolicy, RecordParts};
use crate::journal::writer::{position_of, record_bytes};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<P: JournalPolicy> Recovery<'_, P> {
    /// Loads a file from its hint file. False if the hint file does not match the data file, which
    /// must then be read.
    pub(super) fn load_hint(
        &mut self,
        file: &Arc<DataFile>,
        reader: HintReader,
        length: u64,
    ) -> Result<bool, StorageError> {
        let trailer = reader.trailer();
        if trailer.data_length != length {
            return Ok(false);
        }
        let path = hint_path(self.dir, file.id);
        let mut failed = None;
        let load = |entry: HintEntry<'_>| {
            let loaded = self.load_entry(file, &entry, &RecordParts::default());
            failed = failed.take().or(loaded.err());
        };
        let whole = reader.for_each(load).map_err(|source| io_error("read", &path, source))?;
        if let Some(error) = failed {
            return Err(error);
        }
        if whole {
            file.counters.lost_ranges.store(trailer.lost_ranges, Ordering::Relaxed);
            if trailer.lost_ranges > 0 {
                self.losses.add_seqs(LostSeqs::OfFile(file.id));
            }
        } else {
            tracing::warn!(file = %path.display(), "damaged hint file: reading the data instead");
        }
        Ok(whole)
    }

    /// Loads those versions from a hint file that its data file no longer has. They stay in the
    /// index, so that reads of their keys fail instead of finding an older version.
    pub(super) fn load_unread(
        &mut self,
        id: u32,
        file: Option<&Arc<DataFile>>,
        reader: HintReader,
        is_unread: &dyn Fn(u32) -> bool,
        hint: &mut Option<HintWriter>,
    ) -> Result<(), StorageError> {
        if !P::keeps_unreadable_versions() {
            return Ok(());
        }
        let path = hint_path(self.dir, id);
        let mut failed = None;
        reader
            .for_each(|entry| {
                if failed.is_some() || !is_unread(entry.offset) {
                    return;
                }
                // For versions that an index on disk has seen, its own entries are better.
                if !self.policy.has_seen(entry.seq) {
                    failed = self.load_lost_entry(id, file, &entry).err();
                }
                if let Some(writer) = hint
                    && writer.add(&entry).is_err()
                    && let Some(writer) = hint.take()
                {
                    writer.abandon(&*self.shared.fs);
                }
            })
            .map_err(|source| io_error("read", &path, source))?;
        failed.map_or(Ok(()), Err)
    }

    fn load_lost_entry(
        &mut self,
        id: u32,
        file: Option<&Arc<DataFile>>,
        entry: &HintEntry<'_>,
    ) -> Result<(), StorageError> {
        match file {
            Some(file) => self.load_entry(file, entry, &RecordParts::default()),
            // The counters of this file object are not used.
            None => self.load_entry(
                &Arc::new(DataFile::new(id, 0, data_path(self.dir, id))),
                entry,
                &RecordParts::default(),
            ),
        }
    }

    pub(super) fn load_entry(
        &mut self,
        file: &Arc<DataFile>,
        hint: &HintEntry<'_>,
        parts: &RecordParts,
    ) -> Result<(), StorageError> {
        self.seq_max = self.seq_max.max(hint.seq);
        self.unsynced_appends += u64::from(self.marked.is_some_and(|run| hint.seq > run.synced_seq));
        file.counters.count_record(hint.kind == Kind::Tombstone, record_bytes(hint), hint.seq, hint.tstamp_secs);
        // An old file that should have been removed may hold versions that were deleted in another
        // file that was removed.
        if !self.policy.is_in_journal(hint.seq) {
            return Ok(());
        }
        let position = position_of(file.id, hint);
        let expires_secs = self.shared.config.expires_at(hint.tstamp_secs, hint.expires_secs);
        self.has_expiring |= expires_secs != 0;
        let entry = Entry { position, expires_secs, seq: hint.seq, digest: hint.digest };
        let version = Version {
            head: &parts.head,
            body: &[&parts.body],
            tstamp_secs: hint.tstamp_secs,
            expires_secs: hint.expires_secs,
        };
        let Loaded::Newest(old) = self.index.load(P::Index::key(hint.key), &entry, &version)? else { return Ok(()) };
        // Versions that are not read from the journal were never counted as live.
        if let Some(old) = old.filter(|old| old.position.size != 0 && self.policy.is_in_journal(old.seq))
            && let Some(old_file) = self.files.get(&old.position.file_id)
        {
            old_file.counters.remove_live(old.position.size);
        }
        if position.size != 0 {
            file.counters.add_live(position.size);
        }
        Ok(())
    }
}
