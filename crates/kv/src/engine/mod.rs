//! The runtime around the coordinators: it reads and writes the partitions of this node, keeps time, and looks after
//! background work.
//!
//! What it is: the one place with I/O, clocks and threads. A request runs inline on the caller's thread; only when it
//! would have to wait for a lock or a disk it is done again on the I/O threads.
//!
//! What it is not: no rules of its own. What an answer counts for is in `get` and `put`, what a write does to a key in
//! `partition`.

mod background;
#[allow(clippy::module_inception, reason = "one main type a file, named after it")]
mod engine;
mod gate;
mod get;
mod io_pool;
mod list;
mod put;
mod reaper;
mod syncs;

pub(crate) use engine::{Engine, check_bucket, check_key};
pub(crate) use io_pool::IoPool;
pub(crate) use list::Walk;
pub(crate) use put::PutProgress;
