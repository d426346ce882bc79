//! A view of a store at one moment.

use super::index::{HashedKey, SNAPSHOTS_MAX, SnapshotSlot};
use super::read::Wanted;
use super::store::Core;
use crate::backend::{FoldEntry, ReadMode, Snapshot, Stored};
use crate::error::StorageError;
use bytes::Bytes;
use std::sync::Arc;

pub(super) struct BitcaskSnapshot {
    core: Arc<Core>,
    slot: SnapshotSlot,
    ticket: u64,
}

impl BitcaskSnapshot {
    pub(super) fn begin(core: Arc<Core>) -> Result<Self, StorageError> {
        core.check_open()?;
        let (slot, ticket) = {
            // The writer's lock: no put is between its append and its index entry. The ticket comes first, so that no
            // file goes away that the snapshot is about to see.
            let writer = core.writer.lock();
            let ticket = core.snapshot_tickets.lock().begin();
            let Some(slot) = core.index.begin_snapshot(writer.last_seq()) else {
                core.snapshot_tickets.lock().live.remove(&ticket);
                return Err(StorageError::Busy(format!(
                    "{SNAPSHOTS_MAX} folds run on this partition already: try again when one has ended"
                )));
            };
            (slot, ticket)
        };
        Ok(Self { core, slot, ticket })
    }
}

impl Snapshot for BitcaskSnapshot {
    fn next_keys(&mut self, prefix: &[u8], count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        let Self { core, slot, .. } = self;
        core.check_open()?;
        let mut batch = Vec::with_capacity(count_max.min(1024));
        if count_max == 0 {
            return Ok(batch);
        }
        core.index.walk(slot, |key, entry| {
            if key.starts_with(prefix) && !core.is_expired(entry.tstamp_secs) {
                batch.push(FoldEntry { key: Bytes::copy_from_slice(key), digest: entry.digest });
            }
            batch.len() < count_max
        });
        Ok(batch)
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let key = HashedKey::new(key);
        self.core.read_with(key, ReadMode::Blocking, Wanted::Whole, || self.core.index.get_at(key, &self.slot))
    }
}

impl Drop for BitcaskSnapshot {
    fn drop(&mut self) {
        self.core.index.end_snapshot(&self.slot);
        self.core.snapshot_tickets.lock().live.remove(&self.ticket);
    }
}
