//! Finds what a store lacks of what it has promised. Nothing here changes anything on disk.

use super::copies::{CopyState, InventoryCopies};
use super::record::{Inventory, PromisedFile, RECORD_NAME};
use super::small_files::SmallFiles;
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, OpenMode};
use crate::journal::format::{FILE_HEADER_BYTES, FileHeader};
use crate::journal::{
    COMMIT_SUFFIX, DROPPED_SUFFIX, data_path, missing_file, place_fingerprint, read_commit, unsynced_path,
};
use crate::ledger::seen_seq;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The most missing things that an error lists; further ones are only counted.
const MISSING_SHOWN: usize = 3;

/// How something that was promised is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingKind {
    /// The store of the partition is missing, or its inventory is.
    StoreGone,
    /// The store is not the one that the node has used.
    AnotherStore,
    /// The store is an older copy of the one that the node has used.
    OlderStore { generation: u64, promised: u64 },
    /// Neither copy of the inventory can be read.
    InventoryDamaged,
    /// A data file is missing.
    FileMissing { id: u32 },
    /// A data file is shorter than promised.
    FileShortened { id: u32, length: u64, promised: u64 },
    /// Another data file has the name.
    AnotherFile { id: u32 },
    /// One of the small files beside the data files is missing.
    SmallFileMissing { name: &'static str },
}

/// Something that was promised and is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MissingItem {
    /// The file or directory.
    pub(crate) path: PathBuf,
    pub(crate) kind: MissingKind,
}

impl MissingItem {
    /// The fingerprint in the note of lost ranges: noted twice, it counts once.
    pub(crate) fn place_fingerprint(&self) -> u64 {
        match self.kind {
            MissingKind::FileMissing { id } | MissingKind::AnotherFile { id } => missing_file(id),
            MissingKind::FileShortened { id, length, .. } => place_fingerprint(&format!("shortened {id}"), length),
            MissingKind::OlderStore { promised, .. } => place_fingerprint("older store", promised),
            MissingKind::StoreGone => place_fingerprint("store gone", 0),
            MissingKind::AnotherStore => place_fingerprint("another store", 0),
            MissingKind::InventoryDamaged => place_fingerprint("inventory", 0),
            MissingKind::SmallFileMissing { name } => place_fingerprint(&format!("missing {name}"), 0),
        }
    }
}

impl fmt::Display for MissingItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.kind {
            MissingKind::StoreGone => {
                write!(f, "{path} is missing: the store is gone, or its file system is not mounted")
            }
            MissingKind::AnotherStore => {
                write!(f, "{path} is of another store than the one that this node has used here")
            }
            MissingKind::OlderStore { generation, promised } => write!(
                f,
                "{path} is an older copy of the store: it has generation {generation} of its inventory, and the node knows \
                 generation {promised}"
            ),
            MissingKind::InventoryDamaged => write!(f, "{path} is damaged, and so is every other copy of it"),
            MissingKind::FileMissing { .. } | MissingKind::SmallFileMissing { .. } => write!(f, "{path} is missing"),
            MissingKind::FileShortened { length, promised, .. } => {
                write!(f, "{path} has {length} bytes, and {promised} of it were on disk")
            }
            MissingKind::AnotherFile { .. } => write!(f, "{path} is another file than the one that was there"),
        }
    }
}

/// The copies of an inventory, compared with each other and with the disk.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) store: CopyState,
    pub(crate) node: CopyState,
    pub(crate) missing: Vec<MissingItem>,
}

impl Comparison {
    /// The promises in the newer copy of this store's inventory; none if no copy can be read.
    pub(crate) fn promised(&self) -> Option<&Inventory> {
        match (self.store.whole(), self.node.whole()) {
            (Some(store), Some(node)) if store.lineage == node.lineage && node.generation > store.generation => {
                Some(node)
            }
            (Some(store), _) => Some(store),
            (None, node) => node,
        }
    }
}

/// Compares both copies of an inventory with each other and with the directory of the store.
pub(crate) fn compare(fs: &dyn FileSystem, dir: &Path, copies: &InventoryCopies) -> Result<Comparison, StorageError> {
    let (names, dir_exists) = match fs.list(dir) {
        Ok(names) => (names, true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), false),
        Err(source) => return Err(io_error("list", dir, source)),
    };
    // For a partition in which nothing was ever written, this saves an attempt to open the file.
    let has_copy = names.iter().any(|name| name == RECORD_NAME);
    let store = if has_copy { copies.read_store(fs)? } else { CopyState::Missing };
    let node = copies.read_node(fs)?;
    let mut missing = Vec::new();
    let mut add = |path: &Path, kind| missing.push(MissingItem { path: path.to_owned(), kind });
    // The files in another store's inventory say nothing about this store.
    let mut is_same_store = true;
    match (&store, &node) {
        (CopyState::Missing, CopyState::Whole(_) | CopyState::Damaged) => add(&copies.store, MissingKind::StoreGone),
        (CopyState::Damaged, CopyState::Missing | CopyState::Damaged) => {
            add(&copies.store, MissingKind::InventoryDamaged)
        }
        (CopyState::Whole(store), CopyState::Whole(node)) if store.lineage != node.lineage => {
            add(&copies.store, MissingKind::AnotherStore);
            is_same_store = false;
        }
        (CopyState::Whole(store), CopyState::Whole(node)) if node.generation > store.generation => {
            let (generation, promised) = (store.generation, node.generation);
            add(&copies.store, MissingKind::OlderStore { generation, promised });
        }
        // Without any copy, a ledger still tells of a directory that was there.
        (CopyState::Missing, CopyState::Missing) if !dir_exists && has_left_a_tree(fs, dir)? => {
            add(dir, MissingKind::StoreGone);
        }
        _ => {}
    }
    let node_files = node.whole().filter(|_| is_same_store);
    let known = || store.whole().into_iter().chain(node_files);
    let promised = promised_files(known());
    if !promised.is_empty() {
        missing.extend(missing_files(fs, dir, &names, &promised)?);
    }
    let small_files = known().fold(SmallFiles::default(), |all, copy| all.union(copy.small_files));
    let gone = small_files.names_not_in(SmallFiles::among(&names));
    missing.extend(gone.map(|name| MissingItem { path: dir.join(name), kind: MissingKind::SmallFileMissing { name } }));
    Ok(Comparison { store, node, missing })
}

/// Whether the tree beside the directory of a store has seen writes of that store. While a
/// partition is being dropped, its tree may stay longer than its directory.
fn has_left_a_tree(fs: &dyn FileSystem, dir: &Path) -> Result<bool, StorageError> {
    let Some((root, partition)) = dir.parent().zip(dir.file_name().and_then(OsStr::to_str)) else { return Ok(false) };
    if fs.list(&root.join(format!("{partition}{DROPPED_SUFFIX}"))).is_ok() {
        return Ok(false);
    }
    Ok(seen_seq(root, partition)? > 0)
}

/// What all copies together promise of each file: the longest length, because each copy is true.
fn promised_files<'a>(copies: impl Iterator<Item = &'a Inventory>) -> BTreeMap<u32, PromisedFile> {
    let mut promised: BTreeMap<u32, PromisedFile> = BTreeMap::new();
    for (id, file) in copies.flat_map(|copy| &copy.files) {
        let known = promised.entry(*id).or_insert(*file);
        known.length = known.length.max(file.length);
    }
    promised
}

fn missing_files(
    fs: &dyn FileSystem,
    dir: &Path,
    names: &[String],
    promised: &BTreeMap<u32, PromisedFile>,
) -> Result<Vec<MissingItem>, StorageError> {
    // The input files of a committed merge count as removed, even if the directory still lists
    // them.
    let mut removed = Vec::new();
    for name in names.iter().filter(|name| name.ends_with(COMMIT_SUFFIX)) {
        removed.extend(read_commit(fs, &dir.join(name))?.unwrap_or_default());
    }
    let mut missing = Vec::new();
    for (id, file) in promised {
        if removed.contains(&(*id, file.salt)) {
            continue;
        }
        let path = data_path(dir, *id);
        let kind = match examine(fs, &path, file.salt)? {
            // Until a file's new name is durable, a loss of power may bring its first name back.
            Found::Nothing => match examine(fs, &unsynced_path(dir, *id), file.salt)? {
                Found::Length(length) if length >= file.length => continue,
                _ => MissingKind::FileMissing { id: *id },
            },
            Found::Length(length) if length >= file.length => continue,
            Found::Length(length) => MissingKind::FileShortened { id: *id, length, promised: file.length },
            Found::AnotherSalt => MissingKind::AnotherFile { id: *id },
        };
        missing.push(MissingItem { path, kind });
    }
    Ok(missing)
}

enum Found {
    Nothing,
    Length(u64),
    AnotherSalt,
}

fn examine(fs: &dyn FileSystem, path: &Path, salt: u64) -> Result<Found, StorageError> {
    let failed = |source| io_error("read", path, source);
    let file = match fs.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(source) => return Err(io_error("open", path, source)),
    };
    let length = file.length().map_err(failed)?;
    let mut header = vec![0; length.min(FILE_HEADER_BYTES as u64) as usize];
    let read = file.read_at(&mut header, 0, ReadMode::Blocking).map_err(failed)?;
    // An unreadable header is damage; it does not count as a missing file.
    match FileHeader::decode(&header[..read]) {
        Ok(header) if header.salt != salt => Ok(Found::AnotherSalt),
        _ => Ok(Found::Length(length)),
    }
}

/// The ways to go on without what is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedies {
    /// A start that accepts the loss, or a repair.
    ConsentOrRepair,
    /// Only a repair.
    Repair,
}

/// The error with which a store refuses to start.
pub(crate) fn refusal_error(dir: &Path, partition: u32, missing: &[MissingItem], remedies: Remedies) -> StorageError {
    let shown: Vec<String> = missing.iter().take(MISSING_SHOWN).map(ToString::to_string).collect();
    let more = match missing.len().saturating_sub(MISSING_SHOWN) {
        0 => String::new(),
        count => format!("; and {count} more"),
    };
    let consent = match remedies {
        Remedies::ConsentOrRepair => ", or once 'ombak start --accept-loss'",
        Remedies::Repair => "",
    };
    let what = format!(
        "partition {partition} lacks what it had durably stored: {}{more}. Nothing was changed. Mount the file system if it is \
         not mounted, or put the files back, or restore a backup. To go on without what is missing, run 'ombak admin backend \
         verify --repair'{consent}",
        shown.join("; ")
    );
    StorageError::Unusable { path: dir.to_owned(), what }
}
