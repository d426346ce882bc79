//! Functions in JavaScript: map and reduce functions, and commit hooks.
//!
//! What it is: a wrapper of the engine QuickJS. A [`Program`] is the source of a function, compiled
//! once and called many times by a [`Session`]. All values cross as JSON texts. The functions
//! `Riak.*` that users of Riak 2.x know are built in (`builtins.js`).
//!
//! What it is not: it is no thread and no pool. A session belongs to one thread. Nothing here knows
//! objects, buckets or jobs; `ombak-mapreduce` writes the JSON that a map function gets.
//!
//! Invariants:
//! * A function reaches nothing outside: no files, no network, no modules, no other session. It can
//!   read the time of day and random numbers, as in Riak.
//! * A call ends when its time is over, unless one native step of the engine takes longer: then
//!   only the end of the process ends it, so `ombak-functions` runs sessions in processes of their
//!   own. `try` and `finally` do not hold up the end.
//! * A session never allocates more than its limit, apart from the texts that cross.
//! * Two sessions share nothing. What a call leaves behind, later calls of the same session see. A
//!   call that ends by a limit leaves nothing: the next call finds the session as it was when new.
//! * The same program and the same values give the same error, whatever ran before.
//!
//! The thread of a session needs a stack of [`Limits::thread_stack_bytes`]; a smaller stack
//! overflows before the engine notices.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod engine;
mod error;
mod failure;
mod hook;
mod limits;
mod list;
mod log;
mod program;
mod session;
#[cfg(test)]
mod tests;

pub use error::{ErrorKind, ScriptError};
pub use hook::PreCommit;
pub use limits::{Clock, Limits};
pub use list::list_result;
pub use log::{LINE_BYTES_MAX, LINES_MAX, Log};
pub use program::{Program, SOURCE_BYTES_MAX};
pub use session::Session;
