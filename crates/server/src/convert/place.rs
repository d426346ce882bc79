//! The directory for the new files: checked before anything is written, and cleared at the end.

use crate::backends::stores_file;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The absolute path of a directory, with symbolic links resolved. A directory that does not exist
/// yet keeps its name.
pub fn resolved(root: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(root) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => std::path::absolute(root),
        other => other,
    }
}

/// Whether the new files can get this directory name. The error is one line for the operator.
pub fn check(root: &Path) -> Result<(), String> {
    let refused = |e: io::Error| format!("cannot read {}: {e}", root.display());
    match fs::metadata(root) {
        Ok(found) if !found.is_dir() => return Err(format!("{} is not a directory: move it away", root.display())),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(refused(e)),
    }
    if stores_file::holds_data(root) {
        let root = root.display();
        return Err(format!("{root} has data already: move it away, or convert to a backend with another directory"));
    }
    if is_mount_point(root).map_err(refused)? {
        let root = root.display();
        return Err(format!(
            "{root} is a mount point, and the new files are created next to it first: configure a directory inside it, \
             such as {root}/data"
        ));
    }
    for entry in fs::read_dir(root).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name().to_string_lossy().into_owned();
        if !is_of_an_empty_store(&name) {
            return Err(format!("{} has {name}, which the new files would replace: move it away", root.display()));
        }
    }
    Ok(())
}

/// Removes a directory that has only empty stores and their lock. If it has any other file, the
/// directory stays and the result is an error.
pub fn remove_empty(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))?;
        if name == LOCK {
            fs::remove_file(path)?;
        } else if is_of_an_empty_store(&name) {
            fs::remove_dir_all(path)?;
        }
    }
    fs::remove_dir(root)
}

const LOCK: &str = "lock";

fn is_of_an_empty_store(name: &str) -> bool {
    name == LOCK || name.split('.').next().unwrap_or_default().parse::<u32>().is_ok()
}

/// Whether the directory is a mount point, even one of the same file system. A directory from
/// outside cannot be renamed to a mount point.
#[cfg(target_os = "linux")]
fn is_mount_point(dir: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    let found = statx(CWD, dir, AtFlags::empty(), StatxFlags::BASIC_STATS)?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// On other systems, only a mount of another file system can be detected.
#[cfg(not(target_os = "linux"))]
fn is_mount_point(dir: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let Some(parent) = dir.parent() else { return Ok(true) };
    Ok(fs::metadata(dir)?.dev() != fs::metadata(parent)?.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named_before_anything_is_written() {
        let dir = tempfile::tempdir().expect("tempdir");
        let root = dir.path().join("leveled");
        assert_eq!(check(&root), Ok(()));
        fs::create_dir_all(root.join("17.ledger")).expect("made");
        fs::write(root.join(LOCK), "").expect("written");
        assert_eq!(check(&root), Ok(()));
        fs::write(root.join("notes"), "mine").expect("written");
        assert!(check(&root).expect_err("refused").contains("leveled has notes"));
        assert!(remove_empty(&root).is_err() && root.join("notes").exists());
        fs::remove_file(root.join("notes")).expect("removed");
        remove_empty(&root).expect("removed");
        fs::write(&root, "a file").expect("written");
        assert!(check(&root).expect_err("refused").contains("is not a directory"));
    }

    #[test]
    fn a_mount_point_is_refused() {
        let said = check(Path::new("/proc")).expect_err("refused");
        assert!(said.contains("/proc is a mount point") && said.contains("/proc/data"), "{said}");
        assert_eq!(is_mount_point(Path::new("/")).ok(), Some(true));
    }

    #[test]
    fn links_are_followed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let real = fs::canonicalize(dir.path()).expect("there").join("real");
        fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, dir.path().join("link")).expect("made");
        assert_eq!(resolved(&dir.path().join("link")).expect("there"), real);
        assert_eq!(resolved(&dir.path().join("new")).expect("fine"), dir.path().join("new"));
    }
}
