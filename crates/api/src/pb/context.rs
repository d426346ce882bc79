//! What all connections share.

use super::config::PbConfig;
use crate::{MemoryBudget, NetworkThreads};
use ombak_kv::Kv;
use std::sync::Arc;

/// What all connections share.
pub struct PbContext {
    /// The engine.
    pub kv: Kv,
    /// Limits and switches.
    pub config: PbConfig,
    /// The memory of requests and answers in flight, shared with the other interfaces.
    pub memory: MemoryBudget,
    /// Where connections are served.
    pub threads: Arc<NetworkThreads>,
}
