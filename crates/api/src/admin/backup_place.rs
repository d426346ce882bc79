//! Where a node may write backups: below one directory, and never among its own data.
//!
//! A path is checked as the operating system would walk it: symbolic links and `..` are resolved
//! first. Then each directory is opened from the one above it without following links, and the
//! backup works through the open directory. A link that is put in place between the check and the
//! use therefore has no effect.

use super::AdminError;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fsync, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

/// The key that names the directory, for messages.
const KEY: &str = "platform_backup_dir";
/// The file in every directory that has backups.
const OWNER: &str = "owner.json";
/// The permissions of new directories. They are private, because a backup has all data of the node.
const DIR_MODE: u32 = 0o700;

/// The directories to which backups may be written.
#[derive(Clone, Debug)]
pub struct BackupPlace {
    /// The directory below which all backups lie. It need not exist yet.
    pub root: PathBuf,
    /// The node's own directories: its data directory first, then those of its stores.
    pub node_dirs: Vec<PathBuf>,
}

/// A directory that is held open.
#[derive(Debug)]
pub(super) struct OpenDir {
    /// The path without symbolic links.
    pub(super) shown: PathBuf,
    handle: OwnedFd,
    /// The directories that were created for it: the parent and the name of each, the outermost
    /// first.
    made: Vec<(OwnedFd, OsString)>,
}

impl OpenDir {
    /// A path that leads to this very directory, even if it is renamed.
    pub(super) fn path(&self) -> PathBuf {
        let path = PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()));
        // Without /proc, only the original path is left.
        if path.is_dir() { path } else { self.shown.clone() }
    }

    /// Removes the created directories that are empty, because a failed backup does not need them.
    pub(super) fn remove_what_was_made(&self) {
        for (parent, name) in self.made.iter().rev() {
            // A directory that is not empty stays, and so do its parents.
            let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

impl OpenDir {
    /// Enters a directory inside this one. A symbolic link is not followed.
    fn enter(&mut self, name: &OsStr, may_create: bool) -> Result<(), Errno> {
        let is_missing = || matches!(statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT));
        let makes = may_create && is_missing();
        if makes {
            match mkdirat(&self.handle, name, Mode::from_raw_mode(DIR_MODE)) {
                Ok(()) => fsync(&self.handle)?,
                // Another process has created the directory in the meantime.
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e),
            }
        }
        let inner = open_dir(&self.handle, name)?;
        let outer = std::mem::replace(&mut self.handle, inner);
        if makes {
            self.made.push((outer, name.to_owned()));
        }
        Ok(())
    }
}

impl BackupPlace {
    /// Opens the directory of a new backup. Missing directories of its path are created. A relative
    /// path is relative to the root.
    pub(super) fn create(&self, wanted: &Path) -> Result<OpenDir, AdminError> {
        let (root, below) = self.check_path(wanted)?;
        let refused = |e: io::Error| {
            AdminError::Refused(format!(
                "cannot create {}: {e}; {KEY} says where backups go",
                root.join(&below).display()
            ))
        };
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(&root).map_err(refused)?;
        self.open(&root, &below, true)
    }

    /// Opens the directory of an earlier backup.
    pub(super) fn find(&self, wanted: &Path) -> Result<OpenDir, AdminError> {
        let (root, below) = self.check_path(wanted)?;
        self.open(&root, &below, false)
    }

    /// Checks a path. Returns the root, and the path of the backup below it, both without symbolic
    /// links.
    fn check_path(&self, wanted: &Path) -> Result<(PathBuf, PathBuf), AdminError> {
        let refused = |path: &Path, what: &str| AdminError::Refused(format!("{}: {what}", path.display()));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |e: io::Error| AdminError::Refused(format!("{}: {e}", path.display()))
        };
        let root = resolve(&self.root).map_err(failed(&self.root))?;
        let place = resolve(&root.join(wanted)).map_err(failed(wanted))?;
        for (n, dir) in self.node_dirs.iter().enumerate() {
            if place.starts_with(resolve(dir).map_err(failed(dir))?) {
                let what = if n == 0 {
                    "lies in the node's own data directory: name one elsewhere".to_owned()
                } else {
                    format!("lies in {}, where the node has its objects: name one elsewhere", dir.display())
                };
                return Err(refused(wanted, &what));
            }
        }
        let below = match place.strip_prefix(&root) {
            Ok(below) if below != Path::new("") => below.to_owned(),
            _ => {
                let what = format!("backups go below {} ({KEY}): name a directory there", root.display());
                return Err(refused(wanted, &what));
            }
        };
        let around = place.ancestors().skip(1).take_while(|dir| dir.starts_with(&root));
        if let Some(other) = around.into_iter().find(|dir| dir.join(OWNER).exists()) {
            // The next backup to the outer directory would remove everything in it that is not its
            // own.
            let what = format!("lies in {}, which has backups itself: name one beside it", other.display());
            return Err(refused(wanted, &what));
        }
        Ok((root, below))
    }

    fn open(&self, root: &Path, below: &Path, may_create: bool) -> Result<OpenDir, AdminError> {
        let handle = open_dir(CWD, root).map_err(|e| refusal(root, e))?;
        let mut dir = OpenDir { shown: root.to_owned(), handle, made: Vec::new() };
        for name in below {
            dir.shown.push(name);
            if let Err(error) = dir.enter(name, may_create) {
                dir.remove_what_was_made();
                return Err(refusal(&dir.shown, error));
            }
        }
        Ok(dir)
    }
}

fn refusal(dir: &Path, error: Errno) -> AdminError {
    let dir = dir.display();
    AdminError::Refused(match error {
        Errno::LOOP | Errno::NOTDIR => format!("{dir} is not a directory, or was replaced by a link just now"),
        Errno::NOENT => format!("{dir} is not there"),
        other => format!("cannot use {dir}: {}; {KEY} says where backups go", io::Error::from(other)),
    })
}

fn open_dir<P: rustix::path::Arg>(parent: impl std::os::fd::AsFd, name: P) -> Result<OwnedFd, Errno> {
    openat(parent, name, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// The path at which the operating system would arrive: absolute, without symbolic links and `..`.
/// The last components need not exist yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::from("/");
    let absolute = std::path::absolute(path)?;
    let mut exists = true;
    for part in absolute.components() {
        match part {
            Component::ParentDir if !exists => {
                return Err(io::Error::other("'..' leads out of a directory that does not exist"));
            }
            // The resolved part has no links, so its parent is the directory that its name says.
            Component::ParentDir => drop(resolved.pop()),
            Component::Normal(name) => {
                resolved.push(name);
                exists = exists && resolved.symlink_metadata().is_ok();
                if exists {
                    resolved = resolved.canonicalize()?;
                }
            }
            _ => {}
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A root `backups`, a data directory `data` with a store outside of it, and a directory
    /// `outside`.
    fn scene() -> (tempfile::TempDir, BackupPlace) {
        let dir = tempfile::tempdir().expect("tempdir");
        for name in ["data", "backups", "outside", "disk/bitcask"] {
            std::fs::create_dir_all(dir.path().join(name)).expect("create");
        }
        let node_dirs = vec![dir.path().join("data"), dir.path().join("disk/bitcask")];
        let place = BackupPlace { root: dir.path().join("backups"), node_dirs };
        (dir, place)
    }

    fn refusal(place: &BackupPlace, wanted: &Path) -> String {
        place.create(wanted).expect_err("refused").to_string()
    }

    #[test]
    fn a_name_is_one_below_the_root_and_its_directories_are_for_the_node_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (dir, mut place) = scene();
        place.root = dir.path().join("made/backups");
        let open = place.create(Path::new("weekly/monday")).expect("created");
        assert_eq!(open.shown, dir.path().canonicalize().expect("there").join("made/backups/weekly/monday"));
        std::fs::write(open.path().join("x"), "").expect("write");
        assert!(open.shown.join("x").exists());
        for made in ["made", "made/backups", "made/backups/weekly", "made/backups/weekly/monday"] {
            let mode = dir.path().join(made).metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, DIR_MODE, "{made}");
        }
        let absolute = place.root.join("weekly/monday");
        assert_eq!(place.find(&absolute).expect("there").shown, open.shown);
    }

    #[test]
    fn a_path_that_leads_out_of_the_root_is_refused() {
        let (dir, place) = scene();
        let outside = dir.path().join("outside");
        symlink(&outside, place.root.join("link")).expect("link");
        symlink("../outside/x", place.root.join("dangling")).expect("link");
        symlink("/etc", place.root.join("etc")).expect("link");
        for wanted in [
            "",
            ".",
            "..",
            "../outside",
            "a/../..",
            "link",
            "link/x",
            "dangling",
            "dangling/x",
            "etc/ombak",
            "link/../x",
            "/etc",
            "/",
            "/etc/ombak-backup",
        ] {
            let said = refusal(&place, Path::new(wanted));
            assert!(!said.is_empty(), "{wanted}");
        }
        assert!(refusal(&place, &outside).contains("platform_backup_dir"));
        assert_eq!(std::fs::read_dir(&outside).expect("list").count(), 0);
        assert!(!Path::new("/etc/ombak-backup").exists());
    }

    #[test]
    fn a_link_that_stays_below_the_root_is_followed() {
        let (dir, place) = scene();
        std::fs::create_dir(place.root.join("real")).expect("create");
        symlink("real", place.root.join("link")).expect("link");
        let open = place.create(Path::new("link/x")).expect("created");
        assert!(open.shown.ends_with("backups/real/x"), "{:?}", open.shown);
        // The root itself may be a symbolic link, too.
        symlink("backups", dir.path().join("root-link")).expect("link");
        let place = BackupPlace { root: dir.path().join("root-link"), ..place };
        assert!(place.create(Path::new("y")).expect("created").shown.ends_with("backups/y"));
    }

    #[test]
    fn the_nodes_own_directories_are_refused_however_they_are_spelled() {
        let (dir, place) = scene();
        let place = BackupPlace { root: dir.path().to_owned(), ..place };
        symlink("data", dir.path().join("alias")).expect("link");
        for wanted in ["data", "data/b", "alias/b", "outside/../data/b", "outside/../alias/b/c"] {
            assert!(refusal(&place, Path::new(wanted)).contains("own data directory"), "{wanted}");
        }
        assert!(refusal(&place, Path::new("disk/bitcask/b")).contains("where the node has its objects"));
        // The data directory is configured by a symbolic link.
        let place = BackupPlace { node_dirs: vec![dir.path().join("alias")], ..place };
        assert!(refusal(&place, &dir.path().join("data/b")).contains("own data directory"));
    }

    #[test]
    fn directories_that_were_made_go_as_far_as_they_are_empty() {
        let (_dir, place) = scene();
        std::fs::create_dir(place.root.join("there")).expect("create");
        let open = place.create(Path::new("there/a/b/c")).expect("created");
        std::fs::write(place.root.join("there/a/file"), "").expect("write");
        open.remove_what_was_made();
        assert!(place.root.join("there/a").exists() && !place.root.join("there/a/b").exists());
        place.create(Path::new("there")).expect("there").remove_what_was_made();
        assert!(place.root.join("there").exists());
    }

    #[test]
    fn a_backup_does_not_lie_in_another_one() {
        let (_dir, place) = scene();
        place.create(Path::new("monday")).expect("created");
        std::fs::write(place.root.join("monday").join(OWNER), "{}").expect("write");
        assert!(refusal(&place, Path::new("monday/7")).contains("has backups itself"));
        place.create(Path::new("monday")).expect("the same one again");
    }

    #[test]
    fn a_link_that_is_swapped_in_after_the_judgement_is_not_followed() {
        let (dir, place) = scene();
        std::fs::create_dir(place.root.join("x")).expect("create");
        let (root, below) = place.check_path(Path::new("x/y")).expect("fine");
        std::fs::remove_dir(place.root.join("x")).expect("remove");
        symlink(dir.path().join("outside"), place.root.join("x")).expect("link");
        let said = place.open(&root, &below, true).expect_err("refused").to_string();
        assert!(said.contains("replaced by a link"), "{said}");
        assert_eq!(std::fs::read_dir(dir.path().join("outside")).expect("list").count(), 0);
    }

    #[test]
    fn an_opened_directory_stays_the_same_when_its_name_is_given_to_a_link() {
        let (dir, place) = scene();
        let open = place.create(Path::new("x")).expect("created");
        std::fs::rename(place.root.join("x"), place.root.join("moved")).expect("rename");
        symlink(dir.path().join("outside"), place.root.join("x")).expect("link");
        std::fs::write(open.path().join("file"), "").expect("write");
        assert!(place.root.join("moved/file").exists());
        assert_eq!(std::fs::read_dir(dir.path().join("outside")).expect("list").count(), 0);
    }
}
