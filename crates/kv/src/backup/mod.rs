//! Hot backups of a node, and how one becomes a node again.
//!
//! ```text
//! DIR/owner.json               whose backups may go there
//! DIR/manifest.json            what follows, with lengths and checksums; written last: without it the backup is incomplete
//! DIR/N/node/node.json         the node's identity and its ring
//! DIR/N/node/buckets.json      bucket types and bucket properties, if there are any
//! DIR/N/stores/NAME/…          the files of each backend's stores, at their places under its directory
//! ```
//!
//! N numbers the backups into a directory: what is as it was stays where an earlier one put it.
//!
//! What it is: [`Backup`] takes a backup of a running node, [`restore`] puts one into the empty directories of a stopped one.
//!
//! What it is not: it opens no store, and does not know what is in a file.
//!
//! Invariants:
//! * each partition is as it was at one moment, its cut: everything that was acknowledged before is in, nothing that was
//!   written later;
//! * bucket types and properties are read after the last cut, so no key is in whose type is not;
//! * the manifest gets its name when everything it tells of is on disk;
//! * a restored store has an id of its own and says that it is restored; files are never shared between a backup and the node
//!   that was made of it.

mod create;
mod destination;
mod earlier;
mod error;
mod home;
mod manifest;
mod restore;

pub use create::{Backup, BackupProgress, BackupReport, plain_path};
pub use error::BackupError;
#[cfg(any(test, fuzzing))]
pub(crate) use manifest::check_manifest;
pub use restore::{
    INCOMPLETE_RESTORE, RestoreReport, RestoreTarget, TargetStore, Watch, check_restore, restore, verify,
};
