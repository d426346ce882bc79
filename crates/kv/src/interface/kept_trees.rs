//! Kept trees, as operators see them.

use crate::engine::Kv;
use crate::tree_keeping::KeptTree;
use std::time::Duration;

impl Kv {
    /// The trees that this node keeps or is to keep, by partition; `None` if the configuration lets
    /// it keep none. Not for network threads.
    pub fn kept_trees(&self) -> Option<Vec<KeptTree>> {
        let keeping = &self.engine.tree_keeping;
        keeping.is_enabled().then(|| keeping.status())
    }

    /// Lets kept trees be made anew after this time: all, or those of a partition. Returns how
    /// many; `None` if the configuration lets this node keep none. Not for network threads.
    pub fn rebuild_kept_trees(&self, partition: Option<u32>, after: Duration) -> Option<usize> {
        let keeping = &self.engine.tree_keeping;
        keeping.is_enabled().then(|| keeping.rebuild(partition, after))
    }
}
