//! Multi: several backends under one partition; a bucket's property says which has its objects (docs/riak/backends.md §6).
//!
//! What it is: each partition has a store of every backend; a selector names the one of a key. All of them draw from one
//! append order, so that "everything up to seq" means the same as with one store.
//!
//! What it is not: it moves nothing. When a bucket's property changes, what it had stays where it is, unseen, until the
//! property is changed back.
//!
//! Invariant: reads, folds and queries look for a key only where a write of it would go.

mod backup;
mod snapshot;
mod store;

use crate::backend::{Backend, BackendFactory};
use crate::error::StorageError;
use crate::seq::SeqSource;
use std::sync::Arc;
use store::MultiStore;

/// Says which backend has a key.
pub trait Selector: Send + Sync {
    /// The place of the backend in the list that the factory was made with, for a storage key or what the storage keys of
    /// a bucket begin with.
    fn select(&self, key: &[u8]) -> Result<usize, StorageError>;
}

/// Opens stores of several backends.
pub struct MultiFactory {
    backends: Vec<(String, Arc<dyn BackendFactory>)>,
    selector: Arc<dyn Selector>,
}

impl MultiFactory {
    /// Of these backends, each with its name.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(backends: Vec<(String, Arc<dyn BackendFactory>)>, selector: Arc<dyn Selector>) -> Self {
        assert!(!backends.is_empty(), "a node has at least one backend");
        Self { backends, selector }
    }
}

impl BackendFactory for MultiFactory {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        let open = |(name, backend): &(String, Arc<dyn BackendFactory>)| {
            Ok::<_, StorageError>((name.clone(), backend.open_in(partition, seqs)?))
        };
        let stores = self.backends.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Arc::new(MultiStore::new(stores, self.selector.clone(), seqs.clone())))
    }

    fn name(&self) -> &'static str {
        "multi"
    }
}
