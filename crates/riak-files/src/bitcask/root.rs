//! The data root of a node: one directory for each partition.

use super::SourceError;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the file with the identity of an Ombak store.
const OMBAK_IDENTITY_FILE: &str = "identity";

/// The partition directories below a data root in the order of their indexes. Their names are an
/// index, or an index and a time stamp (`<index>-<seconds>`). If the root itself has data files, it
/// is the only partition directory.
pub fn partition_dirs(root: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let mut dirs = Vec::new();
    let mut is_partition = false;
    for (name, path) in entries(root)? {
        is_partition |= name.ends_with(".bitcask.data");
        if let Some(order) = partition_name(&name).filter(|_| path.is_dir()) {
            dirs.push((order, path));
        }
    }
    if let Some(store) =
        std::iter::once(root).chain(dirs.iter().map(|(_, path)| path.as_path())).find(|dir| is_ombak_store(dir))
    {
        let what = format!(
            "this is no directory of Riak's bitcask but one of Ombak ({} is a store of its own); use 'ombak admin backup' and \
             'ombak restore' for its data, or 'ombak admin backend convert'",
            store.display()
        );
        return Err(SourceError::NoBitcask { path: root.to_owned(), what });
    }
    if is_partition {
        return Ok(vec![root.to_owned()]);
    }
    if dirs.is_empty() {
        return Err(SourceError::NoBitcask { path: root.to_owned(), what: no_partitions(root)? });
    }
    dirs.sort();
    Ok(dirs.into_iter().map(|(_, path)| path).collect())
}

/// Whether a directory is a store of Ombak. Riak's bitcask has no file of this name.
fn is_ombak_store(dir: &Path) -> bool {
    dir.join(OMBAK_IDENTITY_FILE).is_file()
}

fn entries(dir: &Path) -> Result<Vec<(String, PathBuf)>, SourceError> {
    let io = |source| SourceError::Io { path: dir.to_owned(), source };
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        if let Ok(name) = entry.file_name().into_string() {
            out.push((name, entry.path()));
        }
    }
    Ok(out)
}

/// Parses a directory name into a form that sorts in numeric order. An index has up to 49 digits.
fn partition_name(name: &str) -> Option<(usize, String, u64)> {
    let (index, stamp) = match name.split_once('-') {
        Some((index, stamp)) => (index, stamp.parse().ok()?),
        None => (name, 0),
    };
    let is_index = !index.is_empty() && index.len() <= 49 && index.bytes().all(|b| b.is_ascii_digit());
    is_index.then(|| (index.len(), index.to_owned(), stamp))
}

fn no_partitions(root: &Path) -> Result<String, SourceError> {
    let nested = entries(root)?.into_iter().filter(|(_, path)| path.is_dir()).find(|(_, path)| {
        entries(path)
            .is_ok_and(|inner| inner.iter().any(|(name, path)| partition_name(name).is_some() && path.is_dir()))
    });
    Ok(match nested {
        Some((_, path)) => format!("has no partition directories, but {} has: name that one", path.display()),
        None => "has no partition directories (named by 48 or so digits) and no *.bitcask.data files: name bitcask's \
                 data root, /var/lib/riak/bitcask for instance"
            .into(),
    })
}
