//! Where the time of a job goes, for the log of slow requests.

use std::time::{Duration, Instant};

/// The course of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobCourse {
    pub(super) began: Instant,
    /// Time in which the job waited for nodes.
    pub(super) parts_time: Duration,
    /// Time in which the client did not ask for more.
    pub(super) client_time: Duration,
    rests_since: Option<Instant>,
    /// Number of pieces that nodes were asked for, and of those that they answered.
    pub(super) asked: u32,
    pub(super) answered: u32,
}

impl JobCourse {
    pub(super) const fn begin(began: Instant) -> Self {
        let (parts_time, client_time) = (Duration::ZERO, Duration::ZERO);
        Self { began, parts_time, client_time, rests_since: None, asked: 0, answered: 0 }
    }

    /// The client asks for more.
    pub(super) fn goes_on(&mut self, now: Instant) {
        if let Some(since) = self.rests_since.take() {
            self.client_time += now.saturating_duration_since(since);
        }
    }

    /// The client has results to take.
    pub(super) const fn rests(&mut self, now: Instant) {
        self.rests_since = Some(now);
    }
}
