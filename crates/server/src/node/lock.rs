//! The lock that allows only one process per data directory.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The permissions of a data directory that this process creates.
const DIR_MODE: u32 = 0o700;
/// How often to try to take a lock. With the pauses between them, the tries last half a second.
const TRIES_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// The file in a data directory that is locked.
pub const LOCK_FILE: &str = "ombak.lock";

/// The lock on a data directory. The operating system releases it when the process ends, in
/// whatever way it ends.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

/// Why a data directory cannot be used. The text is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has locked the directory.
    #[error(
        "Node is already running! Process {pid} has the data directory {dir}; stop it with 'ombak stop', or start this \
         node with another directory (--data DIR)"
    )]
    Held {
        /// The id of that process, if it is known.
        pid: String,
        /// The directory.
        dir: PathBuf,
    },
    /// The directory cannot be created or written to.
    #[error("cannot use the data directory {dir}: {}", explain(.source))]
    Unusable {
        /// The directory.
        dir: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl DataDirLock {
    /// Creates the directory if it does not exist, locks it, and writes the id of this process to
    /// the lock file.
    pub fn take(dir: &Path) -> Result<Self, LockError> {
        let unusable = |source: io::Error| LockError::Unusable { dir: dir.to_owned(), source };
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(dir).map_err(unusable)?;
        let path = dir.join(LOCK_FILE);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(unusable)?;
        match try_for_a_moment(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { pid: holder(&file), dir: dir.to_owned() }),
            Err(TryLockError::Error(e)) => return Err(unusable(e)),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(unusable)?;
        Ok(Self { _file: file })
    }
}

/// Tries for a moment to take the lock. A command that checks whether a node runs takes the lock
/// itself for an instant ([`is_held`]), and that must not prevent a node from starting.
fn try_for_a_moment(file: &File) -> Result<(), TryLockError> {
    let mut tries = 1;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if tries < TRIES_MAX => {}
            outcome => return outcome,
        }
        tries += 1;
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "there is no other way to wait for a lock that is taken without blocking"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Whether a running process has locked the directory.
pub fn is_held(dir: &Path) -> bool {
    File::open(dir.join(LOCK_FILE)).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn holder(mut file: &File) -> String {
    let mut text = [0u8; 20];
    let len = file.read(&mut text).unwrap_or(0);
    let pid = String::from_utf8_lossy(&text[..len]).trim().to_owned();
    if pid.is_empty() { "of unknown id".into() } else { pid }
}

/// The error of a file operation, with advice for the operator.
pub fn explain(e: &io::Error) -> String {
    let advice = match e.kind() {
        io::ErrorKind::PermissionDenied => "give this user the right to write there, or choose another with --data",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room on that disk, or choose another with --data"
        }
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only: choose another with --data",
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "a part of the path is not a directory",
        _ => "check the path, or choose another with --data",
    };
    format!("{e}; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_told_who_was_first() {
        let dir = tempfile::tempdir().expect("tempdir");
        let first = DataDirLock::take(dir.path()).expect("free");
        let second = DataDirLock::take(dir.path()).expect_err("held").to_string();
        assert!(second.contains(&format!("Process {} has", std::process::id())), "{second}");
        assert!(is_held(dir.path()));
        drop(first);
        assert!(!is_held(dir.path()));
        DataDirLock::take(dir.path()).expect("free again");
    }

    #[test]
    fn a_glance_at_the_lock_keeps_nobody_from_taking_it() {
        let dir = tempfile::tempdir().expect("tempdir");
        drop(DataDirLock::take(dir.path()).expect("free"));
        let looking = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while looking.load(std::sync::atomic::Ordering::Relaxed) {
                    is_held(dir.path());
                    pause();
                }
            });
            let taken: Vec<_> = (0..50).map(|_| DataDirLock::take(dir.path()).map(drop)).collect();
            looking.store(false, std::sync::atomic::Ordering::Relaxed);
            assert!(taken.iter().all(Result::is_ok), "{taken:?}");
        });
    }

    #[test]
    fn a_directory_that_is_made_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("tempdir");
        let _lock = DataDirLock::take(&dir.path().join("a/data")).expect("free");
        let mode = dir.path().join("a/data").metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, DIR_MODE);
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = dir.path().join("x");
        std::fs::write(&file, "").expect("write");
        let error = DataDirLock::take(&file).expect_err("no directory").to_string();
        assert!(error.contains("is not a directory"), "{error}");
    }
}
