//! What is known of a job.

use ombak_types::Bucket;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a job. It is never used again on this node.
pub type JobId = u64;

/// What becomes of the keys of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// The objects are deleted.
    Erase,
    /// The tombstones are removed.
    Reap,
    /// The keys are read from all replicas, so that those that differ are repaired.
    Repair,
    /// A bucket is erased and reaped by further jobs. The job has no keys of its own.
    Drop,
}

impl JobKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Erase, Self::Reap, Self::Repair, Self::Drop];
}

impl fmt::Display for JobKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Erase => "erase",
            Self::Reap => "reap",
            Self::Repair => "repair",
            Self::Drop => "drop",
        })
    }
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobEnd {
    /// All keys are done or have changed.
    Done,
    /// An operator has ended it. The keys that were not done stay as they are.
    Cancelled,
    /// Some of its keys cannot be read, and all others are done or have changed. Those that cannot
    /// be read stay as they are.
    Lost(String),
}

/// A job, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// Its number.
    pub id: JobId,
    /// What becomes of its keys.
    pub kind: JobKind,
    /// The bucket of its keys.
    pub bucket: Bucket,
    /// The Unix second in which its keys were found.
    pub began_secs: u64,
    /// How many keys it has. A drop has those of its jobs so far.
    pub keys: u64,
    /// How many keys are done.
    pub done: u64,
    /// How many keys were left alone, because what is stored is not what the fold has found.
    pub changed: u64,
    /// Whether an operator has paused it.
    pub is_paused: bool,
    /// Why it does not go on at the moment: the last failure.
    pub waits_for: Option<String>,
    /// Why some of its keys cannot be read. It goes on with the others.
    pub damage: Option<String>,
    /// The drop that it belongs to.
    pub part_of: Option<JobId>,
    /// How it has ended, and in which Unix second; `None` while it waits or works.
    pub ended: Option<(JobEnd, u64)>,
}
