//! What a member waits for before it serves clients.
//!
//! Security may have been switched on while the node did not run. Its own records say otherwise
//! until it has caught up with its cluster, so nobody is served before that, or before the node has
//! found that it cannot catch up now.

use ombak_api::NodeSecurity;
use ombak_cluster::{CaughtUp, MemberNode};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long a start waits until the node has caught up. A node without most of its cluster goes on
/// with what it knows after that.
const START_MAX: Duration = Duration::from_secs(5);

/// How long each further attempt takes, if there is no other news.
const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// Waits until the member has caught up with its cluster. If it does not in time, it tries on while
/// it serves.
pub fn before_serving(member: &MemberNode, security: &Arc<NodeSecurity>, tasks: &Handle) {
    if tell(security, tasks.block_on(member.catch_up(START_MAX))) {
        return;
    }
    let (member, security) = (member.clone(), Arc::clone(security));
    tasks.spawn(async move { while !tell(&security, member.catch_up(ATTEMPT_MAX).await) {} });
}

/// Returns whether the member has caught up.
fn tell(security: &NodeSecurity, outcome: CaughtUp) -> bool {
    match outcome {
        CaughtUp::Entirely => security.has_caught_up(),
        CaughtUp::NotYet { is_secured_elsewhere } => security.may_lack_decisions(is_secured_elsewhere),
    }
    outcome == CaughtUp::Entirely
}
