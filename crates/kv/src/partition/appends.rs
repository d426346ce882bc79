//! Every append to the store of a partition, and every removal from it.
//!
//! Invariant: whoever changes a partition calls one of these functions with the key's lock held, so
//! the sums of its classes (`crate::sums`) change with the store. Only what a store removes by
//! itself goes another way.

use super::partition::Partition;
use ombak_storage::{Appended, IndexedVersion, ReadMode, StorageError, Write};

impl Partition {
    /// Appends a version. `is_over_grown`: what it takes the place of may have been extended, or
    /// cannot be read.
    pub(super) fn put(&self, write: &Write<'_>, is_over_grown: bool) -> Result<Appended, StorageError> {
        let store = self.store();
        let appended = if is_over_grown { store.put_over_extended(write) } else { store.put(write) }?;
        self.count(write.key, &appended, Some(write.digest));
        Ok(appended)
    }

    /// Appends a version whose value is that of the current one, which has `kept_bytes`, and bytes
    /// behind it.
    pub(super) fn extend(&self, write: &Write<'_>, kept_bytes: u64, mode: ReadMode) -> Result<Appended, StorageError> {
        let appended = self.store().extend(write, kept_bytes, mode)?;
        self.count(write.key, &appended, Some(write.digest));
        Ok(appended)
    }

    /// Removes a key if its version has this digest.
    pub(super) fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        let removed = self.store().delete_if(key, digest)?;
        Ok(removed.inspect(|removed| self.count(key, removed, None)))
    }

    /// Removes a key, whichever version it has.
    pub(super) fn delete_any(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        let removed = self.store().delete(key)?;
        Ok(removed.inspect(|removed| self.count(key, removed, None)))
    }

    /// Counts what was appended, and what it has replaced or removed.
    fn count(&self, key: &[u8], appended: &Appended, digest: Option<u64>) {
        if let Some(sums) = self.sums() {
            let Appended { previous, seq, expires_secs } = *appended;
            sums.changed(key, previous, digest.map(|digest| IndexedVersion { digest, seq, expires_secs }));
        }
    }
}
