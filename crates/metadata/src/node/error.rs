//! Why a node does not start, and why a command has no effect.

use crate::log::LogError;
use crate::state::Refusal;
use std::io;

/// Why the metadata of a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The log, the vote or the snapshot cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The thread for the disk does not start.
    #[error("no thread for the metadata log: {0}")]
    Threads(io::Error),
    /// The machine gives no random bytes.
    #[error("{0}")]
    NoRandomBytes(String),
    /// The Raft group stopped right after its start.
    #[error("the metadata group stopped: {0}")]
    Stopped(String),
    /// The cluster could not be founded.
    #[error("the cluster was not founded: {0}")]
    NotFounded(ProposeError),
}

/// Why a proposed command has no effect, or may have none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// The command changed nothing.
    #[error(transparent)]
    Refused(Refusal),
    /// No leader was found in time. The command has no effect.
    #[error("no majority of the voters can be reached")]
    NoLeader,
    /// The leader did not answer in time. The command may have an effect, now or later.
    #[error("the answer of the leader was lost: the change may take effect or not")]
    Unknown,
    /// The node is stopping.
    #[error("the node is stopping")]
    Stopped,
}
