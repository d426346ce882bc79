//! The command `ombak admin debug`: collects what support needs to know about a node.
//!
//! What it is: many small parts ([`part`]), each with a time limit of its own. A part that fails is
//! named in the manifest and stops no other one. [`online`] asks the node, and [`offline`] reads
//! the machine, so that a bundle of a node that is down has something, too. [`secrets`] removes
//! secrets from everything, and [`archive`] packs the rest.
//!
//! What it is not: it sends nothing anywhere, and it contains no values of clients. Names of
//! buckets and keys can be in it, because log lines have them.

mod archive;
mod command;
mod offline;
mod online;
mod part;
mod secrets;

pub use command::{DebugArgs, run};
