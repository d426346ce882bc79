//! What the servers of a node are made of.

use crate::failure_detection::FailureDetectorSlot;
use crate::replica::{ReplicaCounters, ReplicaService};
use ombak_jobs::Jobs;
use ombak_kv::Kv;
use ombak_runtime::Runtime;
use std::sync::Arc;

/// What the servers of a node are made of. Services are opened before there is a transport.
pub(crate) struct NodeContext {
    /// The engine.
    pub(crate) kv: Kv,
    /// Tasks and time.
    pub(crate) runtime: Arc<dyn Runtime>,
    /// What is counted about the questions between nodes.
    pub(crate) counters: Arc<ReplicaCounters>,
    /// What the services for coordinators share: one bound counts for all their questions.
    pub(crate) replicas: Arc<ReplicaService>,
    /// MapReduce jobs.
    pub(crate) jobs: Jobs,
    /// Failure detection, once it runs.
    pub(crate) failure_detector: FailureDetectorSlot,
}
