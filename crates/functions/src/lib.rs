//! Functions in JavaScript in a node: processes that run them, and where they are found.
//!
//! What it is: a [`FunctionPool`] has threads, each with a process that has the sessions of
//! `ombak-script`. The process is this program, executed again ([`WorkerProgram`], [`serve`]).
//! [`Catalogue`] finds the program that a name or an anonymous source stands for. Jobs and hooks
//! open a [`Function`] and run work with it:
//!
//! ```ignore
//! let program = catalogue.named("Riak.mapValuesJson")?;
//! let map = pool.open(Lane::Map, program);               // cheap; a phase or a hook keeps it
//! let owner = Owner::new("job 7");                       // owners share a lane fairly
//! let results = map.run(&owner, deadline, move |calls| { // on a thread of the pool
//!     objects.iter().map(|object| calls.map(object, "null", "null")).collect::<Result<Vec<_>, _>>()
//! }).await??;                                            // FunctionError, then ScriptError
//! ```
//!
//! What it is not: it knows neither objects nor jobs nor buckets. It bounds how much work waits; it
//! does not make callers wait for room.
//!
//! Invariants:
//! * Functions run in no other process than those of the pool, which can reach neither files nor
//!   the network, and the threads of one lane never run work of another lane. So jobs cannot take
//!   the threads of hooks. The processes of jobs give way to all others, and so do those of hooks
//!   that run for long.
//! * Each process keeps one session for each open [`Function`] that it has run, and ends it when
//!   the last clone of that `Function` is dropped. Functions never share a session. A session may
//!   end at any time between two pieces of work.
//! * A caller has its answer at its deadline, whatever the function does. A call that does not end
//!   in its time is ended with its process.
//! * Owners share a lane. No owner has more threads than the lane has without slow work. Slow work
//!   has places of its own, and when they are taken, the oldest work of the owner who has most of
//!   it ends. So nobody waits long for the functions of others.
//! * A lane that had no work for a while has no threads.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod calls;
mod catalogue;
mod check;
mod config;
mod error;
mod function;
mod owner;
mod pool;
mod process;
mod testing;
#[cfg(test)]
mod tests;

pub use calls::Calls;
pub use catalogue::{Catalogue, NothingRegistered, Registered, RegisteredFunctions};
pub use check::check_program;
pub use config::{Lane, PoolConfig};
pub use error::{FunctionError, LookupError};
pub use function::Function;
pub use owner::Owner;
pub use pool::{FunctionPool, LaneCounts};
pub use process::{WorkerProgram, serve};
