//! The partitions that a node has open. A ring change opens, closes and drops them while requests
//! run.

use crate::engine::Kv;
use ombak_storage::StorageError;

impl Kv {
    /// Opens a partition, and creates its store if it has none. Does nothing if it is open. Blocks:
    /// not for network threads.
    pub fn open_partition(&self, number: u32) -> Result<(), StorageError> {
        self.engine.partitions().open(number)
    }

    /// Closes a partition: its store is synced and takes no more calls. Requests that need it fail
    /// with `StoreFailureKind::Closed`. Blocks: not for network threads.
    pub fn close_partition(&self, number: u32) -> Result<(), StorageError> {
        self.engine.partitions().close(number)
    }

    /// Removes a partition with everything in it, if nothing was written to it after `proven_seq`.
    /// It opens as an empty one afterwards. The caller has proved that nobody needs what was
    /// written up to `proven_seq` (docs/design/replication.md §4). Returns false, and leaves the
    /// partition open, if something was written later. Blocks: not for network threads.
    pub fn drop_partition(&self, number: u32, proven_seq: u64) -> Result<bool, StorageError> {
        self.engine.partitions().drop_content(number, proven_seq)
    }
}
