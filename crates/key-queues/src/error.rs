//! Why the queues refuse something.

use crate::job::{JobId, JobKind};
use ombak_types::Error;

/// Why the queues refuse something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The fold that finds the keys failed.
    #[error(transparent)]
    Fold(Error),
    /// The node is starting, or cannot read its queues. The caller asks again.
    #[error("the queues of this node are not open yet: ask again")]
    NotOpen,
    /// The configuration lets folds find nothing, so nobody knows what is there.
    #[error("tictacaae_active is passive, so folds find nothing: set it to active, or remove it")]
    FoldsAreOff,
    /// There is no room for the keys. The caller asks for fewer keys, or waits.
    #[error(
        "the queue of keys to {kind} has room for {room} more keys, and the fold has found more: ask for fewer \
             keys, or wait until the queue is shorter"
    )]
    Full {
        /// What the keys wait for.
        kind: JobKind,
        /// How many more keys there is room for.
        room: u64,
    },
    /// There are too many jobs.
    #[error("{max} jobs are waiting, and no more are taken: wait until one of them ends")]
    TooManyJobs {
        /// How many jobs may wait.
        max: usize,
    },
    /// This node leaves its cluster. The caller asks another member.
    #[error("this node leaves its cluster and begins no more jobs: ask another member")]
    Leaves,
    /// There is no such job that waits or works.
    #[error("there is no job {0} that waits or works")]
    NoSuchJob(JobId),
    /// A bucket is being dropped, and its jobs are paused, resumed and cancelled with the drop.
    #[error("job {0} belongs to the drop {1}: name that one")]
    PartOfDrop(JobId, JobId),
    /// A job of a drop has done nothing. It is tried again.
    #[error("the last pass over the bucket could change nothing")]
    NothingDone,
    /// A file cannot be written. An operator looks at the disk.
    #[error("the queue cannot be written: {0}")]
    Disk(String),
}

impl From<Error> for QueueError {
    fn from(error: Error) -> Self {
        Self::Fold(error)
    }
}
