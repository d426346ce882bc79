//! What a hot backup takes of a store: the files that hold everything up to one append, while writes go on.
//!
//! What it is: the cut and the list of files. They stay as they are, and where they are, as long as the [`StoreCut`] lives;
//! those that may be given a second name are never written to again.
//!
//! What it is not: it copies nothing. Whoever makes a backup decides where the files go (`ombak_kv`).

use crate::error::StorageError;
use crate::fs::FileSystem;
use crate::identity::StoreIdentity;
use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backup of one partition, about to be taken. Background work of the store stands still as long as it lives; writes do
/// not.
pub trait StoreBackup {
    /// The moment of the backup: it has everything that was appended before this, and nothing that is appended later. Writes
    /// wait for it, so it is brief. The last append that is in.
    fn cut(&mut self) -> u64;

    /// Directories of the backends' files: a backup lies in none of them.
    fn roots(&self) -> Vec<&Path>;

    /// With several backends: the names of those without files, which are in no backup.
    fn left_out(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Puts what was cut on disk and says where it lies: for each store of the partition that has files.
    fn finish(self: Box<Self>) -> Result<Vec<StoreCut>, StorageError>;
}

/// What a backup has of one store.
pub struct StoreCut {
    /// With several backends: the name of the store's.
    pub name: Option<String>,
    /// What reads the files: `bitcask`, `leveled`, `leveldb`.
    pub kind: &'static str,
    /// Who it is.
    pub identity: StoreIdentity,
    /// The last append that is in; with several backends, that of all of them together.
    pub seq: u64,
    /// The directory of the backend's stores: files are put back at the same place under one.
    pub root: PathBuf,
    /// Its files.
    pub files: Vec<CutFile>,
    /// As long as this lives, the files stay.
    pub(crate) _pin: Box<dyn Any + Send>,
}

/// A file of a backup.
pub struct CutFile {
    /// Where it goes under the root.
    pub place: PathBuf,
    /// What it holds.
    pub content: CutContent,
}

/// What a file of a backup holds.
pub enum CutContent {
    /// A file that is never written to again: it may be given a second name.
    Final {
        /// Where it lies.
        path: PathBuf,
        /// Through which file system.
        fs: Arc<dyn FileSystem>,
        /// With it, and its length, another file of this place is told from this one: a random number that was drawn when it was
        /// begun, or a checksum of all of it that is known. None for files that have neither.
        salt: Option<u64>,
    },
    /// The first bytes of a file that a start may still cut or write to.
    Prefix {
        /// Where it lies.
        path: PathBuf,
        /// Through which file system.
        fs: Arc<dyn FileSystem>,
        /// How many bytes.
        length: u64,
    },
    /// A small file as it was at the moment of the cut.
    Bytes(Vec<u8>),
}
