//! The directory of a node: its lock, its identity across restarts, and the text format of its
//! small files.
//!
//! What it is: the directory, locked for one process; the identity in it, whose boot number rises
//! at each start, with the milestones that tell it from older copies; what the node has seen of the
//! milestones and the capabilities of others; the last placement that it has adopted; a join that
//! may have been decided without its knowledge; whether a new node awaits its peers; and the JSON
//! format with a version and a checksum in which these files, the file of bucket properties and the
//! list of stores are saved.
//!
//! What it is not: it does not know bucket properties, stores or backups.
//!
//! Invariants:
//! * A file is replaced as a whole and durably, or not at all. It has a version and a checksum.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod awaits_peers;
mod directory;
mod error;
pub mod hex;
mod identity;
mod milestones;
mod saved_file;
pub mod saved_json;
mod saved_placement;
mod seen_capabilities;
mod seen_milestones;
mod unfinished_join;
#[cfg(test)]
mod version_1;

pub use directory::{
    IDENTITY_FILE, INCOMPLETE_RESTORE, NodeDirectory, begin_anew, check_directory, examine_identity, read_identity,
};
pub use error::NodeFileError;
pub use identity::{Identity, OwnMetadata};
pub use milestones::{Milestone, Milestones};
pub use saved_file::read_saved;
pub use unfinished_join::UnfinishedJoin;
