//! The identity of this node, across restarts.
//!
//! What it is: the node's directory, locked for one process, and its identity, whose boot number
//! rises at each start.
//!
//! Invariants:
//! * A file is replaced as a whole and durably, or not at all. It has a version and a checksum.

mod files;
mod identity;

pub(crate) use files::IDENTITY as IDENTITY_FILE;
pub use files::{NodeFiles, check_start, examine_files};
pub use identity::Identity;
pub(crate) use identity::hex;
