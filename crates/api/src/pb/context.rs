//! The state that all connections share.

use super::config::PbConfig;
use crate::{MemoryBudget, NetworkThreads};
use ombak_jobs::Jobs;
use ombak_key_queues::KeyQueues;
use ombak_kv::Kv;
use ombak_searching::Search;
use std::sync::Arc;

/// The state that all connections share.
pub struct PbContext {
    /// The engine.
    pub kv: Kv,
    /// Runs MapReduce jobs.
    pub map_reduce: Jobs,
    /// The keys that folds erase, reap and repair.
    pub key_queues: KeyQueues,
    /// The search of the node; `None` if it has none.
    pub search: Option<Arc<Search>>,
    /// The limits and switches.
    pub config: PbConfig,
    /// The memory budget of requests and answers in flight, shared with the other interfaces.
    pub memory: MemoryBudget,
    /// The threads that serve connections.
    pub threads: Arc<NetworkThreads>,
}

impl PbContext {
    /// The same state with the search of the node.
    #[must_use]
    pub fn with_search(self, search: Arc<Search>) -> Self {
        Self { search: Some(search), ..self }
    }
}
