//! Why a change of the cluster is refused, or did not happen.

use super::admin::losses::Losses;
use ombak_kv::buckets::Undecided;
use ombak_metadata::state::Refusal as MetadataRefusal;
use ombak_metadata::{LogError, ProposeError, StartError};
use ombak_types::Error;

/// Why a change of the cluster is refused, or did not happen. `Display` gives the words for the
/// operator, Riak's where Riak has some (docs/riak/semantics.md §16).
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The cluster refuses it in its present state.
    #[error("{0}")]
    Refused(String),
    /// It would destroy data, and the operator has not accepted that.
    #[error("Failed: nothing was committed.\n{}", .0.text())]
    DestroysData(Box<Losses>),
    /// The metadata refuses it.
    #[error("{0}")]
    Undecided(#[from] ProposeError),
    /// Files of the metadata cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The metadata does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The engine failed.
    #[error("{0}")]
    Engine(Error),
}

impl ClusterError {
    /// Whether members that vote on changes of the cluster did not answer.
    pub const fn lacks_votes(&self) -> bool {
        matches!(self, Self::Undecided(ProposeError::NoLeader | ProposeError::Unknown))
    }

    /// A refusal in these words.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }
}

impl From<Error> for ClusterError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<ClusterError> for Undecided {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Undecided(ProposeError::Refused(MetadataRefusal::Changed)) => Self::Overtaken,
            ClusterError::Undecided(ProposeError::Refused(refusal)) => Self::Refused(refusal.to_string()),
            ClusterError::Refused(text) => Self::Refused(text),
            other => Self::Failed(other.to_string()),
        }
    }
}
