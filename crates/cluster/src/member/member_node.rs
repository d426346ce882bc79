//! A node that is a member of a cluster.

use super::following::state::Following;
use super::ground::Ground;
use super::joining::state::Joining;
use super::questions::detection_times::DetectionTimes;
use super::ring_change::state::RingChange;
use crate::node::ClusterNode;
use ombak_kv::Kv;
use ombak_metadata::state::Metadata;
use ombak_runtime::within;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A node that is a member of a cluster, which may have no other members. Clones share everything.
#[derive(Clone)]
pub struct MemberNode {
    pub(super) inner: Arc<Inner>,
}

/// The stories of a member. Each has its own state; what all share is in `ground`.
pub(super) struct Inner {
    pub ground: Arc<Ground>,
    pub following: Arc<Following>,
    pub joining: Arc<Joining>,
    pub ring_change: Arc<RingChange>,
    /// The times of failure detection, if this node detects failures.
    pub detection_times: Option<DetectionTimes>,
}

impl Deref for Inner {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}

impl MemberNode {
    /// The engine.
    pub fn kv(&self) -> &Kv {
        self.inner.node.kv()
    }

    /// The engine and the transport.
    pub fn node(&self) -> &ClusterNode {
        &self.inner.node
    }

    /// The newest decided state that this node follows.
    pub fn metadata(&self) -> Metadata {
        self.inner.followed.get().metadata
    }

    /// Whether this node leads the metadata, as far as it knows.
    pub fn leads(&self) -> bool {
        self.inner.metadata_node().is_leader()
    }

    /// Waits until the state that this node follows has some property. Returns false if that did
    /// not come true until the deadline.
    pub async fn wait_for(&self, deadline: Instant, mut holds: impl FnMut(&Metadata) -> bool) -> bool {
        let found = self.inner.followed.wait_for(|now| holds(&now.metadata));
        matches!(within(&*self.inner.runtime, Some(deadline), found).await, Ok(Some(_)))
    }

    /// Waits until the node has left its cluster, as an operator has asked it to. Nothing is left
    /// to do for it then but to stop.
    pub async fn left(&self) {
        if !matches!(self.inner.following.has_left.wait_for(|left| *left).await, Some(true)) {
            // The node stops for another reason.
            std::future::pending::<()>().await;
        }
    }

    /// Stops the node. The caller has closed the interfaces for clients before.
    pub async fn stop(&self) {
        self.inner.pass_milestone_at_stop().await;
        self.inner.is_stopping.store(true, Ordering::SeqCst);
        self.inner.own_directory.end();
        self.inner.joining.awaits.end();
        self.inner.logs.slot.store(None);
        self.inner.metadata_node().stop().await;
        self.inner.node.stop().await;
    }
}
