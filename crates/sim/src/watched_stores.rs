//! The stores that a process has open, for the oracle.
//!
//! The oracle looks at the stores of a node while the node starts, too: a node answers others
//! before its start has ended.

use ombak_storage::{Backend, BackendFactory, SeqSource, StorageError};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// The stores that a process has opened, by their partitions.
#[derive(Default)]
pub struct WatchedStores(Mutex<BTreeMap<u32, Weak<dyn Backend>>>);

impl WatchedStores {
    /// The store of a partition, while it is open.
    pub fn get(&self, partition: u32) -> Option<Arc<dyn Backend>> {
        self.0.lock().get(&partition).and_then(Weak::upgrade)
    }
}

/// A factory that remembers what it has opened.
pub(crate) struct WatchedFactory {
    pub(crate) factory: Arc<dyn BackendFactory>,
    pub(crate) opened: Arc<WatchedStores>,
}

impl BackendFactory for WatchedFactory {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        let store = self.factory.open_in(partition, seqs)?;
        self.opened.0.lock().insert(partition, Arc::downgrade(&store));
        Ok(store)
    }

    fn name(&self) -> &'static str {
        self.factory.name()
    }
}
