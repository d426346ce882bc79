//! Queues of keys that folds of clients erase, reap and repair (docs/folds.md).
//!
//! What it is: [`KeyQueues`] lets a fold find keys and keeps them as a job, which is a file of keys
//! and a small record beside it. A worker for each kind of job takes the keys in pages, and erases,
//! reaps or repairs them. A drop of a bucket is a job that lets further jobs erase and reap all
//! that the bucket has.
//!
//! ```text
//! a fold --> KeyQueues::fill --> ID.0.keys, ID.json --> worker --> erase, reap, repair --> Kv
//!                                      ^                 |
//!                                      '--- position ----'
//! ```
//!
//! What it is not: it does not find the keys (`ombak_kv::folds`), and no tombstone is removed here.
//! A reap orders the primaries to let it wait for a round (docs/design/replication.md §6).
//!
//! Invariants:
//! * A job begins only after all of its keys are on the disk. It ends only when each key is done,
//!   has changed, or is told to be lost: damage of its file costs the keys that it lies in. So a
//!   restart loses nothing, and repeats a second of work.
//! * A key is erased only if its object has the clock that the fold has found. It is reaped only if
//!   no primary holds anything that the tombstone does not cover.
//! * The number of keys that wait is bounded for each kind of job. A fold that finds more is
//!   refused and leaves nothing.
//! * A worker holds one page of keys in memory, and its pace is bounded.
//! * A member does not leave its cluster before its jobs have ended (`Kv::jobs_not_ended`).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod config;
mod drop;
mod error;
mod figures;
mod fill;
mod job;
mod key_file;
mod page;
mod queues;
mod saved;
mod state;
mod worker;

pub use config::KeyQueuesConfig;
pub use error::QueueError;
pub use job::{JobEnd, JobId, JobKind, JobStatus};
pub use page::{FoundAgain, found_again};
pub use queues::KeyQueues;
