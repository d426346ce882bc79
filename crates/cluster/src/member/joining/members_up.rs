//! A node that has just started or joined waits until it has heard of the others.
//!
//! A request asks the nodes that are up, and a member counts as up only when failure detection has
//! heard of it. Before that, a node takes the primaries of a key for down, and nodes that stand in
//! for them answer that they have nothing. So clients and operators wait for this.

use crate::member::ground::Ground;
use crate::member::member_node::MemberNode;
use ombak_metadata::state::MemberStatus;
use ombak_runtime::within;
use ombak_types::NodeId;
use tracing::info;

impl MemberNode {
    /// Waits until each member that answered a question of this start counts as up. A member that
    /// has stopped meanwhile holds it up for at most the time of a question
    /// ([`MemberTiming::question`](crate::member::MemberTiming::question)).
    pub async fn wait_for_members_up(&self) {
        wait_for_up(&self.inner, self.inner.own_directory.answered()).await;
    }

    /// Waits until each member that nobody has marked as down counts as up, for at most the time of
    /// a question: a node that has just joined has asked only some of them.
    pub async fn wait_for_all_members_up(&self) {
        let metadata = self.metadata();
        let others = metadata.members().iter().filter(|(node, _)| **node != self.inner.id());
        let counts = others.filter(|(_, member)| member.status != MemberStatus::Down);
        wait_for_up(&self.inner, counts.map(|(node, _)| *node).collect()).await;
    }
}

async fn wait_for_up(ground: &Ground, nodes: Vec<NodeId>) {
    let Some(failure_detector) = ground.node.failure_detector() else { return };
    let is_up = |node: &NodeId| failure_detector.liveness().is_up(*node);
    let all_up = failure_detector.published().wait_for(|_| nodes.iter().all(is_up));
    if within(&*ground.runtime, Some(ground.question_deadline()), all_up).await.is_err() {
        let missing: Vec<String> = nodes.iter().filter(|node| !is_up(node)).map(|node| ground.name_of(*node)).collect();
        info!(members = missing.join(", "), "members that should run are not up");
    }
}
