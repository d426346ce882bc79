//! The command `ombak admin backend convert`: copies the data of a stopped node from one backend to
//! another.
//!
//! What it is: a fold over each partition of the old backend. Every version is put into the new one
//! unchanged, with its key, head, values, digest, time of write and time of expiry. Index entries
//! are derived from the heads, as they always are.
//!
//! What it is not: it merges nothing. The new backend has to be empty, and the node serves from
//! only one of the two.
//!
//! Invariants:
//! * The new files lie in a directory with a temporary name until all of them are written, synced,
//!   read back and found undamaged.
//! * The old files stay. The node records that it no longer needs them only after the new ones are
//!   in place.
//! * A conversion that is interrupted or fails leaves the node as it was. The next one starts from
//!   the beginning.

mod command;
mod copy;
mod place;
mod report;

pub use command::{Options, run};
