//! Lets tombstones lose their time before they are removed, once every member takes part.

use super::features::Feature;
use super::start::Cell;
use ombak_kv::hooks::ReapingGate;
use std::sync::Weak;

/// Asks what the members can do.
pub(super) struct TombstonesGate(Cell);

impl TombstonesGate {
    /// A gate of the node that `cell` has once it runs.
    pub const fn new(cell: Cell) -> Self {
        Self(cell)
    }
}

impl ReapingGate for TombstonesGate {
    fn may_take_times(&self) -> Option<bool> {
        let inner = self.0.get().and_then(Weak::upgrade)?;
        let metadata = inner.metadata_node().metadata();
        inner.can_all(Feature::TimelessTombstones, &metadata)
    }
}
