//! Functions in JavaScript in a node: threads that run them, and where they are found.
//!
//! What it is: a [`FunctionPool`] has threads for the sessions of `ombak-script`. [`Catalogue`]
//! finds the program that a name or an anonymous source stands for. Jobs and hooks open a
//! [`Function`] and run work with it:
//!
//! ```ignore
//! let program = catalogue.named("Riak.mapValuesJson")?;
//! let map = pool.open(Lane::Map, program);               // cheap; a phase or a hook keeps it
//! let results = map.run(deadline, move |calls| {         // on a thread of the pool
//!     objects.iter().map(|object| calls.map(object, "null", "null")).collect::<Result<Vec<_>, _>>()
//! }).await??;                                            // FunctionError, then ScriptError
//! ```
//!
//! What it is not: it knows neither objects nor jobs nor buckets. It bounds how much work waits; it
//! does not make callers wait for room.
//!
//! Invariants:
//! * Functions run on no other thread than the pool's, and the threads of one lane never run work
//!   of another lane. So jobs cannot take the threads of hooks. The threads of jobs give way to all
//!   others.
//! * Each thread keeps one session for each open [`Function`] that it has run, and ends it when the
//!   last clone of that `Function` is dropped. Functions never share a session.
//! * A caller has its answer at its deadline, whatever the function does.
//! * A thread that does not come back from a call is left to itself and replaced. It counts until
//!   it comes back. A lane never has more threads than its size and [`PoolConfig::stuck_max`]
//!   together; a lane whose threads are all stuck refuses work.
//! * A lane without work has no threads.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod calls;
mod catalogue;
mod config;
mod error;
mod function;
mod pool;
#[cfg(test)]
mod tests;

pub use calls::Calls;
pub use catalogue::{Catalogue, NothingRegistered, Registered, RegisteredFunctions};
pub use config::{Lane, PoolConfig};
pub use error::{FunctionError, LookupError};
pub use function::Function;
pub use pool::{FunctionPool, LaneCounts};
