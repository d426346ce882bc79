//! The removal of parts that no head record names. A crash leaves them, and so does a store that
//! forgets versions by their age.

use super::layout::{Found, PART_MARK, split_part_key};
use super::store::PartedStore;
use crate::backend::{Backend, ReadMode};
use crate::error::StorageError;
use crate::fold::{Detail, Expired, Scope, Snapshot};
use std::sync::atomic::Ordering;
use tracing::info;

/// How many parts are looked at before other work of maintenance goes on.
const BATCH: usize = 256;
/// The least time from one sweep to the next.
const PAUSE_SECS: u64 = 600;

/// Every part.
const PARTS: Scope<'static> = Scope { prefix: &[PART_MARK], expired: Expired::All, ..Scope::ALL };

/// How far the sweep is.
#[derive(Default)]
pub(crate) struct Sweep {
    under_way: Option<Box<dyn Snapshot>>,
    removed: u64,
    not_before_secs: u64,
}

impl Sweep {
    /// Gives up the sweep that is under way.
    pub(super) fn pause(&mut self) {
        self.under_way = None;
    }
}

/// How many parts a store has.
pub(super) fn count(store: &dyn Backend) -> Result<u64, StorageError> {
    let mut parts = store.snapshot()?;
    let mut count = 0;
    loop {
        let batch = parts.next(&PARTS, Detail::Keys, BATCH)?;
        if batch.is_empty() {
            return Ok(count);
        }
        count += batch.len() as u64;
    }
}

impl PartedStore {
    /// Goes on with a sweep that is due, for a bounded number of parts.
    pub(super) fn sweep_some(&self, now_secs: u64) -> Result<(), StorageError> {
        self.sweep_batch(now_secs).inspect_err(|_| self.is_sweep_due.store(true, Ordering::Relaxed))
    }

    fn sweep_batch(&self, now_secs: u64) -> Result<(), StorageError> {
        let Some(mut sweep) = self.sweep.try_lock() else { return Ok(()) };
        let Some(mut parts) = self.begin_or_go_on(&mut sweep, now_secs)? else { return Ok(()) };
        let batch = match parts.next(&PARTS, Detail::Keys, BATCH) {
            // What is left is swept the next time.
            Err(StorageError::SnapshotTimeout { .. }) => {
                self.is_sweep_due.store(true, Ordering::Relaxed);
                return Ok(());
            }
            batch => batch?,
        };
        for part in &batch {
            sweep.removed += u64::from(self.remove_if_garbage(&part.key)?);
        }
        if batch.is_empty() {
            if sweep.removed > 0 {
                info!(parts = sweep.removed, "removed parts of values that are gone");
            }
            (sweep.removed, sweep.not_before_secs) = (0, now_secs + PAUSE_SECS);
        } else {
            sweep.under_way = Some(parts);
        }
        Ok(())
    }

    fn begin_or_go_on(&self, sweep: &mut Sweep, now_secs: u64) -> Result<Option<Box<dyn Snapshot>>, StorageError> {
        if let Some(parts) = sweep.under_way.take() {
            return Ok(Some(parts));
        }
        if now_secs < sweep.not_before_secs || !self.is_sweep_due.swap(false, Ordering::Relaxed) || !self.has_parts() {
            return Ok(None);
        }
        self.inner.snapshot().map(Some)
    }

    /// Removes a part if its object's head record does not name it. If that record cannot be read,
    /// the part stays.
    fn remove_if_garbage(&self, part: &[u8]) -> Result<bool, StorageError> {
        if self.is_named(part) {
            return Ok(false);
        }
        // No head record is about to name the part while this is held.
        let _deciding = self.changes.write();
        if self.is_named(part) {
            return Ok(false);
        }
        // A loss of power must not bring back a version whose part is gone.
        let last = self.inner.last_seq();
        if !self.inner.is_synced(last) {
            self.inner.sync(last)?;
        }
        self.remove_part(part)?;
        Ok(true)
    }

    /// Whether a head record names a part, or may name it because it cannot be read.
    fn is_named(&self, part: &[u8]) -> bool {
        let Some((key, generation, number)) = split_part_key(part) else { return true };
        let head = self.inner.head_with_expired(key, ReadMode::Blocking);
        match head.and_then(|head| head.map(Found::of).transpose()) {
            Ok(found) => found
                .and_then(|found| found.directory())
                .is_some_and(|named| named.generation == generation && number < named.parts),
            Err(_) => true,
        }
    }
}
