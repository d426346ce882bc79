//! What scrubbing needs of the node around it.

use crate::partition::PartitionTable;
use ombak_storage::{ScrubCursor, ScrubLimits, ScrubStep, StorageError, TermCursor, TermStep};

/// A store that is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreToScrub {
    pub(crate) partition: u32,
    /// The identity of its content. A place in a store with another one means nothing.
    pub(crate) store_id: u64,
    /// Bytes that it has on disk.
    pub(crate) bytes: u64,
}

/// How many versions of a partition cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadableCounts {
    /// Those that wait for a repair.
    pub(crate) waiting: u64,
    /// Those of them whose repair has failed.
    pub(crate) failed: u64,
    /// Those that were repaired since the start.
    pub(crate) repaired: u64,
}

/// The stores of a node.
pub(crate) trait ScrubbedStores: Send + Sync {
    /// The stores that are open and have something on a disk.
    fn stores(&self) -> Vec<StoreToScrub>;

    /// Reads a part of a store. None if it is not open. Blocks.
    fn step(
        &self,
        partition: u32,
        cursor: &ScrubCursor,
        limits: ScrubLimits<'_>,
    ) -> Option<Result<ScrubStep, StorageError>>;

    /// Compares some index entries of a store with its objects, and mends what differs. None if it
    /// is not open. Blocks.
    fn check_terms(
        &self,
        partition: u32,
        cursor: &TermCursor,
        count_max: usize,
    ) -> Option<Result<TermStep, StorageError>>;

    /// What of a partition cannot be read.
    fn unreadable(&self, partition: u32) -> UnreadableCounts;

    /// What of all partitions cannot be read.
    fn unreadable_on_node(&self) -> UnreadableCounts;
}

impl ScrubbedStores for PartitionTable {
    fn stores(&self) -> Vec<StoreToScrub> {
        let to_scrub = self.all_open().map(|partition| StoreToScrub {
            partition: partition.number(),
            store_id: partition.store().identity().store_id,
            bytes: partition.store().bytes_to_scrub(),
        });
        to_scrub.filter(|store| store.bytes > 0).collect()
    }

    fn step(
        &self,
        partition: u32,
        cursor: &ScrubCursor,
        limits: ScrubLimits<'_>,
    ) -> Option<Result<ScrubStep, StorageError>> {
        Some(self.get(partition)?.store().scrub_step(cursor, limits))
    }

    fn check_terms(
        &self,
        partition: u32,
        cursor: &TermCursor,
        count_max: usize,
    ) -> Option<Result<TermStep, StorageError>> {
        Some(self.get(partition)?.store().check_terms(cursor, count_max))
    }

    fn unreadable(&self, partition: u32) -> UnreadableCounts {
        let (waiting, failed, repaired) = self.unreadable_keys().counts_of(partition);
        UnreadableCounts { waiting, failed, repaired }
    }

    /// How many repairs have failed is not counted here.
    fn unreadable_on_node(&self) -> UnreadableCounts {
        let keys = self.unreadable_keys();
        UnreadableCounts { waiting: keys.count() as u64, failed: 0, repaired: keys.repaired_count() }
    }
}
