//! Which engines of a test reach each other.

#![allow(dead_code, reason = "the tests of each crate use a part of it")]

use ombak_kv::replica::{ReplicaClient, UnreachableNode};
use ombak_kv::{Kv, LocalReplica};
use ombak_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The engines that are replicas of each other, and which of them can be reached.
#[derive(Default)]
pub struct Wires {
    replicas: BTreeMap<NodeId, LocalReplica>,
    /// Nodes that all others believe to be down.
    down: BTreeSet<NodeId>,
    /// Nodes that all others believe to be up, but that get nothing.
    cut: BTreeSet<NodeId>,
}

impl Wires {
    pub fn connect(&mut self, kv: &Kv) {
        self.replicas.insert(kv.identity().node_id, kv.local_replica());
    }

    /// Takes out the engines of all nodes that `gone` names.
    pub fn disconnect(&mut self, gone: impl Fn(NodeId) -> bool) {
        self.replicas.retain(|&node, _| !gone(node));
    }

    pub fn is_up(&self, node: NodeId) -> bool {
        !self.down.contains(&node)
    }

    pub fn set_down(&mut self, node: NodeId, down: bool) {
        set(&mut self.down, node, down);
    }

    pub fn set_cut(&mut self, node: NodeId, cut: bool) {
        set(&mut self.cut, node, cut);
    }

    /// The engine of a node, if it gets what is sent to it.
    pub fn reach(&self, node: NodeId) -> Option<LocalReplica> {
        self.replicas.get(&node).filter(|_| !self.cut.contains(&node)).cloned()
    }

    /// The replicas of a node.
    pub fn replica(&self, node: NodeId) -> Arc<dyn ReplicaClient> {
        self.reach(node).map_or_else(|| Arc::new(UnreachableNode(node)) as _, |local| Arc::new(local) as _)
    }
}

/// Lets a set have a node or not.
pub fn set<T: Ord>(of: &mut BTreeSet<T>, member: T, is_in: bool) {
    if is_in {
        of.insert(member);
    } else {
        of.remove(&member);
    }
}
