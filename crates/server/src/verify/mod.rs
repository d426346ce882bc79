//! The command `ombak admin backend verify`: reports damage to the data of a stopped node, and
//! removes it with `--repair`.
//!
//! What it is: a walk over the partitions of each backend that the configuration names, and a
//! report for people or programs. The storage crate decides what counts as damage and how a store
//! continues without the damaged data.
//!
//! What it is not: it restores nothing. Copies of lost data are on other nodes or in a backup.

mod command;
mod report;

pub use command::{Options, run};
