//! A node that has just started waits until it has heard of the others.
//!
//! A request asks the nodes that are up, and a member counts as up only when failure detection has
//! heard of it. Before that, a node takes the primaries of a key for down, and nodes that stand in
//! for them answer that they have nothing. So clients wait for this.

use super::member_node::{Inner, MemberNode};
use ombak_runtime::within;
use ombak_types::NodeId;
use tracing::info;

impl MemberNode {
    /// Waits until each member that answered a question of this start counts as up. A member that
    /// has stopped meanwhile holds it up for at most the time of a question
    /// ([`MemberTiming::question`](super::MemberTiming::question)).
    pub async fn wait_for_members_up(&self) {
        let inner = &self.inner;
        let Some(membership) = inner.node.membership() else { return };
        let answered = inner.standing.answered();
        let is_up = |node: &NodeId| membership.liveness().is_up(*node);
        let all_up = membership.published().wait_for(|_| answered.iter().all(is_up));
        if within(&*inner.runtime, Some(inner.question_deadline()), all_up).await.is_err() {
            let missing: Vec<String> =
                answered.iter().filter(|node| !is_up(node)).map(|node| Inner::name_of(inner, *node)).collect();
            info!(members = missing.join(", "), "members that answered at the start are not up");
        }
    }
}
