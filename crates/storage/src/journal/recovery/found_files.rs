//! The files that a start finds in the directory of a store.

use super::load_file::header_bytes;
use super::losses::Losses;
use super::orphans::hint_id;
use crate::error::{StorageError, io_error};
use crate::fs::{FileSystem, OpenMode};
use crate::journal::checkpoint::FileState;
use crate::journal::data_file::{data_path, hint_path, unsynced_path};
use crate::journal::feed;
use crate::journal::format::FileHeader;
use crate::journal::index_must_have_seen;
use crate::journal::inventory_keeper::InventoryKeeper;
use crate::journal::merge::{COMMIT_SUFFIX, finish_commit};
use crate::journal::shared::Shared;
use std::io;
use std::path::Path;

/// The id in a data file's name, and whether the name is that of a file that was never synced.
pub(crate) fn parse_name(name: &str) -> Option<(u32, bool)> {
    let (id, is_unsynced) = match name.strip_suffix(".data") {
        Some(id) => (id, false),
        None => (name.strip_suffix(".fresh")?, true),
    };
    let id = id.parse().ok().filter(|id| *id < u32::MAX)?;
    Some((id, is_unsynced))
}

/// The data files of a store, and what else its directory says about its journal.
pub(crate) struct FoundFiles<'a> {
    shared: &'a Shared,
    dir: &'a Path,
    inventory: &'a InventoryKeeper,
    /// The ids of the data files in order, and whether a file has the name of an unsynced one.
    pub(super) data_files: Vec<(u32, bool)>,
    /// The ids of hint files.
    pub(super) hints: Vec<u32>,
    /// The ids of outputs of a merge that was not finished.
    unfinished_outputs: Vec<u32>,
    /// Whether the store has had a consumer of its change feed.
    pub(super) has_feed_file: bool,
}

/// Removes the hint files of outputs of a merge that was not finished. The inputs of the merge are
/// still there, so these hint files are no evidence of a loss. They go before the outputs do:
/// without its output, such a hint file would look like evidence at the next start.
fn remove_hints_of_outputs(
    fs: &dyn FileSystem,
    dir: &Path,
    outputs: &[u32],
    names: &[String],
) -> Result<(), StorageError> {
    let mut has_removed = false;
    for id in names.iter().filter_map(|name| hint_id(name)).filter(|id| outputs.contains(id)) {
        let path = hint_path(dir, id);
        fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
        has_removed = true;
    }
    if !has_removed {
        return Ok(());
    }
    fs.sync_dir(dir).map_err(|source| io_error("fsync", dir, source))
}

impl<'a> FoundFiles<'a> {
    /// The files of a store without a directory.
    pub(super) fn none(shared: &'a Shared, dir: &'a Path, inventory: &'a InventoryKeeper) -> Self {
        let (data_files, hints, unfinished_outputs) = (Vec::new(), Vec::new(), Vec::new());
        Self { shared, dir, inventory, data_files, hints, unfinished_outputs, has_feed_file: false }
    }

    /// Lists the directory, finishes the merges that were committed, and removes the outputs of
    /// those that were not. None if there is no directory.
    pub(super) fn read(
        shared: &'a Shared,
        dir: &'a Path,
        inventory: &'a InventoryKeeper,
        losses: &mut Losses<'_>,
    ) -> Result<Option<Self>, StorageError> {
        let fs = &*shared.fs;
        let names = match fs.list(dir) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(io_error("list", dir, source)),
        };
        losses.count_recorded()?;
        for name in names.iter().filter(|name| name.ends_with(COMMIT_SUFFIX)) {
            if !finish_commit(fs, dir, name)? {
                losses.note_lost(1)?;
                let path = dir.join(name);
                fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
            }
        }
        let unfinished_outputs: Vec<u32> =
            names.iter().filter_map(|name| name.strip_suffix(".merging")?.parse().ok()).collect();
        remove_hints_of_outputs(fs, dir, &unfinished_outputs, &names)?;
        for name in names.iter().filter(|name| name.ends_with(".merging") || name.ends_with(".tmp")) {
            let path = dir.join(name);
            fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
        }
        let names = fs.list(dir).map_err(|source| io_error("list", dir, source))?;
        let mut data_files: Vec<(u32, bool)> = names.iter().filter_map(|name| parse_name(name)).collect();
        data_files.sort_unstable();
        let hints = names.iter().filter_map(|name| hint_id(name)).collect();
        let has_feed_file = names.iter().any(|name| name == feed::NAME);
        Ok(Some(Self { shared, dir, inventory, data_files, hints, unfinished_outputs, has_feed_file }))
    }

    /// The directory of the store.
    pub(crate) fn dir(&self) -> &Path {
        self.dir
    }

    /// Whether a file was an output of a merge that was not finished. Its inputs are still there.
    pub(crate) fn is_unfinished_output(&self, id: u32) -> bool {
        self.unfinished_outputs.contains(&id)
    }

    /// Whether a data file is known to be lost, or to have lost its end.
    pub(crate) fn is_known_lost(&self, id: u32) -> bool {
        self.inventory.is_lost(id)
    }

    /// The append up to which the journal's note says that the index must have seen it; 0: none.
    pub(crate) fn index_must_have_seen(&self) -> Result<u64, StorageError> {
        index_must_have_seen::read(&*self.shared.fs, self.dir)
    }

    /// The append up to which the inventory promises that the index has seen the journal; 0: none.
    pub(crate) fn promised_index_seq(&self) -> u64 {
        self.inventory.promised().index_seq
    }

    /// Whether a file has everything that the index has seen of it.
    pub(crate) fn has_file(&self, id: u32, state: &FileState) -> Result<bool, StorageError> {
        let Some((_, is_unsynced)) = self.data_files.iter().find(|(other, _)| *other == id) else { return Ok(false) };
        let path = if *is_unsynced { unsynced_path(self.dir, id) } else { data_path(self.dir, id) };
        let failed = |source: io::Error| io_error("read", &path, source);
        let handle = self.shared.fs.open(&path, OpenMode::Read).map_err(failed)?;
        let length = handle.length().map_err(failed)?;
        let header = header_bytes(&*handle, length).map_err(failed)?;
        // An unreadable header is reported when the file is loaded.
        let is_same = FileHeader::decode(&header).map_or(true, |header| header.salt == state.salt);
        Ok(is_same && length >= state.length)
    }
}
