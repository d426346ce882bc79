//! Access to the directories of the node: only the node's own user may enter them.
//!
//! Everything that the program creates is accessible to its own user only ([`keep_files_private`]).
//! A directory that already existed and is open to other users is closed if it clearly belongs to
//! the node: it was empty or already held this node, and its owner is the node's user. Any other
//! directory (a mount point with other files, a shared directory) stays as it is, and each start
//! warns about it.

use super::lock::LOCK_FILE;
use super::token;
use rustix::fs::Mode;
use std::fs::{Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The permission bits of group and others.
const OTHERS: u32 = 0o077;
/// The permission bit that is set on directories to which everybody may write, such as `/tmp`.
const STICKY: u32 = 0o1000;
/// The file that exists in the data directory of a node from its first start on.
const NODE_FILE: &str = "node.json";

/// Removes the permissions of group and others from every file and directory that this process
/// creates from now on.
pub fn keep_files_private() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// The warning for the operator if the data directory does not belong to the node's user.
pub fn foreign_owner(data_dir: &Path) -> Option<String> {
    let (owner, user) = (data_dir.metadata().ok()?.uid(), rustix::process::geteuid().as_raw());
    (owner != user).then(|| {
        format!(
            "{} belongs to the user {owner}, and this node runs as the user {user}: {owner} cannot read the files that it \
             makes, and cannot start the node later",
            data_dir.display()
        )
    })
}

/// A directory of the node, and whether the node may change its permissions.
struct Dir {
    path: PathBuf,
    is_own: bool,
}

/// The directories of a node, in the state before it opened its stores.
pub struct NodeDirs(Vec<Dir>);

impl NodeDirs {
    /// Examines the data directory, and the store directories outside of it.
    pub fn look<'a>(data_dir: &Path, data_roots: impl Iterator<Item = &'a Path>) -> Self {
        let inside = |root: &Path| root.starts_with(data_dir);
        let mut dirs = vec![Dir { path: data_dir.to_owned(), is_own: is_of_a_node(data_dir) }];
        let roots = data_roots.filter(|root| !inside(root));
        dirs.extend(roots.map(|root| Dir { path: root.to_owned(), is_own: names(root).is_ok_and(|n| n.is_empty()) }));
        Self(dirs)
    }

    /// Closes the directories that belong to the node and are open to others. Returns what it did,
    /// and which directories it left open.
    pub fn close_to_others(&self) -> Vec<String> {
        self.0.iter().filter_map(close).collect()
    }
}

fn close(dir: &Dir) -> Option<String> {
    let shown = dir.path.display();
    let meta = dir.path.metadata().ok()?;
    let mode = meta.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return None;
    }
    let open = format!("{shown} can be entered by other users of this machine (mode {mode:04o})");
    if !dir.is_own || !may_close(&meta) {
        return Some(format!("{open}, who can read what the node stores: run 'chmod 700 {shown}'"));
    }
    Some(match std::fs::set_permissions(&dir.path, Permissions::from_mode(mode & !OTHERS)) {
        Ok(()) => {
            format!("{shown} could be entered by other users of this machine (mode {mode:04o}): now it is closed")
        }
        Err(e) => format!("{open}, and cannot be closed ({e}): run 'chmod 700 {shown}'"),
    })
}

fn may_close(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & STICKY == 0
}

/// Whether the directory has held a node, or has nothing but the files that a refused start leaves.
fn is_of_a_node(data_dir: &Path) -> bool {
    let token = token::path(data_dir);
    let left = [Some(LOCK_FILE.as_ref()), token.file_name(), Some("log".as_ref())];
    names(data_dir).is_ok_and(|names| {
        names.iter().any(|name| name == NODE_FILE) || names.iter().all(|name| left.contains(&Some(name.as_os_str())))
    })
}

fn names(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    match std::fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| entry.map(|entry| entry.file_name())).collect(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(dir: &Path) -> u32 {
        dir.metadata().expect("there").mode() & 0o7777
    }

    fn made(parent: &Path, name: &str, mode: u32) -> PathBuf {
        let dir = parent.join(name);
        std::fs::create_dir(&dir).expect("create");
        std::fs::set_permissions(&dir, Permissions::from_mode(mode)).expect("chmod");
        dir
    }

    fn close(dir: &Path) -> Vec<String> {
        NodeDirs::look(dir, std::iter::empty()).close_to_others()
    }

    #[test]
    fn an_empty_directory_and_one_of_a_node_are_closed() {
        let home = tempfile::tempdir().expect("tempdir");
        let dir = made(home.path(), "data", 0o755);
        assert!(close(&dir)[0].contains("now it is closed"));
        assert_eq!(mode(&dir), 0o700);
        assert!(close(&dir).is_empty());
        for name in [LOCK_FILE, "other", NODE_FILE] {
            std::fs::write(dir.join(name), "").expect("write");
        }
        std::fs::set_permissions(&dir, Permissions::from_mode(0o2775)).expect("chmod");
        assert_eq!(close(&dir).len(), 1);
        assert_eq!(mode(&dir), 0o2700);
    }

    #[test]
    fn a_directory_with_other_things_in_it_is_left_alone_with_a_warning() {
        let home = tempfile::tempdir().expect("tempdir");
        let (dir, shared) = (made(home.path(), "srv", 0o755), made(home.path(), "tmp", 0o1777));
        std::fs::write(dir.join("website"), "").expect("write");
        for dir in [&dir, &shared] {
            let before = mode(dir);
            assert!(close(dir)[0].contains("run 'chmod 700"));
            assert_eq!(mode(dir), before);
        }
    }

    #[test]
    fn directories_of_stores_are_looked_at_where_they_lie_elsewhere() {
        let home = tempfile::tempdir().expect("tempdir");
        let data = made(home.path(), "data", 0o700);
        let (inside, empty, full) =
            (made(&data, "bitcask", 0o755), made(home.path(), "empty", 0o755), made(home.path(), "full", 0o755));
        std::fs::create_dir(full.join("0")).expect("create");
        let roots = [&inside, &empty, &full, &home.path().join("missing")];
        let said = NodeDirs::look(&data, roots.iter().map(|root| root.as_path())).close_to_others();
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!((mode(&inside), mode(&empty), mode(&full)), (0o755, 0o700, 0o755));
    }
}
