//! Multi: several backends under one partition. A bucket property says which backend has a bucket's
//! objects (docs/riak/backends.md §6).
//!
//! What it is: each partition has one store of every backend, and a selector chooses the store of a
//! key. All stores draw from one append order, so "everything up to `seq`" means the same as with
//! one store.
//!
//! What it is not: it moves nothing. When a bucket's property changes, its objects stay where they
//! are and are not visible until the property is changed back.
//!
//! Invariant: reads, folds and queries look for a key only in the store that a write of it would go
//! to.

mod backup;
mod changes;
mod snapshot;
mod store;

use crate::backend::{Backend, BackendFactory};
use crate::error::StorageError;
use crate::seq::SeqSource;
use std::sync::Arc;
use store::MultiStore;

/// Chooses the backend of a key.
pub trait Selector: Send + Sync {
    /// The index of the backend in the list that the factory was made with. `key` is a storage key,
    /// or the prefix of the storage keys of a bucket.
    fn select(&self, key: &[u8]) -> Result<usize, StorageError>;
}

/// Opens the stores of several backends.
pub struct MultiFactory {
    backends: Vec<(String, Arc<dyn BackendFactory>)>,
    selector: Arc<dyn Selector>,
}

impl MultiFactory {
    /// A factory over these backends, each with its name.
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
