//! What all nodes of a cluster agree on: the members, the ring, the bucket types and the properties
//! of types and buckets.
//!
//! What it is: the replicated state ([`state`]), its log and snapshots on the disk ([`LogError`]
//! says what can go wrong with them), and the Raft group over them. Raft is the library openraft.
//! Only the module `raft` knows it.
//!
//! What it is not: it checks no bucket properties, plans no ring, tells nobody which nodes failed,
//! and opens no connections ([`RaftTransport`] does).
//!
//! Invariants:
//! * Data requests never wait for it. A node without a majority goes on with the last state that it
//!   knows, also after a restart: a command is durable as committed before it is applied.
//! * A node takes part under the identity of its log, and a log that is lost or was replaced never
//!   votes again (docs/design/replication.md §8). Each start records a milestone of the node's
//!   directory. A directory that has not passed the recorded one is an older copy, and is refused.
//!   Whoever starts a node asks the other members first ([`SavedMetadata`] has their addresses).
//! * Nothing that was acknowledged is forgotten silently: damage of the log is an error that a
//!   person has to decide about.
//!
//! # What openraft 0.9 does by itself
//!
//! The simulator needs every event to follow from a seed. This was read in openraft 0.9.25, whose
//! version the workspace fixes:
//! * Tasks, timers, clocks, random numbers and one-shot channels come from its trait
//!   `AsyncRuntime`, here `raft::async_runtime` over `ombak_runtime`. Nothing calls `tokio::spawn`,
//!   `tokio::time` or `rand` beside it. The functions of the trait are static, so each thread knows
//!   the runtime of the task that it polls. Each task and each caller is wrapped in a future that
//!   sets it for the duration of a poll.
//! * The election timeout is drawn once, when the group starts.
//! * Two `tokio::select!` without `biased` draw from a random source of tokio's thread: the pause
//!   after a network failure of the kind `Unreachable`, and `Raft::wait`. This crate uses neither:
//!   its network answers with `NetworkError` after a pause of its own, and it waits on watch
//!   channels. The main loop's `select!` is `biased`.
//! * Its maps are B-trees. It reads the wall clock for log messages only.
//! * It purges the log right after it handed a received snapshot to the state machine, and does not
//!   wait until that is written. `raft::log_storage` waits, so that a loss of power between the two
//!   loses nothing.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod log;
mod log_dirs;
mod node;
mod raft;
pub mod state;

pub use log::LogError;
pub use log_dirs::LogDirs;
pub use node::{MetadataNode, Myself, NoAnswer, OwnMilestones, ProposeError, RaftTransport, Setup, StartError, Timing};
pub use raft::saved::{LogProgress, SavedMetadata};
