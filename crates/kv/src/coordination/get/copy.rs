//! The copy of one replica: what is known of it, and which of two copies takes the place of the
//! other.

use super::events::Answer;
use crate::coordination::ReplicaFailure;
use ombak_types::Object;
use ombak_types::object::UnclockedRank;

/// What is known of the copy of one replica.
#[derive(Debug)]
pub(super) enum CopyState {
    Waiting,
    /// The stand-in has nothing. Its answer does not count yet.
    HeldNotFound,
    NotFound,
    Failed,
    /// The replica has a version that it cannot read.
    Unreadable,
    /// The answer did not come in time.
    Late,
    Found(FoundCopy),
    /// The version is that of another replica, whose values are here.
    Same {
        /// The index of the other replica.
        of: usize,
    },
}

/// What a replica has told about its copy.
#[derive(Debug)]
pub(super) struct FoundCopy {
    pub(super) object: Object,
    /// The digest of the version, values included.
    pub(super) digest: u64,
    pub(super) body: BodyState,
}

/// What is known of the values of a copy whose head was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyState {
    Here,
    NotAsked,
    Asked,
    /// The values are corrupt, or older than the head.
    Unreadable,
    /// The replica was too busy to send the values.
    Busy,
    /// The replica failed to send the values, for another reason.
    Failed,
    /// The values did not come in time.
    Late,
}

impl BodyState {
    /// Whether the values can be used, now or later.
    pub(super) const fn is_usable(self) -> bool {
        matches!(self, Self::Here | Self::NotAsked | Self::Asked)
    }

    const fn after(failure: ReplicaFailure) -> Self {
        match failure {
            ReplicaFailure::Late => Self::Late,
            ReplicaFailure::Unreadable => Self::Unreadable,
            ReplicaFailure::Busy => Self::Busy,
            ReplicaFailure::Broken => Self::Failed,
        }
    }
}

impl FoundCopy {
    /// Takes the answer to the question for the values.
    pub(super) fn take_values(&mut self, answer: Answer) {
        self.body = match answer {
            Answer::Object(whole, digest) if whole.clock.descends(&self.object.clock) => {
                (self.object, self.digest) = (whole, digest);
                BodyState::Here
            }
            // The values belong to an older version than the replica's head.
            Answer::Object(..) => BodyState::Unreadable,
            Answer::Failed(error) => BodyState::after(ReplicaFailure::of(&error)),
            // The copy is gone meanwhile.
            Answer::Head(..) | Answer::Same { .. } | Answer::NotFound { .. } => BodyState::Failed,
        };
    }

    /// Whether the copy is the same version as another one, or takes its place in a merge.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.object.clock, &other.object.clock);
        match self.digest == other.digest {
            true => true,
            false if mine.is_empty() && theirs.is_empty() => self.unclocked_rank() > other.unclocked_rank(),
            false => mine.dominates(theirs),
        }
    }

    /// Without a clock no copy has seen another one. So what can be read takes the place of what
    /// cannot.
    fn unclocked_rank(&self) -> (bool, UnclockedRank) {
        (self.body != BodyState::Unreadable, UnclockedRank::new(&self.object, self.digest))
    }
}
