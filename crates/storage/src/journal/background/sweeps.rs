//! Sweeps that remove expired versions from the index, in stores with a configured age of versions.
//!
//! In other stores an expired version stays until it is removed like a tombstone
//! (`crate::drops` says why).

use crate::error::StorageError;
use crate::journal::format::RECORD_HEADER_BYTES;
use crate::journal::index::{Entry, KeyIndex, SweepCursor};
use crate::journal::policy::JournalPolicy;
use crate::journal::store::Core;
use std::sync::atomic::Ordering;

/// The number of keys that one slice checks for expiry.
const SWEEP_SLICE: usize = 10_000;

/// The sweep that is under way, and when the next one begins.
#[derive(Default)]
pub(super) struct Sweeps {
    cursor: Option<SweepCursor>,
    next_secs: u64,
}

impl<P: JournalPolicy> Core<P> {
    /// Removes expired versions from the index. Their records on disk are dead from then on.
    pub(super) fn sweep_expired(&self, sweeps: &mut Sweeps, now_secs: u64) -> Result<(), StorageError> {
        if !self.shared.config.forgets_expired() {
            return Ok(());
        }
        if sweeps.cursor.is_none() && now_secs >= sweeps.next_secs {
            sweeps.next_secs = now_secs + u64::from(self.shared.config.sweep_interval_secs);
            sweeps.cursor = Some(SweepCursor::default());
        }
        let Some(cursor) = &mut sweeps.cursor else { return Ok(()) };
        let expired = match self.index.expired(now_secs, cursor, SWEEP_SLICE) {
            Err(error) if error.is_unreadable_version() => {
                // Expired versions after the damage are still hidden from readers. Other work must
                // not be held up.
                sweeps.cursor = None;
                return Ok(());
            }
            expired => expired?,
        };
        for key in expired {
            if let Some(old) = self.forget(&key, |entry| self.is_expired(entry.expires_secs))? {
                self.uncount_live(&old);
                self.count_swept(&old, key.len());
            }
        }
        if cursor.is_done {
            sweeps.cursor = None;
        }
        Ok(())
    }

    /// Counts the record of a removed expired version as a tombstone: a merge must keep a tombstone
    /// for it while it hides older versions of its key.
    fn count_swept(&self, old: &Entry, key_len: usize) {
        if let Some(file) = self.files.read().get(&old.position.file_id) {
            file.counters.tombstones.fetch_add(1, Ordering::Relaxed);
            file.counters.tombstone_bytes.fetch_add((RECORD_HEADER_BYTES + key_len) as u64, Ordering::Relaxed);
        }
    }
}
