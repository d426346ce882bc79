//! The directory that holds the backups of one node: the last complete backup and, while a new
//! backup runs, the files that the new backup has written.
//!
//! ```text
//! DIR/owner.json      whose backups these are; written first, so that the files of an interrupted
//!                     backup are known to be such
//! DIR/manifest.json   where the files of the last complete backup are; written last
//! DIR/N/…             the files that the backup with number N wrote
//! ```
//!
//! Invariant: the files that the manifest lists are neither changed nor removed.

use crate::error::{BackupError, io_error, unusable};
use crate::manifest::Manifest;
use ombak_kv::Kv;
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

const OWNER: &str = "owner.json";
/// The temporary file of an owner file that was not written completely.
const OWNER_NEW: &str = "owner.json.new";
/// The version of the owner file.
const OWNER_FORMAT: u32 = 1;
const OWNER_BYTES_MAX: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Owner {
    format: u32,
    node_id: NodeId,
    node_name: String,
}

/// A directory for backups.
pub(crate) struct BackupDirectory<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    /// The complete backup in the directory.
    pub(crate) earlier: Option<Manifest>,
    /// The number of the next backup.
    pub(crate) generation: u64,
    /// Whether this backup created the owner file.
    is_new: bool,
}

impl<'a> BackupDirectory<'a> {
    /// Opens an existing directory, which is empty or has backups of this node. Removes the files
    /// of an interrupted backup.
    pub(crate) fn open(fs: &'a dyn FileSystem, dir: &'a Path, kv: &Kv) -> Result<Self, BackupError> {
        let names = fs.list(dir).map_err(io_error("read", dir))?;
        let is_new = !names.iter().any(|name| name == OWNER);
        if !is_new {
            check_owner(fs, dir, kv)?;
        } else {
            if let Some(first) = names.iter().filter(|name| *name != OWNER_NEW).min() {
                let what = "name a new directory, or one that has a backup of this node";
                return Err(unusable(dir, format!("is not empty and has no backup: there is {first}; {what}")));
            }
            write_owner(fs, dir, kv)?;
        }
        let mut home = Self { fs, dir, earlier: Manifest::find(fs, dir)?, generation: 1, is_new };
        home.remove_others(home.earlier.as_ref())?;
        let listed = home.generations()?.into_iter().map(|(generation, _)| generation);
        home.generation = listed.max().unwrap_or(0).saturating_add(1);
        Ok(home)
    }

    /// The directory in which the new backup puts its files.
    pub(crate) fn new_dir(&self) -> PathBuf {
        self.dir.join(self.generation.to_string())
    }

    /// Removes the files of a backup that failed. An earlier backup stays unchanged.
    pub(crate) fn discard_new(&self) -> Result<(), BackupError> {
        let stored = |manifest: Option<&Manifest>| manifest.map(Manifest::stored);
        if stored(Manifest::find(self.fs, self.dir)?.as_ref()) != stored(self.earlier.as_ref()) {
            // The new manifest is in place and only its sync failed. After a power loss either
            // backup may be the last one, so the files of both stay.
            return Ok(());
        }
        self.remove_others(self.earlier.as_ref())?;
        if self.is_new {
            let path = self.dir.join(OWNER);
            self.fs.remove_file(&path).map_err(io_error("remove", &path))?;
        }
        Ok(())
    }

    /// Removes all files that the complete backup does not list.
    pub(crate) fn remove_others(&self, whole: Option<&Manifest>) -> Result<(), BackupError> {
        let kept = whole.map(Manifest::stored).unwrap_or_default();
        for (_, name) in self.generations()? {
            self.remove_from(PathBuf::from(name), &kept)?;
        }
        Ok(())
    }

    /// Removes all files in a directory under this one, except those in `kept`, and then the empty
    /// directories.
    fn remove_from(&self, dir: PathBuf, kept: &BTreeSet<PathBuf>) -> Result<(), BackupError> {
        let mut dirs = vec![dir];
        let mut next = 0;
        while let Some(dir) = dirs.get(next).cloned() {
            next += 1;
            let path = self.dir.join(&dir);
            for name in self.fs.list(&path).map_err(io_error("read", &path))? {
                let (child, path) = (dir.join(&name), path.join(&name));
                if kept.contains(&child) {
                    continue;
                }
                // `remove_file` removes a symbolic link and does not follow it.
                match self.fs.remove_file(&path) {
                    Err(error) if error.kind() == io::ErrorKind::IsADirectory => dirs.push(child),
                    removed => removed.map_err(io_error("remove", &path))?,
                }
            }
        }
        // Inner directories are removed before the directories that contain them.
        for dir in dirs.iter().rev() {
            let path = self.dir.join(dir);
            match self.fs.remove_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                    return Err(io_error("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The numbers of the backups that put files here, with the names of their directories.
    fn generations(&self) -> Result<Vec<(u64, String)>, BackupError> {
        let names = self.fs.list(self.dir).map_err(io_error("read", self.dir))?;
        Ok(names.into_iter().filter_map(|name| Some((name.parse().ok()?, name))).collect())
    }
}

fn check_owner(fs: &dyn FileSystem, dir: &Path, kv: &Kv) -> Result<(), BackupError> {
    let path = dir.join(OWNER);
    let text = read_file(fs, &path, OWNER_BYTES_MAX).map_err(io_error("read", &path))?;
    let owner: Owner = serde_json::from_slice(&text)
        .map_err(|e| unusable(&path, format!("is damaged ({e}): name a new directory")))?;
    if owner.format != OWNER_FORMAT {
        let what = format!("has format {}, and this version of ombak reads format {OWNER_FORMAT}", owner.format);
        return Err(unusable(&path, what));
    }
    if owner.node_id != kv.identity().node_id {
        let what = format!("has backups of another node, {}: name another directory", owner.node_name);
        return Err(unusable(dir, what));
    }
    Ok(())
}

fn write_owner(fs: &dyn FileSystem, dir: &Path, kv: &Kv) -> Result<(), BackupError> {
    let path = dir.join(OWNER);
    let (node_id, node_name) = (kv.identity().node_id, kv.node_name().to_owned());
    let text = serde_json::to_vec(&Owner { format: OWNER_FORMAT, node_id, node_name });
    let text = text.map_err(io::Error::from).map_err(io_error("write", &path))?;
    replace_file(fs, &path, &text).map_err(io_error("write", &path))
}
