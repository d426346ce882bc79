//! Every append to the store of a partition, and every removal from it.
//!
//! Invariant: whoever changes a partition calls one of these functions with the key's lock held, so
//! the sums of its classes (`crate::sums`) and their trees (`crate::kept_trees`) change with the
//! store. Only what a store removes by itself goes another way.

use super::partition::Partition;
use crate::kept_trees::KnownClock;
use ombak_storage::{Appended, IndexedVersion, ReadMode, StorageError, Write};

/// What kept trees need to know of a change. Without kept trees nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    /// The version that was there.
    pub(super) old: Option<KnownClock>,
    /// The hash of the clock of the new version.
    pub(super) new: Option<u32>,
}

impl Partition {
    /// Appends a version. `is_over_grown`: what it takes the place of may have been extended, or
    /// cannot be read.
    pub(super) fn put(&self, write: &Write<'_>, is_over_grown: bool, clocks: Clocks) -> Result<Appended, StorageError> {
        let store = self.store();
        let appended = if is_over_grown { store.put_over_extended(write) } else { store.put(write) }?;
        self.count(write.key, &appended, (Some(write.digest), clocks));
        Ok(appended)
    }

    /// Appends a version whose value is that of the current one, which has `kept_bytes`, and bytes
    /// behind it.
    pub(super) fn extend(
        &self,
        write: &Write<'_>,
        (kept_bytes, mode): (u64, ReadMode),
        clocks: Clocks,
    ) -> Result<Appended, StorageError> {
        let appended = self.store().extend(write, kept_bytes, mode)?;
        self.count(write.key, &appended, (Some(write.digest), clocks));
        Ok(appended)
    }

    /// Removes a key if its version has this digest. `old` is that version, if its clock is known.
    pub(super) fn delete_if(
        &self,
        (key, digest): (&[u8], u64),
        old: Option<KnownClock>,
    ) -> Result<Option<Appended>, StorageError> {
        let removed = self.store().delete_if(key, digest)?;
        Ok(removed.inspect(|removed| self.count(key, removed, (None, Clocks { old, new: None }))))
    }

    /// Removes a key, whichever version it has.
    pub(super) fn delete_any(&self, key: &[u8], old: Option<KnownClock>) -> Result<Option<Appended>, StorageError> {
        let removed = self.store().delete(key)?;
        Ok(removed.inspect(|removed| self.count(key, removed, (None, Clocks { old, new: None }))))
    }

    /// Counts what was appended, and what it has replaced or removed.
    fn count(&self, key: &[u8], appended: &Appended, (digest, clocks): (Option<u64>, Clocks)) {
        let Appended { previous, seq, expires_secs } = *appended;
        let after = digest.map(|digest| IndexedVersion { digest, seq, expires_secs });
        if let Some(sums) = self.sums() {
            sums.changed(key, previous, after);
        }
        if let Some(trees) = self.trees() {
            trees.changed(key, (previous, clocks.old), after.map(|after| (after, clocks.new)));
        }
    }
}
