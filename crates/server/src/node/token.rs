//! The admin token: the secret that opens the administration interface to callers on other machines.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The environment variable that goes before the file.
pub const VARIABLE: &str = "OMBAK_ADMIN_TOKEN";

/// The file of a data directory.
pub fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("admin.token")
}

/// Reads the token of a data directory; `None` when there is none or it may not be read.
pub fn read(data_dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path(data_dir)).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

/// The token of a node: from the environment, else from its file, which is made with a random one if it is missing.
pub fn of_node(data_dir: &Path) -> io::Result<String> {
    if let Some(token) = std::env::var(VARIABLE).ok().filter(|t| !t.is_empty()) {
        return Ok(token);
    }
    if let Some(token) = read(data_dir) {
        return Ok(token);
    }
    let mut random = [0u8; 32];
    getrandom::fill(&mut random).map_err(|e| io::Error::other(e.to_string()))?;
    let token: String = random.iter().map(|b| format!("{b:02x}")).collect();
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path(data_dir))?;
    writeln!(file, "{token}")?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().expect("tempdir");
        let token = of_node(dir.path()).expect("made");
        assert_eq!(token.len(), 64);
        assert_eq!(of_node(dir.path()).expect("read"), token);
        assert_eq!(read(dir.path()), Some(token));
        let mode = std::fs::metadata(path(dir.path())).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
