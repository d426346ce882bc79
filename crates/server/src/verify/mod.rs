//! `ombak admin backend verify`: what of a stopped node's data is damaged, and, where that is asked for, out with it.
//!
//! What it is: a walk over the partitions of each backend that the configuration names, and a report for people or
//! programs. What damage is, and how a store does without it, is decided in the storage crate.
//!
//! What it is not: it brings nothing back. Copies are on other nodes or in a backup.

mod command;
mod report;

pub use command::{Options, run};
