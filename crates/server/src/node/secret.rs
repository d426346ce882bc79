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
    let failed = |what: &str| format!("{KEY} = {}: {what}", path.display());
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound && path.starts_with(data_dir) => {
            create(path).map_err(|e| failed(&format!("cannot be written: {e}")))?;
            OpenOptions::new().read(true).open(path)
        }
        opened => opened,
    };
    let file = file.map_err(|e| match e.kind() {
        ErrorKind::NotFound => failed("there is no such file; copy the one of another node of the cluster"),
        _ => failed(&format!("cannot be read: {e}")),
    })?;
    check_permissions(&file).map_err(|what| failed(&what))?;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(|e| failed(&format!("cannot be read: {e}")))?;
    Secret::new(text.trim_ascii()).map_err(|e| failed(&e.to_string()))
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
