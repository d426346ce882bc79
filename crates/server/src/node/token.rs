//! The admin token: the secret that gives access to the administration interface.
//!
//! A node takes the token from the environment, or else from the file `admin.token` in its data
//! directory. A start creates that file with a random token if it is missing. Only the node's user
//! may read the file: a start refuses a file that others can read or that another user has put
//! there, because its token is not a secret.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The environment variable that takes precedence over the file.
pub const VARIABLE: &str = "OMBAK_ADMIN_TOKEN";

const FILE_NAME: &str = "admin.token";
/// The largest number of bytes that is read from the file. A token has 64 characters.
const FILE_BYTES_MAX: u64 = 4096;
/// The permissions of the file.
const MODE: u32 = 0o600;
/// The permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Why a node cannot get its token. The text is one line that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The operating system refuses to read or write the file.
    #[error("cannot {op} {path}: {source}; the node's user has to be able to")]
    Io {
        /// The operation: `read` or `write`.
        op: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Other users can read or write the file.
    #[error(
        "{path} can be read or written by other users (mode {mode:03o}), who may know the token: remove it, and the next \
         start makes another one; or run 'chmod 600 {path}' if nobody else has seen it"
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file belongs to a user who is neither the node's user nor the owner of the directory.
    #[error("{path} belongs to the user {owner}, who knows the token: remove it, and the next start makes another one")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The id of that user.
        owner: u32,
    },
    /// The path is not a regular file.
    #[error("{path} is not a regular file: remove it, and the next start creates one")]
    NoFile {
        /// The path.
        path: PathBuf,
    },
}

/// The path of the file in a data directory.
pub fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FILE_NAME)
}

/// The token from the environment.
pub fn of_environment() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|token| !token.is_empty())
}

/// Reads the token of a data directory; `None` if there is none.
pub fn read(data_dir: &Path) -> io::Result<Option<String>> {
    match open(&path(data_dir)) {
        Ok(file) => text_of(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The token of a node: from the environment, or else from its file, which is created if it is
/// missing or empty.
pub fn of_node(data_dir: &Path) -> Result<String, TokenError> {
    if let Some(token) = of_environment() {
        return Ok(token);
    }
    let path = path(data_dir);
    let failed = |op, source| TokenError::Io { op, path: path.clone(), source };
    let make = || create(data_dir).map_err(|e| failed("write", e));
    let file = match open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return make(),
        Err(_) if path.is_symlink() => return Err(TokenError::NoFile { path }),
        Err(e) => return Err(failed("read", e)),
    };
    check_secrecy(&file, data_dir)?;
    // After a loss of power the file may be empty. A new token replaces it.
    text_of(file).map_err(|e| failed("read", e))?.map_or_else(make, Ok)
}

/// Opens the file without following a symbolic link. If a command is run in a directory of another
/// user, a link there could point to a file that only the user of the command can read, and the
/// command would send its content to the program that listens there. The open does not block if the
/// path is a named pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn text_of(file: File) -> io::Result<Option<String>> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let token = text.trim();
    Ok((!token.is_empty()).then(|| token.to_owned()))
}

fn check_secrecy(file: &File, data_dir: &Path) -> Result<(), TokenError> {
    let path = path(data_dir);
    let failed = |source| TokenError::Io { op: "read", path: path.clone(), source };
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(TokenError::NoFile { path });
    }
    let trusted = [rustix::process::geteuid().as_raw(), data_dir.metadata().map_err(failed)?.uid()];
    if !trusted.contains(&meta.uid()) {
        return Err(TokenError::Foreign { path, owner: meta.uid() });
    }
    let mode = meta.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(TokenError::OpenToOthers { path, mode });
    }
    Ok(())
}

/// Creates a file with a random token. The file gets its name only after its content is on disk.
fn create(data_dir: &Path) -> io::Result<String> {
    let mut random = [0u8; 32];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
    let token: String = random.iter().map(|b| format!("{b:02x}")).collect();
    let fresh = data_dir.join(format!("{FILE_NAME}.new"));
    match std::fs::remove_file(&fresh) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&fresh)?;
    // The mode given when the file was created was reduced by the umask of the process.
    file.set_permissions(Permissions::from_mode(MODE))?;
    writeln!(file, "{token}")?;
    file.sync_all()?;
    std::fs::rename(&fresh, path(data_dir))?;
    File::open(data_dir)?.sync_all()?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    }

    #[test]
    fn a_token_is_made_once_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().expect("tempdir");
        let token = of_node(dir.path()).expect("made");
        assert_eq!(token.len(), 64);
        assert_eq!(of_node(dir.path()).expect("read"), token);
        assert_eq!(read(dir.path()).expect("read"), Some(token));
        let mode = std::fs::metadata(path(dir.path())).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_empty_file_gets_a_token() {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::write(path(dir.path()), "\n").expect("write");
        set_mode(&path(dir.path()), MODE);
        assert_eq!(read(dir.path()).expect("read"), None);
        assert_eq!(of_node(dir.path()).expect("made").len(), 64);
    }

    #[test]
    fn a_token_that_others_can_read_or_write_is_refused() {
        let dir = tempfile::tempdir().expect("tempdir");
        of_node(dir.path()).expect("made");
        for mode in [0o604, 0o640, 0o602, 0o666] {
            set_mode(&path(dir.path()), mode);
            let refusal = of_node(dir.path()).expect_err("no secret").to_string();
            assert!(refusal.contains(&format!("mode {mode:03o}")) && refusal.contains("chmod 600"), "{refusal}");
        }
        set_mode(&path(dir.path()), MODE);
        of_node(dir.path()).expect("a secret again");
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(path(dir.path())).expect("create");
        assert!(matches!(of_node(dir.path()), Err(TokenError::NoFile { .. })));
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let secret = dir.path().join("secret");
        std::fs::write(&secret, "of somebody").expect("write");
        set_mode(&secret, MODE);
        std::os::unix::fs::symlink(&secret, path(dir.path())).expect("link");
        assert!(read(dir.path()).is_err());
        assert!(matches!(of_node(dir.path()), Err(TokenError::NoFile { .. })));
    }
}
