//! The files of a hot backup: they hold everything up to one append (the cut), while writes go on.
//!
//! What it is: the cut and the list of files. The files keep their content and their names while
//! the [`StoreCut`] lives. Files that may be hard-linked are never written to again.
//!
//! What it is not: it copies nothing. The layer that makes a backup decides where the files go
//! (`ombak_kv`).

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::identity::StoreIdentity;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backup of one partition that is about to be taken. Background work of the store pauses while
/// this lives; writes go on.
pub trait StoreBackup {
    /// Makes the cut and returns the last append in it. The backup has every append up to the cut
    /// and none after it. Writes wait for this call, so it is brief.
    fn cut(&mut self) -> u64;

    /// The directories of the backends' files. A backup must not lie in any of them.
    fn roots(&self) -> Vec<&Path>;

    /// With several backends: the names of those that have no files and are therefore in no backup.
    fn left_out(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Syncs what was cut, and lists the files of each store of the partition that has files.
    fn finish(self: Box<Self>) -> Result<Vec<StoreCut>, StorageError>;
}

/// The part of a backup that comes from one store.
pub struct StoreCut {
    /// With several backends: the name of the backend.
    pub name: Option<String>,
    /// The kind of backend that reads the files: `bitcask`, `leveled`, `leveldb`.
    pub kind: &'static str,
    /// The identity of the store.
    pub identity: StoreIdentity,
    /// The last append in the cut; with several backends, the last append of all of them together.
    pub seq: u64,
    /// The directory of the backend's stores. A restore puts the files at the same places below
    /// another root.
    pub root: PathBuf,
    /// The files of the store.
    pub files: Vec<CutFile>,
    /// Keeps the files in place while it lives.
    pub(crate) _pin: Box<dyn Any + Send>,
}

/// A file of a backup.
pub struct CutFile {
    /// The path below the root.
    pub place: PathBuf,
    /// The content of the file.
    pub content: CutContent,
}

/// The content of a file of a backup.
pub enum CutContent {
    /// A file that is never written to again: it may be hard-linked.
    Final {
        /// The path of the file.
        path: PathBuf,
        /// The file system that has the file.
        fs: Arc<dyn FileSystem>,
        /// Distinguishes this file, together with its length, from another file at this place:
        /// either a random number that was drawn when the file was created, or a known checksum of
        /// the whole file. None for files that have neither.
        salt: Option<u64>,
    },
    /// The first bytes of a file that a start may still truncate or write to.
    Prefix {
        /// The path of the file.
        path: PathBuf,
        /// The file system that has the file.
        fs: Arc<dyn FileSystem>,
        /// The length of the prefix in bytes.
        length: u64,
    },
    /// The content of a small file at the moment of the cut.
    Bytes(Vec<u8>),
}
