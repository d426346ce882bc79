//! The times of failure detection of all members, for operators.
//!
//! Members with different times disagree about who is down. A node asks the others for their times
//! only when an operator runs a command that shows them: nothing else depends on the answers. A
//! member of an earlier version does not know the question, and is left out.

use crate::member::ground::Ground;
use crate::member::member_node::MemberNode;
use crate::member::questions::detection_times::DetectionTimes;
use crate::member::questions::question::{Answer, Question};
use futures_util::future::join_all;
use ombak_types::NodeId;

impl MemberNode {
    /// The names of the members that say their times, with these times. Members that do not answer,
    /// that detect no failures, or that run an earlier version are left out.
    pub async fn detection_times(&self) -> Vec<(String, DetectionTimes)> {
        let inner = &self.inner;
        let state = inner.metadata_node().metadata();
        let members = state.members().iter().filter(|(node, _)| inner.is_up(**node));
        let said = join_all(members.map(async |(node, member)| {
            let times = detection_times_of(inner, *node).await?;
            Some((member.name.clone(), times))
        }));
        said.await.into_iter().flatten().collect()
    }
}

async fn detection_times_of(ground: &Ground, node: NodeId) -> Option<DetectionTimes> {
    match ground.ask(node, &Question::DetectionTimes, ground.question_deadline()).await {
        Ok(Answer::DetectionTimes(times)) => times,
        _ => None,
    }
}
