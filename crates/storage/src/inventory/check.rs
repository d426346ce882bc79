//! The check of all stores of a root before any of them is opened: whether each may start. It
//! changes nothing on disk.

use super::copies::InventoryCopies;
use super::{Comparison, CopyState, InventoryConfig, MissingKind, Remedies, compare, refusal_error};
use crate::backend::ReadMode;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, OpenMode};
use crate::journal::format::{FILE_HEADER_BYTES, FileHeader, HeaderError};
use crate::journal::{
    COMMIT_SUFFIX, LostNote, Shared, data_path, identity_is_damaged, index_must_have_seen, parse_name, read_commit,
    unsynced_path,
};
use crate::ledger::{check_only_copy, ledger_dir, partitions_with_trees};
use crate::verify::StoreKind;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Whether all stores of a root may start: the stores of the partitions that are there, and of
/// those that the node has used. The error says why not, and what helps. A root that another
/// process uses is an error, too.
pub fn check_root(
    fs: &dyn FileSystem,
    root: &Path,
    kind: StoreKind,
    config: &InventoryConfig,
) -> Result<(), StorageError> {
    let _lock = match fs.list(root) {
        Ok(_) => Some(Shared::take_lock(fs, root, &format!("{}.data_root", kind.name()))?),
        // There is nothing to lock. If stores are missing, the comparison below reports it.
        Err(_) => None,
    };
    let mut there = partitions_in(fs, root)?;
    there.extend(partitions_with_trees(root));
    let known = match &config.node_dir {
        Some(node_dir) => partitions_in(fs, node_dir)?,
        None => BTreeSet::new(),
    };
    let (mut gone, mut first_refusal) = (0, None);
    for partition in there.union(&known) {
        let dir = root.join(partition.to_string());
        let copies = InventoryCopies::of(&dir, *partition, config.node_dir.as_deref());
        let comparison = compare(fs, &dir, &copies)?;
        check_formats(fs, &dir)?;
        let tree = if kind == StoreKind::Leveldb { check_tree(fs, root, *partition, &comparison) } else { Ok(()) };
        if !comparison.missing.is_empty() && !config.accepts_loss {
            gone += usize::from(comparison.missing[0].kind == MissingKind::StoreGone);
            // A start that accepts losses refuses a tree that does not fit its journal, too.
            let remedies = if tree.is_ok() { Remedies::ConsentOrRepair } else { Remedies::Repair };
            first_refusal =
                first_refusal.or_else(|| Some(refusal_error(&dir, *partition, &comparison.missing, remedies)));
        } else if first_refusal.is_none() {
            tree?;
        }
    }
    match first_refusal {
        Some(_) if gone > 0 && gone == known.len() => Err(root_is_gone(root, gone)),
        Some(refusal) => Err(refusal),
        None => Ok(()),
    }
}

/// Whether some store of a root has promised anything, according to the copies in the directory of
/// the node.
pub fn promises_anything(fs: &dyn FileSystem, node_dir: &Path) -> bool {
    let Ok(partitions) = partitions_in(fs, node_dir) else { return true };
    partitions.into_iter().any(|partition| {
        let copies = InventoryCopies::of(node_dir, partition, Some(node_dir));
        match copies.read_node(fs) {
            Ok(CopyState::Whole(inventory)) => !inventory.files.is_empty() || inventory.index_seq > 0,
            Ok(CopyState::Missing) => false,
            Ok(CopyState::Damaged) | Err(_) => true,
        }
    })
}

/// Whether `root` has all stores that a node knows by the copies in `node_dir`, and none of them
/// is older than its copy. Then nothing is missing: the directory of the stores was moved.
pub fn has_moved_to(fs: &dyn FileSystem, node_dir: &Path, root: &Path) -> bool {
    let Ok(partitions) = partitions_in(fs, node_dir) else { return false };
    let is_there = |partition: &u32| {
        let copies = InventoryCopies::of(&root.join(partition.to_string()), *partition, Some(node_dir));
        match (copies.read_node(fs), copies.read_store(fs)) {
            (Ok(CopyState::Whole(node)), Ok(CopyState::Whole(store))) => {
                store.lineage == node.lineage && store.generation >= node.generation
            }
            _ => false,
        }
    };
    !partitions.is_empty() && partitions.iter().all(is_there)
}

/// The names in a directory that are numbers, which are partitions.
pub(crate) fn partitions_in(fs: &dyn FileSystem, dir: &Path) -> Result<BTreeSet<u32>, StorageError> {
    match fs.list(dir) {
        Ok(names) => Ok(names.iter().filter_map(|name| name.parse().ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(source) => Err(io_error("list", dir, source)),
    }
}

/// The error when none of the stores that the node has used exists.
pub(crate) fn root_is_gone(root: &Path, count: usize) -> StorageError {
    let what = format!(
        "the stores of {count} partitions were in this directory, and none of them is there: its file system may not be \
         mounted. Nothing was changed. Mount it, or put the directory back, or restore a backup. To begin with empty stores in \
         their place, run 'ombak start --accept-loss' once"
    );
    StorageError::Unusable { path: root.to_owned(), what }
}

/// Fails if a file has a format that this build does not read.
fn check_formats(fs: &dyn FileSystem, dir: &Path) -> Result<(), StorageError> {
    let names = match fs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io_error("list", dir, source)),
    };
    identity_is_damaged(fs, dir)?;
    index_must_have_seen::read_whole(fs, dir)?;
    LostNote::read(fs, dir)?;
    for name in names.iter().filter(|name| name.ends_with(COMMIT_SUFFIX)) {
        read_commit(fs, &dir.join(name))?;
    }
    for (id, is_unsynced) in names.iter().filter_map(|name| parse_name(name)) {
        let path = if is_unsynced { unsynced_path(dir, id) } else { data_path(dir, id) };
        let file = fs.open(&path, OpenMode::Read).map_err(|source| io_error("open", &path, source))?;
        let mut header = [0; FILE_HEADER_BYTES];
        let read = file.read_at(&mut header, 0, ReadMode::Blocking).map_err(|e| io_error("read", &path, e))?;
        if let Err(HeaderError::Version(version)) = FileHeader::decode(&header[..read]) {
            return Err(StorageError::other_format(&path, version));
        }
    }
    Ok(())
}

/// Fails if a tree cannot be opened, or is older than it must be.
fn check_tree(fs: &dyn FileSystem, root: &Path, partition: u32, comparison: &Comparison) -> Result<(), StorageError> {
    let dir = root.join(partition.to_string());
    let covered_seq = index_must_have_seen::read_whole(fs, &dir)?.unwrap_or(0);
    // If the loss of a whole store is accepted, the loss of its tree is, too.
    let is_gone = comparison.missing.iter().any(|item| item.kind == MissingKind::StoreGone);
    let promised = comparison.promised().filter(|_| !is_gone);
    let promised_seq = promised.map_or(0, |inventory| inventory.index_seq);
    check_only_copy(&ledger_dir(root, partition), &dir, covered_seq.max(promised_seq))
}
