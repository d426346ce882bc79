//! Opening a ledger, whatever state it is in.
//!
//! If the journal has everything that a ledger has, the ledger is rebuilt when it is damaged or
//! does not match the journal. If a ledger has the only copy of its content, the start fails
//! instead, so that the operator can save the readable rest.

use super::index::{CHECKPOINT, NOTES, ORDERED_UP_TO};
use super::keys::note;
use super::tree::{Tree, TreeDamage, TreeFiles, TreeShared};
use crate::error::{StorageError, io_error};
use crate::journal::{Checkpoint, is_checkpoint, le_at};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Opens a ledger. With `has_only_copy_of_values`, the journal does not have the ledger's content.
pub(super) fn open_usable(dir: &Path, trees: &TreeShared, has_only_copy_of_values: bool) -> Result<Tree, StorageError> {
    // If it is the only copy, damage to a part of it is an error only for the readers of that part.
    if Tree::was_damaged(dir) && !has_only_copy_of_values {
        tracing::error!(dir = %dir.display(), "damage was found in this ledger when it was read");
        return begin_anew(dir, trees);
    }
    match open_whole(dir, trees) {
        Err(StorageError::Damaged { file, what, .. }) if has_only_copy_of_values => Err(fatal_damage(dir, &file, what)),
        Err(StorageError::MediaError { file, source, .. }) if has_only_copy_of_values => {
            Err(fatal_damage(dir, &file, &source.to_string()))
        }
        Err(error) if error.is_unreadable_version() => {
            tracing::error!(dir = %dir.display(), %error, "the ledger cannot be used");
            begin_anew(dir, trees)
        }
        opened => opened,
    }
}

/// Opens a tree that is either empty or has a checkpoint. Everything that a start needs from it can
/// be read.
fn open_whole(dir: &Path, trees: &TreeShared) -> Result<Tree, StorageError> {
    let tree = Tree::open(dir, trees)?;
    NOTES.iter().try_for_each(|name| tree.get(&note(name)).map(drop))?;
    let whole = match tree.get(&note(CHECKPOINT))? {
        Some(checkpoint) => is_checkpoint(&checkpoint),
        None => tree.disk_bytes() == 0,
    };
    if whole { Ok(tree) } else { Err(tree.damaged("its checkpoint cannot be read")) }
}

/// The error for a damaged ledger that is the only copy of its values.
fn fatal_damage(dir: &Path, file: &Path, what: &str) -> StorageError {
    let what = format!(
        "the tree with the values of this partition is damaged ({}: {what}); 'ombak admin backend verify' says how much, and \
         with --repair keeps everything that can be read",
        file.display()
    );
    StorageError::Unusable { path: dir.to_owned(), what }
}

/// Whether a tree that is the only copy of its values can be opened, and has seen the journal of
/// the store in `store_dir` up to `seq_min`. Changes nothing.
pub(crate) fn check_only_copy(dir: &Path, store_dir: &Path, seq_min: u64) -> Result<(), StorageError> {
    let failed = |source| io_error("read", dir, source);
    let damaged = |TreeDamage { file, what, .. }: TreeDamage| fatal_damage(dir, &file, what);
    let seen_seq = match TreeFiles::read(dir).map_err(failed)?.map_err(damaged)? {
        None => 0,
        Some(files) => {
            files.check_contents().map_err(failed)?.map_err(damaged)?;
            let checkpoint = files.get(&note(CHECKPOINT)).and_then(|bytes| Checkpoint::decode(&bytes));
            checkpoint.map_or(0, |checkpoint| checkpoint.seq)
        }
    };
    if seen_seq < seq_min { Err(tree_is_behind(store_dir, seen_seq, seq_min)) } else { Ok(()) }
}

/// The suffixes of the directories of trees: ledgers, and orders of bitcask.
const TREE_SUFFIXES: [&str; 2] = [".ledger", ".order"];

/// The highest `seq` that a tree of a partition has noted; 0 if there is none, or it cannot be
/// read.
pub(crate) fn seen_seq(root: &Path, partition: &str) -> Result<u64, StorageError> {
    let mut seen = 0;
    for suffix in TREE_SUFFIXES {
        let dir = root.join(format!("{partition}{suffix}"));
        let files = TreeFiles::read(&dir).map_err(|source| io_error("read", &dir, source))?;
        let Ok(Some(files)) = files else { continue };
        let checkpoint = files.get(&note(CHECKPOINT)).and_then(|bytes| Checkpoint::decode(&bytes));
        let ordered = files.get(&note(ORDERED_UP_TO)).filter(|bytes| bytes.len() == 8);
        let ordered = ordered.map_or(0, |bytes| le_at!(u64, bytes, 0));
        seen = ordered.max(checkpoint.map_or(seen, |checkpoint| checkpoint.seq)).max(seen);
    }
    Ok(seen)
}

/// The partitions that have a tree in a root. Trees are always on the real file system.
pub(crate) fn partitions_with_trees(root: &Path) -> BTreeSet<u32> {
    let names = fs::read_dir(root).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let partition = |name: String| TREE_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)?.parse().ok());
    names.filter_map(partition).collect()
}

/// The error for a tree that lacks versions which were removed from the journal.
pub(crate) fn tree_is_behind(dir: &Path, seen_seq: u64, covered_seq: u64) -> StorageError {
    let what = format!(
        "the tree of this partition has seen its journal up to {seen_seq}, but what came before {covered_seq} was removed \
         because the tree had it: put back the newest copy of the tree that you have, or go on with what is there after \
         'ombak admin backend verify --repair'"
    );
    StorageError::Unusable { path: dir.to_owned(), what }
}

/// Replaces an unusable ledger by an empty one.
pub(super) fn begin_anew(dir: &Path, trees: &TreeShared) -> Result<Tree, StorageError> {
    tracing::error!(dir = %dir.display(), "the ledger is made anew from the journal");
    remove_dir(dir)?;
    Tree::open(dir, trees)
}

/// Removes a directory with everything in it. On the real file system, because the library has its
/// files there.
pub(crate) fn remove_dir(dir: &Path) -> Result<(), StorageError> {
    match fs::remove_dir_all(dir) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(io_error("remove", dir, source)),
        _ => Ok(()),
    }
}
