//! The times of failure detection of all members, for operators.
//!
//! Members with different times disagree about who is down. A node asks the others for their times
//! only when an operator runs a command that shows them: nothing else depends on the answers. A
//! member of an earlier version does not know the question, and is left out.

use super::member_node::{Inner, MemberNode};
use super::questions::{Answer, Question};
use crate::Detection;
use futures_util::future::join_all;
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The times of failure detection of a node, as its configuration sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectionTimes {
    /// How often it asks whether another node is there, in milliseconds.
    pub probe_period_ms: u64,
    /// How long a node that did not answer may take to show that it is there, in milliseconds.
    pub suspicion_ms: u64,
}

impl From<&Detection> for DetectionTimes {
    fn from(detection: &Detection) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            probe_period_ms: ms(detection.membership.probe_period),
            suspicion_ms: ms(detection.membership.suspicion),
        }
    }
}

impl MemberNode {
    /// The names of the members that say their times, with these times. Members that do not answer,
    /// that detect no failures, or that run an earlier version are left out.
    pub async fn detection_times(&self) -> Vec<(String, DetectionTimes)> {
        let inner = &self.inner;
        let state = inner.metadata_node().metadata();
        let members = state.members().iter().filter(|(node, _)| inner.is_up(**node));
        let said = join_all(members.map(async |(node, member)| {
            let times = inner.detection_times_of(*node).await?;
            Some((member.name.clone(), times))
        }));
        said.await.into_iter().flatten().collect()
    }
}

impl Inner {
    async fn detection_times_of(self: &Arc<Self>, node: NodeId) -> Option<DetectionTimes> {
        match self.ask(node, &Question::DetectionTimes, self.question_deadline()).await {
            Ok(Answer::DetectionTimes(times)) => times,
            _ => None,
        }
    }
}
