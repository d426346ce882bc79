//! The disk space that a directory takes.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The unit of `st_blocks` in POSIX.
const BLOCK_BYTES: u64 = 512;

/// The disk space of all files below `dir`. Symbolic links are not followed. Files that disappear
/// during the walk (because of a merge) are not counted.
pub(super) fn used_bytes(dir: &Path) -> io::Result<u64> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    let mut bytes = 0;
    let mut to_read = vec![fs::read_dir(dir).map_err(named)?];
    while let Some(entries) = to_read.pop() {
        for entry in entries {
            let Some(metadata) = unless_gone(entry.and_then(|entry| Ok((entry.metadata()?, entry.path()))))? else {
                continue;
            };
            let (metadata, path) = metadata;
            bytes += metadata.blocks() * BLOCK_BYTES;
            if metadata.is_dir() {
                to_read.extend(unless_gone(fs::read_dir(path))?);
            }
        }
    }
    Ok(bytes)
}

fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
