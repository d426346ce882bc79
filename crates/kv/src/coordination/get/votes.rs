//! How much the answers to a read count for it and against it (docs/design/replication.md §14).

use super::copy::{BodyState, CopyState, FoundCopy};
use super::events::Answer;
use super::plan::GetPlan;
use crate::coordination::{Replica, ReplicaFailure, Tally};
use ombak_types::Error;

/// The sums of the answers for and against one read.
#[derive(Debug)]
pub(super) struct Votes {
    pub(super) ok: Tally,
    pub(super) missing: Tally,
    pub(super) failed: Tally,
    /// Whether an owner that may lack something has not found the key.
    pub(super) is_doubtful: bool,
    /// Whether all replicas that failed did so because a queue was full: then the client is told to
    /// try again.
    pub(super) only_busy: bool,
    /// The failure of the last replica that failed to answer.
    pub(super) failure: Option<Error>,
}

impl Votes {
    pub(super) fn new() -> Self {
        let (ok, missing, failed) = (Tally::default(), Tally::default(), Tally::default());
        Self { ok, missing, failed, is_doubtful: false, only_busy: true, failure: None }
    }

    /// Counts the first answer of a replica. Returns what is known of its copy then.
    pub(super) fn count(&mut self, answer: Answer, weight: Replica, plan: &GetPlan) -> CopyState {
        match answer {
            Answer::Object(object, digest) => self.found(FoundCopy { object, digest, body: BodyState::Here }, weight),
            Answer::Head(object, digest) => self.found(FoundCopy { object, digest, body: BodyState::NotAsked }, weight),
            Answer::Same { of } => {
                self.ok.add(weight);
                CopyState::Same { of }
            }
            Answer::NotFound { .. } if weight.primaries == 0 => CopyState::HeldNotFound,
            Answer::NotFound { full } => {
                self.is_doubtful |= !full;
                self.not_found(weight, full && plan.notfound_ok);
                CopyState::NotFound
            }
            Answer::Failed(error) => self.failed(error, weight),
        }
    }

    /// Counts a replica that does not have the key.
    pub(super) fn not_found(&mut self, weight: Replica, in_favour: bool) {
        if in_favour { self.ok.add(weight) } else { self.missing.add(weight) }
    }

    fn found(&mut self, copy: FoundCopy, weight: Replica) -> CopyState {
        self.ok.add(weight);
        CopyState::Found(copy)
    }

    fn failed(&mut self, error: Error, weight: Replica) -> CopyState {
        let failure = ReplicaFailure::of(&error);
        if failure != ReplicaFailure::Late {
            self.failed.add(weight);
            self.only_busy &= failure == ReplicaFailure::Busy;
        }
        self.failure = Some(error);
        match failure {
            ReplicaFailure::Late => CopyState::Late,
            ReplicaFailure::Unreadable => CopyState::Unreadable,
            ReplicaFailure::Busy | ReplicaFailure::Broken => CopyState::Failed,
        }
    }
}
