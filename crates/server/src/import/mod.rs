//! `ombak import`: takes the data of a Riak node into this one.
//!
//! What it is: a walk over the partition directories of a stopped Riak node, feeding every current value to the engine as
//! a replica would; what was done is kept in a file, so that it can be interrupted and goes on where it stopped.
//!
//! What it is not: it decides nothing about values. The engine merges copies by clock and finds each key its home.
//!
//! Invariants:
//! * progress is recorded only after everything up to it survives a loss of power;
//! * taking in a value twice changes nothing, so that whatever was done after the last record may be done again;
//! * tombstones are kept until the whole import is in: one replica's tombstone may be all that keeps a key deleted which
//!   another replica still has;
//! * what could not be read or taken in is counted and named.

mod checkpoint;
mod command;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod types_file;

pub use checkpoint::Checkpoint;
pub use command::{Options, bitcask};
