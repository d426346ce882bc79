//! Processes that run functions: `child` is one as the node sees it, `serve` and `server`
//! what happens in it, `wire` what crosses between the two, and `sandbox` what it may do.
//!
//! A native step of the engine cannot be interrupted on a thread. A process can be ended, whatever
//! it does, and what it breaks is its own.

mod child;
mod sandbox;
mod serve;
mod server;
mod wire;
mod worker_program;

pub(crate) use child::{Answers, Child, Died, Killer};
pub use serve::serve;
pub(crate) use wire::Called;
pub use worker_program::WorkerProgram;
