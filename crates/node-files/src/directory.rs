//! The directory of a node.

use crate::error::NodeFileError;
use crate::identity::Identity;
use crate::saved_json::{self, Formats};
use ombak_storage::fs::{FileLock, FileSystem, read_file, replace_file};
use ombak_types::NodeId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

const IDENTITY_FORMATS: Formats = Formats { without_checksum: 1, current: 2 };
/// The name of the identity file in the directory of a node.
pub const IDENTITY_FILE: &str = "node.json";
/// The file that marks a data directory while a restore into it is incomplete. No node starts in
/// such a directory.
pub const INCOMPLETE_RESTORE: &str = "restore.incomplete";
/// Earlier versions wrote this file at a clean stop, and continued with the same actor after it.
const CLEAN_MARK: &str = "clean.json";
const LOCK: &str = "node.lock";
/// An upper bound: every file of a node is far shorter.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The directory of a node, locked for this process.
pub struct NodeDirectory {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// The lock is released when this is dropped.
    _lock: Box<dyn FileLock>,
}

impl NodeDirectory {
    /// Locks the directory; creates it if it is missing.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, NodeFileError> {
        fs.create_dir_all(dir).map_err(io_error("create", dir))?;
        check_restored(&*fs, dir)?;
        if let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs.sync_dir(parent).map_err(io_error("sync", parent))?;
        }
        let path = dir.join(LOCK);
        let lock = fs.lock(&path).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => NodeFileError::InUse(dir.to_owned()),
            _ => NodeFileError::Io { op: "lock", path, source },
        })?;
        Ok(Self { fs, dir: dir.to_owned(), _lock: lock })
    }

    /// Checks whether the node may start with a ring of this size. Changes nothing.
    pub fn check(&self, ring_size: u32) -> Result<(), NodeFileError> {
        identity_for(&*self.fs, &self.dir, ring_size).map(drop)
    }

    /// Starts the node: reads or creates its identity, and increments the boot number.
    pub fn start(&self, ring_size: u32) -> Result<Identity, NodeFileError> {
        let identity = match identity_for(&*self.fs, &self.dir, ring_size)? {
            Some(found) => Identity { format: IDENTITY_FORMATS.current, boot: found.boot + 1, ..found },
            None => Identity {
                format: IDENTITY_FORMATS.current,
                node_id: NodeId::new(random_u64()?),
                ring_lineage: random_u64()?,
                ring_size,
                boot: 1,
            },
        };
        self.replace(IDENTITY_FILE, &identity)?;
        Ok(identity)
    }

    /// Removes the file that earlier versions wrote at a clean stop. Nothing reads it any more.
    pub fn remove_clean_mark(&self) {
        let path = self.dir.join(CLEAN_MARK);
        match self.fs.remove_file(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!(file = %path.display(), %error, "an obsolete file cannot be removed"),
        }
    }

    fn replace<T: Serialize>(&self, name: &str, value: &T) -> Result<(), NodeFileError> {
        let path = self.dir.join(name);
        let text = saved_json::to_text(value).map_err(io::Error::from).map_err(io_error("write", &path))?;
        replace_file(&*self.fs, &path, &text).map_err(io_error("write", &path))
    }
}

/// Checks whether a node with this ring may start in a directory, as far as the directory shows.
/// Changes nothing.
pub fn check_directory(fs: &dyn FileSystem, dir: &Path, ring_size: u32) -> Result<(), NodeFileError> {
    check_restored(fs, dir)?;
    identity_for(fs, dir, ring_size).map(drop)
}

/// Refuses a directory with an unfinished restore.
fn check_restored(fs: &dyn FileSystem, dir: &Path) -> Result<(), NodeFileError> {
    let marker = dir.join(INCOMPLETE_RESTORE);
    match fs.file_identity(&marker) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(NodeFileError::Io { op: "read", path: marker, source }),
        Ok(_) => {
            let what = "'ombak restore' has not finished here: empty the directory and run it again".into();
            Err(NodeFileError::Unusable { path: marker, what })
        }
    }
}

/// The identity of the node in a directory, if there is one. Fails when its ring has another size.
fn identity_for(fs: &dyn FileSystem, dir: &Path, ring_size: u32) -> Result<Option<Identity>, NodeFileError> {
    let found = read::<Identity>(fs, dir, IDENTITY_FILE, IDENTITY_FORMATS)?;
    match found {
        Some(Identity { ring_size: found, .. }) if found != ring_size => {
            Err(NodeFileError::OtherRingSize { dir: dir.to_owned(), found, configured: ring_size })
        }
        found => Ok(found),
    }
}

/// Examines the identity in the directory of a stopped node. The error says what is damaged.
pub fn examine_identity(fs: &dyn FileSystem, dir: &Path) -> Option<NodeFileError> {
    match read::<Identity>(fs, dir, IDENTITY_FILE, IDENTITY_FORMATS) {
        Ok(Some(_)) => None,
        Ok(None) => {
            let what = "is missing: the next start takes this for a new node; put back the copy of your last backup";
            Some(NodeFileError::Unusable { path: dir.join(IDENTITY_FILE), what: what.into() })
        }
        Err(error) => Some(error),
    }
}

/// Reads a file of a directory; `None` when it does not exist.
fn read<T: DeserializeOwned>(
    fs: &dyn FileSystem,
    dir: &Path,
    name: &str,
    formats: Formats,
) -> Result<Option<T>, NodeFileError> {
    let path = dir.join(name);
    let text = match read_file(fs, &path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The file is far longer than any that a node writes.
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Vec::new(),
        Err(source) => return Err(NodeFileError::Io { op: "read", path, source }),
    };
    let unusable = |why| NodeFileError::Unusable {
        path,
        what: format!("{why}; put back the copy of your last backup of this file"),
    };
    saved_json::from_text(text, formats).map(Some).map_err(unusable)
}

fn random_u64() -> Result<u64, NodeFileError> {
    getrandom::u64().map_err(|e| NodeFileError::NoRandomBytes(e.to_string()))
}

fn io_error(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NodeFileError {
    let path = path.to_owned();
    move |source| NodeFileError::Io { op, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn open(dir: &Path) -> Result<NodeDirectory, NodeFileError> {
        NodeDirectory::open(Arc::new(RealFs), dir)
    }

    #[test]
    fn boots_are_counted_and_identity_stays() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!(first.boot, 1);
        let second = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!(second, Identity { boot: 2, ..first });
    }

    #[test]
    fn a_node_keeps_the_id_that_any_earlier_version_has_stored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(IDENTITY_FILE);
        let first_version = r#"{"format": 1, "node_id": "02fbd2530c221c18", "ring_lineage": "000000000000000a",
            "ring_size": 64, "boot": 2}"#;
        std::fs::write(&path, first_version).unwrap();
        let identity = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!((identity.node_id, identity.boot), (NodeId::new(0x02fb_d253_0c22_1c18), 3));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"node_id\": \"02fbd2530c221c18\""), "{text}");
        assert_eq!(open(dir.path()).unwrap().start(64).unwrap().node_id, identity.node_id);
    }

    #[test]
    fn the_clean_mark_of_an_earlier_version_is_removed_whatever_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        let mark = dir.path().join(CLEAN_MARK);
        for text in ["{\"format\": 2, \"boot\": 1, \"actor\": \"7\", \"next_ticket\": 5}", "nonsense"] {
            std::fs::write(&mark, text).unwrap();
            files.remove_clean_mark();
            assert!(!mark.exists());
        }
        files.remove_clean_mark();
    }

    #[test]
    fn damaged_files_are_named_and_a_missing_identity_is() {
        let dir = tempfile::tempdir().unwrap();
        let examine = || examine_identity(&RealFs, dir.path()).iter().map(ToString::to_string).collect::<Vec<_>>();
        let missing = examine();
        assert!(missing.len() == 1 && missing[0].contains("node.json: is missing"), "{missing:?}");
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        assert_eq!(examine(), Vec::<String>::new());
        let path = dir.path().join(IDENTITY_FILE);
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, good.replace("\"boot\": 1", "\"boot\": 3")).unwrap();
        let said = examine();
        assert!(said.len() == 1 && said[0].contains("node.json: is damaged"), "{said:?}");
    }

    #[test]
    fn a_second_process_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _first = open(dir.path()).unwrap();
        assert!(matches!(open(dir.path()), Err(NodeFileError::InUse(_))));
    }

    #[test]
    fn another_ring_size_or_format_is_refused_with_what_would_be_right() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        let text = files.start(128).unwrap_err().to_string();
        assert!(text.contains("set ring_size = 64"), "{text}");
        std::fs::write(dir.path().join(IDENTITY_FILE), "{\"format\": 9}").unwrap();
        let text = files.start(64).unwrap_err().to_string();
        assert!(text.contains("format 9"), "{text}");
        std::fs::write(dir.path().join(IDENTITY_FILE), "nonsense").unwrap();
        assert!(matches!(files.start(64), Err(NodeFileError::Unusable { .. })));
    }
}
