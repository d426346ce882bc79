//! The time that merges take, for the statistics.

use super::Deadline;
use std::time::{Duration, Instant};

/// Measures how long the merge of two versions takes.
pub(super) struct MergeTimer<'a> {
    deadline: Deadline<'a>,
    began: Instant,
}

impl<'a> MergeTimer<'a> {
    /// A write without a deadline has no clock.
    pub(super) fn start(deadline: Option<Deadline<'a>>) -> Option<Self> {
        deadline.map(|deadline| Self { deadline, began: deadline.now() })
    }

    pub(super) fn stop(self) -> Duration {
        self.deadline.now().saturating_duration_since(self.began)
    }
}
