//! Where a node keeps its own copies of the inventories of its stores.
//!
//! The copies lie below `inventory` in the data directory, in one directory for each root of
//! stores. A start therefore notices if a root is missing because its file system is not mounted.
//!
//! A root inside the data directory is known by its relative path, so that a data directory can be
//! moved as a whole. Paths are used as configured: symbolic links are not followed, because the
//! file system that they lead to may not be mounted.

use ombak_storage::fs::{FileSystem, RealFs};
use ombak_storage::{InventoryConfig, has_moved_to, promises_anything};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

const DIR: &str = "inventory";
/// The directory for roots that lie inside the data directory.
const INSIDE: &str = "inside";
/// The directory for all other roots.
const OUTSIDE: &str = "outside";
/// The last path component of each inventory. No root has this name, so the inventory of a root and
/// that of another root inside it stay apart.
const LAST: &str = ".partitions";

/// The inventories of one node.
#[derive(Clone, Debug)]
pub struct Inventories {
    data_dir: PathBuf,
    accepts_loss: bool,
}

impl Inventories {
    /// The inventories of the node in `data_dir`. `accepts_loss`: the operator has agreed to start
    /// the node without the files that are missing.
    pub fn new(data_dir: &Path, accepts_loss: bool) -> Self {
        Self { data_dir: data_dir.to_owned(), accepts_loss }
    }

    /// Whether the operator has agreed to start the node without the files that are missing.
    pub fn accepts_loss(&self) -> bool {
        self.accepts_loss
    }

    /// The inventory configuration for the stores of one root.
    pub fn of(&self, root: &Path) -> InventoryConfig {
        InventoryConfig { node_dir: Some(self.node_dir(root)), accepts_loss: self.accepts_loss }
    }

    /// Whether the node's inventory lists anything for a root, whether or not the files still
    /// exist.
    pub fn promise_anything(&self, root: &Path) -> bool {
        promises_anything(&RealFs, &self.node_dir(root))
    }

    /// Whether all stores of a root that the node knows were moved to another directory.
    pub fn have_moved(&self, root: &Path, to: &Path) -> bool {
        has_moved_to(&RealFs, &self.node_dir(root), to)
    }

    /// Durably removes the node's inventory of a root, because its stores are not needed any more
    /// or other stores replace them. The error is one line for the operator.
    pub fn forget(&self, root: &Path) -> Result<(), String> {
        let dir = self.node_dir(root);
        let removed = match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed,
        };
        let parent = dir.parent().unwrap_or(&dir);
        removed
            .and_then(|()| RealFs.sync_dir(parent))
            .map_err(|error| format!("cannot remove {}: {error}", dir.display()))
    }

    fn node_dir(&self, root: &Path) -> PathBuf {
        let (data_dir, root) = (plain(&self.data_dir), plain(root));
        let (kind, place) = match root.strip_prefix(&data_dir) {
            Ok(place) => (INSIDE, place),
            Err(_) => (OUTSIDE, root.strip_prefix("/").unwrap_or(&root)),
        };
        self.data_dir.join(DIR).join(kind).join(place).join(LAST)
    }
}

/// The absolute path without `.` and `..`. The file system is not consulted.
fn plain(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut plain = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_root_has_its_place() {
        let inventories = Inventories::new(Path::new("/srv/data"), false);
        let place = |root: &str| inventories.of(Path::new(root)).node_dir.expect("always").display().to_string();
        assert_eq!(place("/srv/data/bitcask"), "/srv/data/inventory/inside/bitcask/.partitions");
        assert_eq!(place("/srv/data/./x/../bitcask/"), "/srv/data/inventory/inside/bitcask/.partitions");
        assert_eq!(place("/mnt/1/17"), "/srv/data/inventory/outside/mnt/1/17/.partitions");
        assert_eq!(place("/mnt/1"), "/srv/data/inventory/outside/mnt/1/.partitions");
    }

    #[test]
    fn what_is_forgotten_is_gone_and_nothing_is_no_error() {
        let dir = tempfile::tempdir().expect("tempdir");
        let inventories = Inventories::new(dir.path(), false);
        let root = dir.path().join("bitcask");
        inventories.forget(&root).expect("nothing to do");
        let node_dir = inventories.of(&root).node_dir.expect("always");
        fs::create_dir_all(&node_dir).expect("made");
        fs::write(node_dir.join("5"), "something").expect("written");
        assert!(inventories.promise_anything(&root), "what cannot be read may have promised something");
        inventories.forget(&root).expect("removed");
        assert!(!node_dir.exists() && !inventories.promise_anything(&root));
    }
}
