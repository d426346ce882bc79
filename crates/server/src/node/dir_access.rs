//! Who may look into the node's directories: its own user, nobody else.
//!
//! What the program creates is for its own user alone ([`keep_files_private`]). A directory that was there before and
//! is open to others is closed when it clearly belongs to the node: it was empty, or has had this node in it, and
//! belongs to the node's user. Any other one (a mount point with other things in it, a shared directory) is left as it
//! is, and each start warns of it.

use super::lock::LOCK_FILE;
use super::token;
use rustix::fs::Mode;
use std::fs::{Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What group and others may do.
const OTHERS: u32 = 0o077;
/// Set on directories that everybody may write to.
const STICKY: u32 = 0o1000;
/// The file that a node's data directory has from its first start on.
const NODE_FILE: &str = "node.json";

/// Takes the access of group and others from every file and directory that this process creates from now on.
pub fn keep_files_private() {
    rustix::process::umask(Mode::from_raw_mode(OTHERS));
}

/// What to tell the operator when the data directory belongs to somebody else than the node's user.
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

/// A directory of the node, and whether it is the node's to close.
struct Dir {
    path: PathBuf,
    is_own: bool,
}

/// The directories of a node, as they were before it opened its stores.
pub struct NodeDirs(Vec<Dir>);

impl NodeDirs {
    /// Looks at the data directory and at those of its stores that lie elsewhere.
    pub fn look<'a>(data_dir: &Path, data_roots: impl Iterator<Item = &'a Path>) -> Self {
        let inside = |root: &Path| root.starts_with(data_dir);
        let mut dirs = vec![Dir { path: data_dir.to_owned(), is_own: is_of_a_node(data_dir) }];
        let roots = data_roots.filter(|root| !inside(root));
        dirs.extend(roots.map(|root| Dir { path: root.to_owned(), is_own: names(root).is_ok_and(|n| n.is_empty()) }));
        Self(dirs)
    }

    /// Closes those that are the node's and open to others, and says what it did and what it left.
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

/// Whether the directory has had a node in it, or nothing but what a refused start leaves.
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
