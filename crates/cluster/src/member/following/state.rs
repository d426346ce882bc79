//! What a node knows while it follows the metadata.

use super::own_step::JoinStep;
use crate::member::following::moved_members::MovedMembers;
use crate::member::ground::Ground;
use crate::member::seeds::Seeds;
use crate::node::NodeNames;
use ombak_runtime::{BoxFuture, Published};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::Mutex;

/// What `joining` does because of a state that was adopted.
pub(in crate::member) trait JoinSteps: Send + Sync {
    /// This node is a full member, and has others beside it. So it is not new.
    fn is_among_others(&self) -> BoxFuture<'_, ()>;

    /// Begins a step of this node's way into a cluster, and does not wait for its end.
    fn begin(self: Arc<Self>, step: JoinStep);
}

/// How this node follows the metadata.
pub(in crate::member) struct Following {
    pub ground: Arc<Ground>,
    /// Locked while a state is adopted.
    pub adopting: Mutex<()>,
    /// Whether this node takes no writes because it is about to join a cluster.
    pub is_joining: AtomicBool,
    /// Whether a log was put in force only in part, because the disk failed. The node stays closed.
    pub is_stuck: AtomicBool,
    /// Whether it has left.
    pub has_left: Published<bool>,
    /// The closing of the one bucket or type that takes no writes; 0: there is none.
    pub(super) part_closing: AtomicU64,
    /// Whether this node was about to leave its cluster when it last heard of it.
    pub(super) is_leaving: AtomicBool,
    /// The names of the members that this node has known, for log lines.
    pub(super) names: Arc<NodeNames>,
    /// Under these names members that are away are looked for.
    pub(super) seeds: Seeds,
    /// Members that were found at other addresses than the metadata has.
    pub(super) moved: MovedMembers,
    /// Set at the start, before a state is adopted.
    pub join_steps: OnceLock<Weak<dyn JoinSteps>>,
}

impl Following {
    pub fn new(ground: Arc<Ground>, names: Arc<NodeNames>, seeds: Seeds) -> Self {
        Self {
            ground,
            adopting: Mutex::new(()),
            is_joining: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
            has_left: Published::new(false),
            part_closing: AtomicU64::new(0),
            is_leaving: AtomicBool::new(false),
            names,
            seeds,
            moved: MovedMembers::default(),
            join_steps: OnceLock::new(),
        }
    }

    pub(super) fn join_steps(&self) -> Option<Arc<dyn JoinSteps>> {
        self.join_steps.get().and_then(Weak::upgrade)
    }
}

impl Deref for Following {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}
