//! What the requests to one peer came to, as counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How a request to a peer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer answered, if only with a refusal.
    Answered,
    /// The deadline passed first.
    TimedOut,
    /// The peer could not be reached, or the connection ended before the answer.
    Lost,
    /// The caller lost interest, or the request was refused on this node. It says nothing about the
    /// peer.
    Abandoned,
}

/// Totals since the counters began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that were sent.
    pub began: u64,
    /// Requests that ended, in whatever way.
    pub ended: u64,
    /// Requests that were answered in time.
    pub good: u64,
    /// Requests that were answered late.
    pub late: u64,
    /// Requests that failed because of the peer.
    pub failed: u64,
}

impl Traffic {
    /// How many requests wait for an answer.
    pub const fn waiting(&self) -> u64 {
        self.began.saturating_sub(self.ended)
    }

    /// What was added since `before`.
    pub(super) const fn since(&self, before: &Self) -> Self {
        Self {
            began: self.began.saturating_sub(before.began),
            ended: self.ended.saturating_sub(before.ended),
            good: self.good.saturating_sub(before.good),
            late: self.late.saturating_sub(before.late),
            failed: self.failed.saturating_sub(before.failed),
        }
    }
}

/// Counters that each request writes. They take no lock.
#[derive(Debug, Default)]
pub(crate) struct TrafficCounters {
    began: AtomicU64,
    ended: AtomicU64,
    good: AtomicU64,
    late: AtomicU64,
    failed: AtomicU64,
}

impl TrafficCounters {
    pub(crate) fn began(&self) {
        self.began.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a request that took `took`. A deadline that passed before `slow_after`
    /// says nothing about the peer: the caller was impatient.
    pub(crate) fn ended(&self, outcome: Outcome, took: Duration, slow_after: Duration) {
        let is_slow = took >= slow_after;
        match outcome {
            Outcome::Answered if is_slow => self.late.fetch_add(1, Ordering::Relaxed),
            Outcome::Answered => self.good.fetch_add(1, Ordering::Relaxed),
            Outcome::TimedOut if is_slow => self.failed.fetch_add(1, Ordering::Relaxed),
            Outcome::Lost => self.failed.fetch_add(1, Ordering::Relaxed),
            Outcome::TimedOut | Outcome::Abandoned => 0,
        };
        self.ended.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn totals(&self) -> Traffic {
        let ended = self.ended.load(Ordering::Acquire);
        Traffic {
            began: self.began.load(Ordering::Relaxed),
            ended,
            good: self.good.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}
