//! Hot backups of a node, and their restore into a new node.
//!
//! ```text
//! DIR/owner.json               the node whose backups may go there
//! DIR/manifest.json            a list of the files below, with lengths and checksums; written
//!                              last, so without it the backup is incomplete
//! DIR/N/node/node.json         the node's identity and its ring
//! DIR/N/node/buckets.json      bucket types and bucket properties, if there are any
//! DIR/N/stores/NAME/…          the files of each backend's stores, with their paths under its
//!                              directory
//! ```
//!
//! N numbers the backups into a directory. A file that has not changed stays where an earlier
//! backup put it.
//!
//! What it is: [`Backup`] takes a backup of a running node; [`restore`] copies a backup into the
//! empty directories of a stopped node.
//!
//! What it is not: it opens no store, and does not know the content of files.
//!
//! Invariants:
//! * Each partition is saved as of one moment, its cut: the backup has everything that was
//!   acknowledged before the cut, and nothing that was written later.
//! * Bucket types and properties are read after the last cut, so the backup has the type of every
//!   key in it.
//! * The manifest gets its name only after all files that it lists are on disk.
//! * A restored store has a new id and is marked as restored. A backup and a node that was restored
//!   from it never share files.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod backup_directory;
mod backup_files;
mod create;
mod earlier_backup;
mod error;
mod manifest;
mod restore;

pub use create::{Backup, BackupProgress, BackupReport};
pub use error::BackupError;
#[cfg(any(test, fuzzing))]
pub use manifest::check_manifest;
pub use restore::{ProgressCallback, RestoreReport, RestoreTarget, TargetStore, check_restore, restore, verify};
