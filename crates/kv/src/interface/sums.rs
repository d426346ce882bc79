//! The sums of what the classes of this node hold ([`KvConfig::keeps_sums`](crate::KvConfig)).

use crate::engine::Kv;
use crate::replica::ClassId;
use crate::sums::{ClassCut, SumsState, SumsWalk};
use ombak_storage::StorageError;

impl Kv {
    /// What is known of the sums of a class.
    pub fn sums_state(&self, class: ClassId) -> SumsState {
        self.engine.partitions().get(class.partition).map_or(SumsState::Unknown, |found| found.sums_state(class.n))
    }

    /// The sums of a class at this moment; none if they are not exact. Blocks: not for network
    /// threads.
    pub fn cut_of_class(&self, class: ClassId) -> Option<ClassCut> {
        self.engine.partitions().get(class.partition)?.cut_of_class(class.n)
    }

    /// Begins a walk that makes the sums of a class exact, or checks them. None if this node keeps
    /// no sums of it, or if the caller must try again later. Blocks: not for network threads.
    pub fn begin_sums_walk(&self, class: ClassId) -> Result<Option<SumsWalk>, StorageError> {
        let found = self.engine.partitions().get(class.partition);
        found.map_or(Ok(None), |partition| partition.begin_sums_walk(class.n))
    }

    /// How many sums were found wrong for no known reason since the partitions were opened.
    pub fn sums_differences(&self) -> u64 {
        self.engine.partitions().all_open().map(|partition| partition.sums_differences()).sum()
    }
}
