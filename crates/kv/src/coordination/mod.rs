//! The coordination of reads and writes: how many answers a request needs, and what its replicas'
//! answers mean together.
//!
//! What it is: pure functions and state machines without I/O, clock or randomness. `engine` runs
//! them.
//!
//! What it is not: it does not know how a replica stores a key; `partition` does.

pub mod expiry;
mod failures;
pub mod get;
pub mod put;
mod quorums;
mod replica;

pub(crate) use failures::{Refusal, ReplicaFailure};
pub(crate) use quorums::{effective_n, expand, quorum};
pub use replica::{CountedSets, Replica, Weight};
pub(crate) use replica::{Tallies, Tally};
