//! The secret that the nodes of a cluster share: the file `cluster.secret_file`.

use ombak_cluster::Secret;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const KEY: &str = "cluster.secret_file";
/// Permissions for the owner only.
const MODE: u32 = 0o600;
const OTHERS: u32 = 0o077;
const FILE_BYTES_MAX: u64 = 64 * 1024;
const NEW_SECRET_BYTES: usize = 32;

/// Reads the secret. If the file is missing and lies in the data directory, it is created with a
/// random secret. The error is one line for the operator.
pub fn read_or_create(path: &Path, data_dir: &Path) -> Result<Secret, String> {
    match read(path) {
        Err(Unusable::Missing) if path.starts_with(data_dir) => {
            create(path).map_err(|e| line(path, &format!("cannot be written: {e}")))?;
            read(path)
        }
        secret => secret,
    }
    .map_err(|why| line(path, &why.text(path)))
}

/// Checks that a start could use the secret, and changes nothing. The error is one line for the
/// operator.
pub fn check(path: &Path, data_dir: &Path) -> Result<(), String> {
    match read(path) {
        // The first start creates it.
        Err(Unusable::Missing) if path.starts_with(data_dir) => Ok(()),
        Err(why) => Err(line(path, &why.text(path))),
        Ok(_) => Ok(()),
    }
}

/// Why a secret cannot be used.
enum Unusable {
    /// There is no such file.
    Missing,
    /// Another reason, for people.
    Other(String),
}

impl Unusable {
    fn text(&self, path: &Path) -> String {
        match self {
            Self::Missing => {
                let path = path.display().to_string().replace('\'', r"'\''");
                format!(
                    "there is no such file; copy the one of another node of the cluster, or, on its first node, make it as \
                     the user of the node: (umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' > '{path}')"
                )
            }
            Self::Other(why) => why.clone(),
        }
    }
}

fn line(path: &Path, what: &str) -> String {
    format!("{KEY} = {}: {what}", path.display())
}

fn read(path: &Path) -> Result<Secret, Unusable> {
    let unreadable = |e: io::Error| match e.kind() {
        ErrorKind::NotFound => Unusable::Missing,
        ErrorKind::PermissionDenied => {
            Unusable::Other("this user may not read it; it belongs to the user of the node: chown it".into())
        }
        _ => Unusable::Other(format!("cannot be read: {e}")),
    };
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    check_permissions(&file).map_err(Unusable::Other)?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    Secret::new(text.trim_ascii()).map_err(|e| Unusable::Other(e.to_string()))
}

fn check_permissions(file: &File) -> Result<(), String> {
    let meta = file.metadata().map_err(|e| e.to_string())?;
    if !meta.is_file() {
        return Err("is no file".into());
    }
    let mode = meta.mode() & 0o777;
    if mode & OTHERS != 0 {
        return Err(format!("has the permissions {mode:o}, and others must not read it: chmod 600"));
    }
    Ok(())
}

/// The file gets its name after its content is on the disk.
fn create(path: &Path) -> io::Result<()> {
    let mut random = [0u8; NEW_SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
    let text: String = random.iter().map(|b| format!("{b:02x}")).collect();
    let fresh = path.with_extension("secret.new");
    match std::fs::remove_file(&fresh) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&fresh)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    // Without this, a loss of power could leave a member without the secret of its cluster.
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_in_the_data_directory_and_nowhere_else() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("cluster.secret");
        read_or_create(&path, dir.path()).expect("created");
        let first = std::fs::read(&path).expect("read");
        assert_eq!((first.len(), path.metadata().expect("there").mode() & 0o777), (65, MODE));
        read_or_create(&path, dir.path()).expect("read again");
        assert_eq!(std::fs::read(&path).expect("read"), first);
        let elsewhere = tempfile::tempdir().expect("tempdir");
        let missing = read_or_create(&elsewhere.path().join("x"), dir.path()).expect_err("missing");
        assert!(missing.contains("there is no such file; copy"), "{missing}");
    }

    #[test]
    fn the_line_that_makes_a_missing_secret_works_and_a_check_creates_nothing() {
        let (data, elsewhere) = (tempfile::tempdir().expect("tempdir"), tempfile::tempdir().expect("tempdir"));
        assert_eq!(check(&data.path().join("cluster.secret"), data.path()), Ok(()), "a start creates it");
        assert!(!data.path().join("cluster.secret").exists());
        let path = elsewhere.path().join("cluster.secret");
        let missing = check(&path, data.path()).expect_err("missing");
        let (_, command) = missing.split_once("of the node: ").expect("a command at the end");
        let made = std::process::Command::new("sh").arg("-c").arg(command).status().expect("runs");
        assert!(made.success(), "{command}");
        assert_eq!(check(&path, data.path()), Ok(()));
        assert_eq!(std::fs::read(&path).expect("read").len(), 64);
        std::fs::write(&path, "short").expect("write");
        assert!(check(&path, data.path()).expect_err("short").contains("5 bytes"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("chmod");
        assert!(check(&path, data.path()).expect_err("open").contains("chmod 600"));
    }

    #[test]
    fn secrets_that_others_can_read_or_guess_are_refused() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("s");
        std::fs::write(&path, "0123456789abcdef0123").expect("write");
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("chmod");
        assert!(read_or_create(&path, dir.path()).expect_err("open").contains("chmod 600"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("chmod");
        assert!(read_or_create(&path, dir.path()).is_ok());
        std::fs::write(&path, "short\n").expect("write");
        assert!(read_or_create(&path, dir.path()).expect_err("short").contains("5 bytes"));
    }
}
