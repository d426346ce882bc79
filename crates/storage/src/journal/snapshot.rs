//! A view of a store at one moment.

use super::key_index::KeyIndex;
use super::read::Wanted;
use super::store::Core;
use crate::backend::{FoldEntry, ReadMode, Snapshot, Stored};
use crate::error::StorageError;
use bytes::Bytes;
use std::sync::Arc;

pub(super) struct JournalSnapshot<I: KeyIndex> {
    core: Arc<Core<I>>,
    view: I::View,
    ticket: u64,
}

impl<I: KeyIndex> JournalSnapshot<I> {
    pub(super) fn begin(core: Arc<Core<I>>) -> Result<Self, StorageError> {
        core.check_open()?;
        let (view, ticket) = {
            // The writer's lock: no put is between its append and its index entry. The ticket comes first, so that no
            // file goes away that the snapshot is about to see.
            let writer = core.writer.lock();
            let ticket = core.snapshot_tickets.lock().begin();
            let view = core
                .index
                .view(writer.last_seq())
                .inspect_err(|_| {
                    core.snapshot_tickets.lock().live.remove(&ticket);
                })?;
            (view, ticket)
        };
        Ok(Self { core, view, ticket })
    }
}

impl<I: KeyIndex> Snapshot for JournalSnapshot<I> {
    fn next_keys(&mut self, prefix: &[u8], count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        let Self { core, view, .. } = self;
        core.check_open()?;
        let mut batch = Vec::with_capacity(count_max.min(1024));
        if count_max == 0 {
            return Ok(batch);
        }
        core.index.walk(view, prefix, |key, entry| {
            if key.starts_with(prefix) && !core.is_expired(entry.expires_secs) {
                batch.push(FoldEntry { key: Bytes::copy_from_slice(key), digest: entry.digest });
            }
            batch.len() < count_max
        })?;
        Ok(batch)
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let indexed = I::key(key);
        let look = || self.core.index.get_at(indexed, &self.view, ReadMode::Blocking);
        self.core.read_with(key, ReadMode::Blocking, Wanted::Whole, look)
    }
}

impl<I: KeyIndex> Drop for JournalSnapshot<I> {
    fn drop(&mut self) {
        self.core.index.end_view(&self.view);
        self.core.snapshot_tickets.lock().live.remove(&self.ticket);
    }
}
