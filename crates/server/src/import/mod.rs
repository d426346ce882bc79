//! The command `ombak import`: imports the data of a Riak node into this node.
//!
//! What it is: a walk over the partition directories of a stopped Riak node. It passes every
//! current value to the engine, as a replica would. Its progress is kept in a file, so that an
//! interrupted import can continue where it stopped.
//!
//! What it is not: it decides nothing about values. The engine merges copies by vector clock and
//! finds the home partition of each key.
//!
//! Invariants:
//! * Progress is recorded only after everything before it survives a loss of power.
//! * Importing a value twice changes nothing, so whatever was imported after the last recorded
//!   progress may be imported again.
//! * Tombstones are kept until the whole import is done: the tombstone of one replica may be all
//!   that keeps a key deleted which another replica still has.
//! * What could not be read or imported is counted and named in the report.

mod checkpoint;
mod command;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod types_file;

pub use checkpoint::Checkpoint;
pub use command::{Options, bitcask};
