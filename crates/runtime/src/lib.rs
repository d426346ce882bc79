//! Time, randomness, tasks, threads and sockets, behind traits.
//!
//! What it is: the only way by which the engine and everything between nodes reaches the outside
//! world, files excepted (`ombak_storage::fs` is the seam for files). [`TokioRuntime`], alone or
//! with [`ServingThreads`], and [`TcpNetwork`] are the real world. The simulator has a world of its
//! own, in which one seed decides the order of all events.
//!
//! What it is not: it is no executor, and it knows nothing of keys and nodes. Locks and channels
//! need no seam: `parking_lot` and `tokio::sync` have neither a clock nor threads.
//!
//! Invariants:
//! * Code above this crate that the simulator runs calls no clock, random source, thread, task or
//!   socket but through these traits.
//! * A queue of jobs is bounded and refuses what does not fit. Tasks are bounded by their owners.
//! * A job that panics ends neither its thread nor the process.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod fair_pool;
mod fair_queue;
mod jobs_at_once;
mod network;
mod other_clocks;
mod pool;
mod published;
mod real;
mod runtime;
mod task_threads;
mod time_limit;

pub use fair_pool::{FairPool, FairPoolConfig, PoolTimes};
pub use fair_queue::{FairQueue, Tenant, Ticket};
pub use jobs_at_once::JobsAtOnce;
pub use network::{Listener, Network, Stream};
pub use other_clocks::OtherClocks;
pub use pool::{Asker, Job, JobQueue, Pool, PoolError, Waited};
pub use published::Published;
pub use real::{
    PAUSE_MAX, PAUSE_MAX_OF_TRANSFERS, ServingThreads, TcpNetwork, TokioRuntime, begin_burst, do_behind, give_way,
    number_this_thread, pause_after, pause_if_due, pauses_of_this_thread, short_pause_after, work_in_bursts,
};
pub use runtime::{BoxFuture, NoRandomBytes, Periodic, Runtime, RuntimeExt};
pub use task_threads::TaskThreads;
pub use time_limit::{TimeLimitPassed, within};
