//! The root directory of a node's stores of one kind, with one directory for each partition.

use crate::error::{StorageError, io_error};
use crate::fs::FileSystem;
use std::io;
use std::path::Path;

/// The suffix of a dropped partition's directory until its files are gone.
pub(crate) const DROPPED_SUFFIX: &str = ".dropped";

/// Creates the root, and makes its name and the names of parents created with it survive a loss of
/// power.
pub(crate) fn create_root(fs: &dyn FileSystem, root: &Path) -> Result<(), StorageError> {
    let missing = root.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && fs.list(dir).is_err()).count();
    fs.create_dir_all(root).map_err(|source| io_error("create", root, source))?;
    // The name of an existing root is synced again, because the start that created it may have been
    // killed before its sync.
    for dir in root.ancestors().skip(1).take(missing.max(1)) {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        match fs.sync_dir(dir) {
            // This process cannot have created a parent that it may not read.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(io_error("fsync", dir, error)),
            _ => {}
        }
    }
    Ok(())
}

/// Finishes the drops that a crash interrupted (see `drop_partition`).
pub(super) fn remove_dropped(
    fs: &dyn FileSystem,
    root: &Path,
    forget_index: &dyn Fn(u32) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let names = fs.list(root).map_err(|source| io_error("list", root, source))?;
    for partition in names.iter().filter_map(|name| name.strip_suffix(DROPPED_SUFFIX)?.parse().ok()) {
        finish_drop(fs, root, partition, forget_index)?;
    }
    Ok(())
}

/// Removes the rest of a dropped partition. The index goes first, because only the renamed
/// directory says that it must go.
pub(super) fn finish_drop(
    fs: &dyn FileSystem,
    root: &Path,
    partition: u32,
    forget_index: &dyn Fn(u32) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let aside = root.join(format!("{partition}{DROPPED_SUFFIX}"));
    match fs.list(&aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(io_error("list", &aside, source)),
        Ok(_) => {}
    }
    forget_index(partition)?;
    remove_store_dir(fs, &aside)
}

/// Removes a directory and the files in it.
pub(super) fn remove_store_dir(fs: &dyn FileSystem, dir: &Path) -> Result<(), StorageError> {
    for name in fs.list(dir).map_err(|source| io_error("list", dir, source))? {
        let path = dir.join(name);
        fs.remove_file(&path).map_err(|source| io_error("remove", &path, source))?;
    }
    fs.remove_dir(dir).map_err(|source| io_error("remove", dir, source))
}
