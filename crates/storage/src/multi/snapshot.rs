//! A snapshot of all stores of a partition.

use super::Selector;
use crate::backend::Stored;
use crate::error::StorageError;
use crate::fold::{Detail, FoldEntry, KeyRange, Scope, Snapshot, TermEntry, TermRange};
use ombak_types::names::split_storage_key;
use std::sync::Arc;

pub(super) struct MultiSnapshot {
    stores: Vec<Box<dyn Snapshot>>,
    selector: Arc<dyn Selector>,
    /// The store that a fold has reached.
    at: usize,
}

impl MultiSnapshot {
    pub(super) fn new(stores: Vec<Box<dyn Snapshot>>, selector: Arc<dyn Selector>) -> Self {
        Self { stores, selector, at: 0 }
    }

    fn selected(&mut self, bucket: &[u8]) -> Result<&mut Box<dyn Snapshot>, StorageError> {
        let selected = self.selector.select(bucket)?;
        self.stores.get_mut(selected).ok_or(StorageError::Closed)
    }
}

impl Snapshot for MultiSnapshot {
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        // A scope of one bucket has all its keys in one store; the call fails here if the node does
        // not have that backend.
        if split_storage_key(scope.prefix).is_ok() {
            self.selector.select(scope.prefix)?;
        }
        while let Some(store) = self.stores.get_mut(self.at) {
            let (at, selector) = (self.at, &*self.selector);
            let is_in_class = |key: &[u8]| scope.class.is_none_or(|class| class(key));
            let is_here = |key: &[u8]| selector.select(key).is_ok_and(|selected| selected == at) && is_in_class(key);
            let here = Scope { class: Some(&is_here), ..*scope };
            let batch = store.next(&here, detail, count_max)?;
            if !batch.is_empty() || count_max == 0 {
                return Ok(batch);
            }
            self.at += 1;
        }
        Ok(Vec::new())
    }

    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError> {
        self.selected(range.bucket)?.keys_in_order(range, count_max)
    }

    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError> {
        self.selected(range.bucket)?.terms_in_order(range, count_max)
    }

    fn may_expire(&self) -> bool {
        self.stores.iter().any(|store| store.may_expire())
    }

    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError> {
        let selected = self.selector.select(key)?;
        self.stores.get(selected).ok_or(StorageError::Closed)?.read(key)
    }
}
