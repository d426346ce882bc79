//! The local part of a question: how a node answers from its own stores.

use crate::engine::{Engine, WorkClass};
use crate::partition::Partition;
use crate::replica::{CoverageHome, CoverageItem};
use ombak_runtime::Waited;
use ombak_types::Error;
use ombak_types::time::UnixMicros;
use std::sync::Arc;

/// Reads the stores of this node, one step at a time. Each step runs on a thread that may wait for
/// a disk. It reads a bounded number of entries, and a snapshot that it keeps until the next step
/// is one that other work may need meanwhile.
pub(crate) trait LocalPart: Send {
    /// Whose threads its steps run on.
    fn work_class(&self) -> WorkClass;

    /// Makes the next items. What they say must have been true when a snapshot of the step was
    /// taken: the answer checks afterwards that the node still was a full replica. A step that
    /// takes long asks at times whether it is still waited for.
    fn step(&mut self, waited: &Waited<'_>) -> Result<Step, Error>;
}

/// How the local part of a question begins, or why it cannot.
pub(crate) type OpenedPart = Result<Box<dyn LocalPart>, Error>;

/// What a step has made.
pub(crate) struct Step {
    /// Items to be sent, in this order. There may be none although the answer goes on.
    pub(super) items: Vec<CoverageItem>,
    /// Whether the answer is complete with them.
    pub(super) is_over: bool,
}

/// What a local part reads.
pub(crate) struct Here {
    /// The engine of this node.
    pub(super) engine: Arc<Engine>,
    /// The home partitions to answer for, in this order.
    pub(super) homes: Vec<CoverageHome>,
    /// When the listing began: what had expired by then is left out.
    pub(super) begun: UnixMicros,
}

impl Here {
    /// The partition with this number.
    pub(super) fn partition(&self, home: u32) -> Result<Arc<Partition>, Error> {
        Ok(self.engine.partitions().find(home)?)
    }
}
