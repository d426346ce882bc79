//! Puts and deletes: an append to the journal, then the change of the index.

use super::core::Core;
use crate::backend::{ReadMode, Write};
use crate::error::StorageError;
use crate::journal::coding::compress;
use crate::journal::format::{BodyCoding, Kind, body_crc};
use crate::journal::index::{Entry, KeyIndex, Version};
use crate::journal::policy::JournalPolicy;
use crate::journal::writer::{AppendError, NewRecord, Writer, Written, refused_io};
use crate::limits::check_sizes;
use crate::receipt::{Appended, IndexedVersion, Previous};
use crate::seq::SeqSource;
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

impl<P: JournalPolicy> Core<P> {
    fn append(&self, writer: &mut MutexGuard<'_, Writer>, record: &NewRecord<'_>) -> Result<Written, StorageError> {
        self.check_appendable()?;
        if !self.identity.may_append() {
            self.prepare_first_append(&writer.seqs)?;
        }
        let now_secs = self.now_secs.load(Ordering::Relaxed);
        let had_file = writer.active.as_ref().map(|active| active.file.id);
        let result = writer.append(&self.shared, &self.dir, record, now_secs);
        if let Some(active) = &writer.active
            && had_file != Some(active.file.id)
        {
            self.files.write().insert(active.file.id, active.file.clone());
        }
        result.map_err(|error| match error {
            AppendError::Refused(error) => error,
            AppendError::Fatal(error) => {
                self.poison(&error);
                error
            }
        })
    }

    /// Makes durable what must be on disk before the first append of a run, which gets a number
    /// above the base of `seqs`.
    #[cold]
    fn prepare_first_append(&self, seqs: &SeqSource) -> Result<(), StorageError> {
        let base = seqs.base();
        if !self.identity.has_begun() {
            self.begin_on_first_write(base)?;
        }
        // Another store of the partition may have raised the base after this one was opened.
        self.identity.allow_appends_after(base, seqs.opening()).map_err(|source| refused_io("write", &self.dir, source))
    }

    /// Prepares the directory at the first write of a new store, or of a store whose start found
    /// the disk full.
    fn begin_on_first_write(&self, base: u64) -> Result<(), StorageError> {
        let begin = || {
            self.shared.fs.create_dir_all(&self.dir)?;
            self.shared.fs.sync_dir(&self.shared.root)?;
            self.identity.begin(base)
        };
        self.inventory.note_change();
        begin().map_err(|source| refused_io("create", &self.dir, source))?;
        self.retention.begin(self.identity.identity().boot)
    }

    /// Updates the counts of the version's file, because the index no longer points at the version.
    pub(in crate::journal) fn uncount_live(&self, entry: &Entry) {
        if !self.policy.is_in_journal(entry.seq) {
            return;
        }
        if let Some(file) = self.files.read().get(&entry.position.file_id) {
            file.counters.remove_live(entry.position.size);
        }
    }

    /// Removes a version that is older than the configured age from the index, if it satisfies
    /// `condition`, and tells the observer. Nothing is appended.
    pub(in crate::journal) fn forget(
        &self,
        key: &[u8],
        condition: impl Fn(&Entry) -> bool,
    ) -> Result<Option<Entry>, StorageError> {
        // With the writer's lock, the observer learns of this before any later put of the key.
        let writer = self.writer.lock();
        let removed = self.index.remove_if(P::Index::key(key), condition)?;
        if let Some(old) = &removed {
            self.note_unrecorded_removal(key, writer.last_seq(), true);
            self.drops.dropped(key, old.version());
        }
        Ok(removed)
    }

    pub(super) fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        let body_len = check_sizes(write)?;
        let config = &self.shared.config;
        let compressed = if P::compresses_appends(config) { compress(config.compression, write.body) } else { None };
        let parts = compressed.as_ref().map(|(_, body)| [&body[..]]);
        let (body, body_len, coding) = match (&parts, &compressed) {
            (Some(parts), Some((coding, body))) => (&parts[..], body.len(), *coding),
            _ => (write.body, body_len, BodyCoding::Plain),
        };
        let record = NewRecord {
            kind: Kind::Put,
            key: write.key,
            head: write.head,
            body,
            body_len,
            coding,
            crc_body: body_crc(body),
            digest: write.digest,
            tstamp_secs: write.tstamp_secs,
            expires_secs: write.expires_secs,
            has_terms: write.has_terms,
        };
        let key = P::Index::key(write.key);
        let mut writer = self.writer.lock();
        let before = self.index.read_before_write(key)?;
        let is_unknown = P::Index::is_unknown(&before);
        let Written { seq, position, file } = self.append(&mut writer, &record)?;
        file.counters.add_live(position.size);
        let put_bytes = write.key.len() + write.head.len() + write.body.iter().map(|part| part.len()).sum::<usize>();
        self.counters.put_bytes.fetch_add(put_bytes as u64, Ordering::Relaxed);
        let expires_secs = self.shared.config.expires_at(write.tstamp_secs, write.expires_secs);
        if expires_secs != 0 && !self.expires_anything() {
            self.has_expiring.store(true, Ordering::Relaxed);
        }
        let entry = Entry { position, expires_secs, seq, digest: write.digest };
        let Write { head, body, tstamp_secs, expires_secs, .. } = *write;
        let version = Version { head, body, tstamp_secs, expires_secs };
        let old = self.index.put(key, &entry, &version, before);
        if let Some(old) = &old {
            self.uncount_live(old);
        }
        Ok(Appended { previous: previous(old, is_unknown), seq, expires_secs: entry.expires_secs })
    }

    /// Removes a key if its current version satisfies `condition`. `removed` gets that version,
    /// before any other append.
    pub(super) fn delete(
        &self,
        key: &[u8],
        condition: impl Fn(&Entry) -> bool,
        removed: impl FnOnce(IndexedVersion),
    ) -> Result<Option<Appended>, StorageError> {
        let indexed = P::Index::key(key);
        let mut writer = self.writer.lock();
        self.check_writable()?;
        if !self.index.get(indexed, ReadMode::Blocking)?.is_some_and(|found| condition(&found.entry)) {
            return Ok(None);
        }
        let before = self.index.read_before_write(indexed)?;
        let is_unknown = P::Index::is_unknown(&before);
        let record = NewRecord {
            kind: Kind::Tombstone,
            key,
            head: &[],
            body: &[],
            body_len: 0,
            coding: BodyCoding::Plain,
            crc_body: 0,
            digest: 0,
            tstamp_secs: self.now_secs.load(Ordering::Relaxed).min(u64::from(u32::MAX)) as u32,
            expires_secs: 0,
            has_terms: false,
        };
        let seq = self.append(&mut writer, &record)?.seq;
        let old = self.index.remove(indexed, before);
        if let Some(old) = &old {
            self.uncount_live(old);
            self.note_unrecorded_removal(key, seq, false);
            removed(old.version());
        }
        Ok(Some(Appended { previous: previous(old, is_unknown), seq, expires_secs: 0 }))
    }
}

/// What a receipt tells of the entry that was replaced or removed.
fn previous(old: Option<Entry>, is_unknown: bool) -> Previous {
    match old {
        Some(old) => Previous::Version(old.version()),
        None if is_unknown => Previous::Unknown,
        None => Previous::Nothing,
    }
}
