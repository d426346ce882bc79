//! What a node knows about its way into a cluster.

use crate::member::following::own_step::JoinStep;
use crate::member::following::state::{Following, JoinSteps};
use crate::member::ground::Ground;
use crate::member::seeds::Seeds;
use ombak_runtime::{BoxFuture, Published};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::Mutex;
use tracing::error;

/// The way of this node into a cluster.
pub(in crate::member) struct Joining {
    pub ground: Arc<Ground>,
    pub following: Arc<Following>,
    /// The nodes that are asked before this one serves, if it is new.
    pub seeds: Seeds,
    /// Why this node serves nobody until its peers or an operator have decided.
    pub awaits: Published<Option<String>>,
    /// Locked while the node joins a cluster, or leaves it again.
    pub moving: Mutex<()>,
    /// Whether this node is new: no decision about it counts yet.
    pub(super) is_new: AtomicBool,
    /// Locked while `awaits` is changed.
    pub(super) deciding: parking_lot::Mutex<()>,
    /// Whether a peer has said since the start that a member has this node's name or address.
    pub(super) was_known: AtomicBool,
    /// Whether the node withdraws from a cluster that it may have begun to join.
    pub(super) is_withdrawing: AtomicBool,
}

impl Joining {
    pub fn new(following: Arc<Following>, seeds: Seeds) -> Self {
        Self {
            ground: following.ground.clone(),
            following,
            seeds,
            awaits: Published::new(None),
            moving: Mutex::new(()),
            is_new: AtomicBool::new(false),
            deciding: parking_lot::Mutex::default(),
            was_known: AtomicBool::new(false),
            is_withdrawing: AtomicBool::new(false),
        }
    }
}

impl Deref for Joining {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}

impl JoinSteps for Joining {
    fn is_among_others(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.forget_peers())
    }

    fn begin(self: Arc<Self>, step: JoinStep) {
        let runtime = self.runtime.clone();
        match step {
            JoinStep::Stay => runtime.spawn(Box::pin(async move { self.stay().await })),
            JoinStep::WatchWithdrawal => runtime.spawn(Box::pin(self.watch_withdrawal())),
            JoinStep::BeginAlone => runtime.spawn(Box::pin(async move {
                if let Err(why) = self.begin_alone().await {
                    error!(%why, "this node does not join after all, and could not begin a cluster of its own");
                }
            })),
        }
    }
}
