//! A replica that a request is about to ask.

use super::client::ReplicaClient;
use super::counters::NodeCounter;
use ombak_types::NodeId;
use std::sync::Arc;

/// A replica, and what this node knew of its fences before the request read anything.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) node: NodeId,
    /// How it is asked; `None` for this node.
    pub(crate) client: Option<Arc<dyn ReplicaClient>>,
    /// The last counter that it has told (docs/design/replication.md §6).
    pub(crate) noted: Option<NodeCounter>,
}
