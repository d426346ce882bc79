//! Who this node is, across restarts.
//!
//! What it is: the node's directory, locked for one process; its identity, whose boot number rises at each start; and
//! the mark of a clean end, which lets the next start go on with the same actor.
//!
//! Invariants:
//! * the mark is gone, durably, before anything else is done with the node: it serves one start;
//! * a file is replaced as a whole, durably, or not at all; it has a version and a checksum.

mod clean_mark;
mod files;
mod identity;

pub(crate) use files::IDENTITY as IDENTITY_FILE;
pub use files::{NodeFiles, examine_files};
pub use identity::Identity;
pub(crate) use identity::hex;
