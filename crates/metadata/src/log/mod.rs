//! The Raft log, the vote and the snapshot of a node, in three files of its directory.
//!
//! What it is: durable storage that knows nothing of Raft. Entries, votes and snapshots are bytes
//! to it.
//!
//! What it is not: it does not decide what is appended, removed or purged.
//!
//! Invariants:
//! * What was acknowledged is durable and is found again, or the log does not open.
//! * A log has a random identity. Its vote is used with no other log.
//! * After a failed write or sync nothing more is written until the log is opened again.

mod error;
mod format;
mod log_file;
mod recovery;
mod snapshot_file;
mod store;
#[cfg(test)]
mod tests;
mod vote_file;

pub use error::LogError;
pub(crate) use snapshot_file::{SNAPSHOT_BYTES_MAX, SavedSnapshot, SnapshotFile};
pub(crate) use store::LogStore;
