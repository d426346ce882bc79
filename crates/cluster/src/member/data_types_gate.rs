//! Lets clients write values of data types once every member can read them.

use super::features::Feature;
use super::start::Cell;
use ombak_kv::hooks::KindGate;
use ombak_types::Error;
use std::collections::BTreeSet;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

impl Feature {
    /// The node knows values of data types, and puts that are operations on them
    /// (docs/design/datatypes.md). Programs of a short time before the first release said 1: they
    /// know no additions to values.
    pub const DATA_TYPES: Self = Self {
        capability: "data-types.2",
        text: "data types",
        namespace: None,
        is_used_in: |metadata| metadata.has_data_types(),
    };
}

/// Asks the members' capabilities until all members have the feature. Then it stays open: nodes of
/// an earlier version do not join a cluster with data types.
pub(super) struct DataTypesGate {
    cell: Cell,
    is_open: AtomicBool,
}

impl DataTypesGate {
    /// A gate of the node that `cell` has once it runs.
    pub fn new(cell: Cell) -> Self {
        Self { cell, is_open: AtomicBool::new(false) }
    }
}

impl KindGate for DataTypesGate {
    fn may_write(&self) -> Result<(), Error> {
        if self.is_open.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(inner) = self.cell.get().and_then(Weak::upgrade) else {
            return Err(Error::Unsupported("Failed: the node is starting or stopping.".into()));
        };
        let metadata = inner.metadata_node().metadata();
        inner
            .check_all_can(Feature::DATA_TYPES, &metadata, &BTreeSet::new())
            .map_err(|refused| Error::Unsupported(refused.to_string()))?;
        // A join could follow that is decided before the metadata has a bucket type of that kind.
        if metadata.has_data_types() {
            self.is_open.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
