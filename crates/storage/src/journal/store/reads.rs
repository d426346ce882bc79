//! Reads of versions: from the index, or from the data file that it names.

use super::core::Core;
use crate::backend::{ReadMode, Stored};
use crate::error::StorageError;
use crate::fold::Expired;
use crate::journal::index::{IndexAnswer, KeyIndex, OrderedIndex};
use crate::journal::policy::JournalPolicy;
use crate::journal::read::{Read, Wanted, read_record};
use std::io;
use std::sync::atomic::Ordering;

/// How often a read is retried because a merge moved the version meanwhile.
const READ_TRIES_MAX: usize = 64;

/// How many keys are added to the ordered index before other work may run.
pub(in crate::journal) const ORDERED_INDEX_SLICE: usize = 10_000;

impl<P: JournalPolicy> Core<P> {
    pub(super) fn get(&self, key: &[u8], mode: ReadMode, expired: Expired) -> Result<Option<Stored>, StorageError> {
        let indexed = P::Index::key(key);
        let read = self.read_with(key, mode, Wanted::Whole, expired, || self.index.get(indexed, mode))?;
        Ok(read.map(|read| read.stored))
    }

    pub(super) fn head(&self, key: &[u8], mode: ReadMode, expired: Expired) -> Result<Option<Stored>, StorageError> {
        let indexed = P::Index::key(key);
        let read = self.read_with(key, mode, Wanted::Head, expired, || self.index.get_head(indexed, mode))?;
        Ok(read.map(|read| read.stored))
    }

    /// Reads a version of a key. Retries the look-up if a merge moves the version between the
    /// look-up and the read.
    pub(in crate::journal) fn read_with(
        &self,
        key: &[u8],
        mode: ReadMode,
        wanted: Wanted,
        expired: Expired,
        look: impl Fn() -> Result<Option<IndexAnswer>, StorageError>,
    ) -> Result<Option<Read>, StorageError> {
        self.check_open()?;
        let mut last = StorageError::Damaged { file: self.dir.clone(), offset: 0, what: "a data file is not there" };
        for _ in 0..READ_TRIES_MAX {
            let is_visible = |found: &IndexAnswer| !self.is_hidden(found.entry.expires_secs, expired);
            let indexed = look().map_err(|error| self.unreadable_entry(error))?;
            let Some(found) = indexed.filter(is_visible) else { return Ok(None) };
            let IndexAnswer { entry, head, body, attrs } = found;
            let body = body.filter(|_| wanted == Wanted::Whole);
            if let Some(head) = head.filter(|_| wanted == Wanted::Head || body.is_some()) {
                let stored_secs = attrs.map(|attrs| attrs.tstamp_secs);
                let stored = Stored { head, body, digest: entry.digest, seq: entry.seq, stored_secs };
                return Ok(Some(Read { stored, attrs }));
            }
            let Some(file) = self.files.read().get(&entry.position.file_id).cloned() else { continue };
            match read_record(&self.shared.handles, &file, &entry, key, mode, wanted) {
                Ok(read) => {
                    if wanted == Wanted::Head {
                        self.index.cache_head(entry.position, &read.stored.head);
                    }
                    return Ok(Some(read));
                }
                Err(StorageError::Io { op, path, source }) if source.kind() == io::ErrorKind::NotFound => {
                    last = StorageError::Io { op, path, source };
                }
                Err(error @ StorageError::WouldBlock) => return Err(error),
                Err(error) => return Err(self.unreadable(Some(file.id), error)),
            }
        }
        // The files may be gone because the partition was dropped.
        self.check_open()?;
        Err(last)
    }

    /// Tells the observer of a version that cannot be read, if that is what an error says.
    pub(in crate::journal) fn tell_unreadable(&self, key: &[u8], error: &StorageError) {
        if error.is_unreadable_version() {
            self.unreadable.tell(key);
        }
    }

    /// Counts a failed read of a version in a data file.
    #[cold]
    fn unreadable(&self, file_id: Option<u32>, error: StorageError) -> StorageError {
        self.counters.read_errors.fetch_add(1, Ordering::Relaxed);
        let error = self.judge_media_error(file_id, error);
        tracing::error!(partition = self.partition, %error, "a version cannot be read");
        error
    }

    /// Counts a failed read of an index on disk, if the entry of one key cannot be read.
    fn unreadable_entry(&self, error: StorageError) -> StorageError {
        if error.is_unreadable_version() { self.unreadable(None, error) } else { error }
    }

    /// Continues to build the ordered index of keys and terms; true when it is complete.
    pub(in crate::journal) fn build_ordered_index(&self, count_max: usize) -> Result<bool, StorageError> {
        self.index.build_ordered_index(count_max, &|key, _| {
            // Looked up again for each try: a merge that moves the version meanwhile must not make
            // it one that cannot be read. A newer version is as good, because its put waits for the
            // ordered index.
            let look = || self.index.get_head(P::Index::key(key), ReadMode::Blocking);
            let read = self.read_with(key, ReadMode::Blocking, Wanted::Head, Expired::Hidden, look);
            let read = read.inspect_err(|error| self.tell_unreadable(key, error))?;
            Ok(read.map(|read| read.stored.head).unwrap_or_default())
        })
    }
}
