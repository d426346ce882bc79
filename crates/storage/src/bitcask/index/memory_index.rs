//! The index in memory as a journal wants it, with the heads that were seen lately.

use super::{HashedKey, Index, SNAPSHOTS_MAX, SnapshotSlot};
use crate::backend::ReadMode;
use crate::bitcask::head_cache::{HeadCache, StoreId};
use crate::error::StorageError;
use crate::journal::{Entry, Found, IndexSizes, Keeps, KeyIndex, Loaded, Position, Version};
use bytes::Bytes;
use std::sync::Arc;

pub(crate) struct MemoryIndex {
    index: Index,
    heads: Arc<HeadCache>,
    store: StoreId,
}

impl MemoryIndex {
    pub(crate) fn new(heads: Arc<HeadCache>) -> Self {
        let store = heads.enter();
        Self { index: Index::new(), heads, store }
    }
}

fn without_head(entry: Entry) -> Found {
    Found { entry, head: None, body: None }
}

impl KeyIndex for MemoryIndex {
    type Key<'a> = HashedKey<'a>;
    type Prior<'a> = ();
    type View = SnapshotSlot;

    const BACKEND: &'static str = "bitcask";
    const KEEPS: Keeps = Keeps::Position;

    fn key(bytes: &[u8]) -> HashedKey<'_> {
        HashedKey::new(bytes)
    }

    fn get(&self, key: HashedKey<'_>, _mode: ReadMode) -> Result<Option<Found>, StorageError> {
        Ok(self.index.get(key).map(without_head))
    }

    fn get_head(&self, key: HashedKey<'_>, _mode: ReadMode) -> Result<Option<Found>, StorageError> {
        let Some(entry) = self.index.get(key) else { return Ok(None) };
        let head = self.heads.with(self.store, entry.position, Bytes::copy_from_slice);
        Ok(Some(Found { entry, head, body: None }))
    }

    fn remember_head(&self, position: Position, head: &Bytes) {
        self.heads.keep(self.store, position, head);
    }

    fn prior(&self, _key: HashedKey<'_>) -> Result<(), StorageError> {
        Ok(())
    }

    fn put(&self, key: HashedKey<'_>, entry: &Entry, version: &Version<'_>, (): ()) -> Option<Entry> {
        self.heads.keep(self.store, entry.position, version.head);
        self.index.put(key, entry)
    }

    fn remove(&self, key: HashedKey<'_>, (): ()) -> Option<Entry> {
        self.index.remove_if(key, |_| true)
    }

    fn remove_if(&self, key: HashedKey<'_>, condition: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, StorageError> {
        Ok(self.index.remove_if(key, condition))
    }

    fn relocate(&self, key: HashedKey<'_>, from: Position, to: Position) -> Result<bool, StorageError> {
        Ok(self.index.relocate(key, from, to))
    }

    fn load(&self, key: HashedKey<'_>, entry: &Entry, _version: &Version<'_>) -> Result<Loaded, StorageError> {
        Ok(self.index.load(key, entry))
    }

    fn finish_load(&self) -> Result<(), StorageError> {
        self.index.finish_load();
        Ok(())
    }

    fn upkeep(&self) -> Result<(), StorageError> {
        self.index.compact_some();
        Ok(())
    }

    fn sizes(&self) -> IndexSizes {
        self.index.sizes()
    }

    fn view(&self, seq: u64) -> Result<SnapshotSlot, StorageError> {
        self.index.begin_snapshot(seq).ok_or_else(|| {
            StorageError::Busy(format!(
                "{SNAPSHOTS_MAX} folds run on this partition already: try again when one has ended"
            ))
        })
    }

    fn end_view(&self, view: &SnapshotSlot) {
        self.index.end_snapshot(view);
    }

    fn get_at(&self, key: HashedKey<'_>, view: &SnapshotSlot, _mode: ReadMode) -> Result<Option<Found>, StorageError> {
        Ok(self.index.get_at(key, view).map(without_head))
    }

    fn walk(
        &self,
        view: &mut SnapshotSlot,
        _prefix: &[u8],
        visit: impl FnMut(&[u8], &Entry) -> bool,
    ) -> Result<(), StorageError> {
        self.index.walk(view, visit);
        Ok(())
    }
}
