//! The directory of a node: its lock, its identity across restarts, and the text format of its
//! small files.
//!
//! What it is: the directory, locked for one process; the identity in it, whose boot number rises
//! at each start; and the JSON format with a version and a checksum in which this file, the file of
//! bucket properties and the list of stores are saved.
//!
//! What it is not: it does not know bucket properties, stores or backups.
//!
//! Invariants:
//! * A file is replaced as a whole and durably, or not at all. It has a version and a checksum.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod directory;
mod error;
pub mod hex;
mod identity;
pub mod saved_json;

pub use directory::{IDENTITY_FILE, INCOMPLETE_RESTORE, NodeDirectory, check_directory, examine_identity};
pub use error::NodeFileError;
pub use identity::Identity;
