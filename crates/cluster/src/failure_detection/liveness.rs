//! What the engine asks and tells is what the failure detector knows.
//!
//! Hot path: each request asks for each replica.

use crate::liveness::{Liveness, RequestOutcome};
use ombak_failure_detection::{LivenessTable, Outcome};
use ombak_types::NodeId;
use std::time::Duration;

impl Liveness for LivenessTable {
    fn is_up(&self, node: NodeId) -> bool {
        Self::is_up(self, node)
    }

    fn began(&self, node: NodeId) {
        Self::began(self, node);
    }

    fn ended(&self, node: NodeId, outcome: RequestOutcome, took: Duration) {
        let outcome = match outcome {
            RequestOutcome::Answered => Outcome::Answered,
            RequestOutcome::NotDelivered => Outcome::Lost,
            RequestOutcome::NotAnswered => Outcome::TimedOut,
            // A full queue can be this node's own.
            RequestOutcome::Overloaded | RequestOutcome::Abandoned => Outcome::Abandoned,
        };
        Self::ended(self, node, outcome, took);
    }
}
