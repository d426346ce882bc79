//! `ombak admin backend convert`: writes what a stopped node has in one backend to another.
//!
//! What it is: a fold over each partition of the one, every version put into the other as it was: key, head, values, digest,
//! the second of its write and the one in which it ends. Index entries are made from heads, as always.
//!
//! What it is not: it merges nothing. The other backend has to be empty, and the node serves from one of them.
//!
//! Invariants:
//! * the new files lie in a directory of another name until all of them are written, synced, read back and found whole;
//! * the old ones stay; only then is noted that the node does not need them any more;
//! * a conversion that is interrupted or fails leaves the node as it was. The next one begins anew.

mod command;
mod copy;
mod place;
mod report;

pub use command::{Options, run};
