//! A query that waits for its client between two batches, and lends its views meanwhile.

use super::walk::QueryWalk;
use crate::partition::{SnapshotHolder, Waiting, WaitingHolders};
use crate::requests::IndexMatch;
use bytes::Bytes;
use ombak_storage::StorageError;
use ombak_types::Bucket;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// A walk over the stores of this node. While nobody reads it, other work may take its views. It
/// then opens new ones, and goes on behind the last entry that it has read.
pub(crate) struct SharedWalk {
    walk: Arc<Mutex<QueryWalk>>,
    holders: Arc<WaitingHolders>,
    /// The place among those that wait. It counts from the last batch on.
    waiting: Option<Waiting>,
    is_full: bool,
}

impl SharedWalk {
    pub(crate) fn new(walk: QueryWalk, holders: Arc<WaitingHolders>) -> Self {
        Self { walk: Arc::new(Mutex::new(walk)), holders, waiting: None, is_full: false }
    }

    /// Returns the next matches, in order; `None` at the end. A batch may be empty.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<IndexMatch>>, StorageError> {
        self.waiting = None;
        let mut walk = self.walk.lock();
        let batch = walk.next_batch();
        self.is_full = walk.is_full();
        if walk.has_views() {
            let holder: Weak<Mutex<QueryWalk>> = Arc::downgrade(&self.walk);
            self.waiting = Some(self.holders.wait(holder));
        }
        batch
    }

    /// Whether the query found its maximum number of results; more entries may follow.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// The number of partitions that are queried.
    pub(crate) fn partitions(&self) -> usize {
        self.walk.lock().sources()
    }

    /// The bucket and the index of the query.
    pub(crate) fn target(&self) -> (Bucket, Bytes) {
        self.walk.lock().target()
    }
}

impl SnapshotHolder for Mutex<QueryWalk> {
    fn give_back(&self) -> bool {
        self.try_lock().is_some_and(|mut walk| walk.close_views())
    }
}
