//! Lets tombstones lose their time before they are removed, once every member takes part.

use super::features::Feature;
use super::start::Cell;
use ombak_kv::hooks::ReapingGate;
use std::sync::Weak;

impl Feature {
    /// The node takes the time from a tombstone before it removes it, and lets a newer tombstone
    /// hide a value in a bucket without siblings (docs/design/replication.md §6).
    pub const TIMELESS_TOMBSTONES: Self = Self {
        capability: "timeless-tombstones.1",
        text: "tombstones without a time",
        namespace: None,
        // Copies of such tombstones merge and read rightly everywhere. They only stay until every
        // member can take the time from a tombstone.
        is_used_in: |_| false,
    };
}

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
        inner.can_all(Feature::TIMELESS_TOMBSTONES, &metadata)
    }
}
