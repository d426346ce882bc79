//! The files of a node's directory.

use super::identity::Identity;
use crate::backup::INCOMPLETE_RESTORE;
use crate::buckets;
use crate::open_error::OpenError;
use crate::random::random_u64;
use crate::saved_json::{self, Formats};
use ombak_ring::RingSize;
use ombak_storage::fs::{FileLock, FileSystem, read_file, replace_file};
use ombak_types::PropMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

const IDENTITY_FORMATS: Formats = Formats { without_checksum: 1, current: 2 };
/// The name of the identity file in the directory of a node.
pub const IDENTITY: &str = "node.json";
/// Earlier versions wrote this file at a clean stop, and continued with the same actor after it.
const CLEAN_MARK: &str = "clean.json";
const LOCK: &str = "node.lock";
/// An upper bound: every file of a node is far shorter.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The directory of a node, locked for this process.
pub struct NodeFiles {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// The lock is released when this is dropped.
    _lock: Box<dyn FileLock>,
}

impl NodeFiles {
    /// Locks the directory; creates it if it is missing.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, OpenError> {
        fs.create_dir_all(dir).map_err(io_error("create", dir))?;
        check_restored(&*fs, dir)?;
        if let Some(parent) = dir.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs.sync_dir(parent).map_err(io_error("sync", parent))?;
        }
        let path = dir.join(LOCK);
        let lock = fs.lock(&path).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => OpenError::InUse(dir.to_owned()),
            _ => OpenError::Io { op: "lock", path, source },
        })?;
        Ok(Self { fs, dir: dir.to_owned(), _lock: lock })
    }

    /// Checks whether the node may start with a ring of this size. Changes nothing.
    pub fn check(&self, ring_size: u32) -> Result<(), OpenError> {
        identity_for(&*self.fs, &self.dir, ring_size).map(drop)
    }

    /// Starts the node: reads or creates its identity, and increments the boot number.
    pub fn start(&self, ring_size: u32) -> Result<Identity, OpenError> {
        let identity = match identity_for(&*self.fs, &self.dir, ring_size)? {
            Some(found) => Identity { format: IDENTITY_FORMATS.current, boot: found.boot + 1, ..found },
            None => Identity {
                format: IDENTITY_FORMATS.current,
                node_id: random_u64()?,
                ring_lineage: random_u64()?,
                ring_size,
                boot: 1,
            },
        };
        self.replace(IDENTITY, &identity)?;
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

    fn replace<T: Serialize>(&self, name: &str, value: &T) -> Result<(), OpenError> {
        let path = self.dir.join(name);
        let text = saved_json::to_text(value).map_err(io::Error::from).map_err(io_error("write", &path))?;
        replace_file(&*self.fs, &path, &text).map_err(io_error("write", &path))
    }
}

/// Checks whether a node with this ring may start in a directory, as far as the node's own files
/// show. Changes nothing.
pub fn check_start(
    fs: &Arc<dyn FileSystem>,
    dir: &Path,
    node_name: &str,
    ring_size: u32,
    default_props: &PropMap,
) -> Result<(), OpenError> {
    RingSize::new(ring_size).map_err(|e| OpenError::Config(format!("ring_size: {e}")))?;
    check_restored(&**fs, dir)?;
    identity_for(&**fs, dir, ring_size)?;
    buckets::BucketRegistry::open(fs.clone(), dir, node_name, default_props).map(drop)
}

/// Refuses a directory with an unfinished restore.
fn check_restored(fs: &dyn FileSystem, dir: &Path) -> Result<(), OpenError> {
    let marker = dir.join(INCOMPLETE_RESTORE);
    match fs.file_identity(&marker) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(OpenError::Io { op: "read", path: marker, source }),
        Ok(_) => {
            let what = "'ombak restore' has not finished here: empty the directory and run it again".into();
            Err(OpenError::Unusable { path: marker, what })
        }
    }
}

/// The identity of the node in a directory, if there is one. Fails when its ring has another size.
fn identity_for(fs: &dyn FileSystem, dir: &Path, ring_size: u32) -> Result<Option<Identity>, OpenError> {
    let found = read::<Identity>(fs, dir, IDENTITY, IDENTITY_FORMATS)?;
    match found {
        Some(found) if found.ring_size != ring_size => Err(OpenError::Config(format!(
            "the data in {} is laid out for ring_size {}, and the configuration says {ring_size}; set \
             ring_size = {} or use another data directory",
            dir.display(),
            found.ring_size,
            found.ring_size
        ))),
        found => Ok(found),
    }
}

/// Examines the files in the directory of a stopped node. The errors say what is damaged.
pub fn examine_files(fs: &Arc<dyn FileSystem>, dir: &Path) -> Vec<OpenError> {
    let identity = match read::<Identity>(&**fs, dir, IDENTITY, IDENTITY_FORMATS) {
        Ok(Some(_)) => None,
        Ok(None) => {
            let what = "is missing: the next start takes this for a new node; put back the copy of your last backup";
            Some(OpenError::Unusable { path: dir.join(IDENTITY), what: what.into() })
        }
        Err(error) => Some(error),
    };
    identity.into_iter().chain(buckets::examine_file(fs, dir)).collect()
}

/// Reads a file of a directory; `None` when it does not exist.
fn read<T: DeserializeOwned>(
    fs: &dyn FileSystem,
    dir: &Path,
    name: &str,
    formats: Formats,
) -> Result<Option<T>, OpenError> {
    let path = dir.join(name);
    let text = match read_file(fs, &path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The file is far longer than any that a node writes.
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Vec::new(),
        Err(source) => return Err(OpenError::Io { op: "read", path, source }),
    };
    let unusable =
        |why| OpenError::Unusable { path, what: format!("{why}; put back the copy of your last backup of this file") };
    saved_json::from_text(text, formats).map(Some).map_err(unusable)
}

fn io_error(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { op, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn open(dir: &Path) -> Result<NodeFiles, OpenError> {
        NodeFiles::open(Arc::new(RealFs), dir)
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
        let examine = || {
            let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
            examine_files(&fs, dir.path()).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let missing = examine();
        assert!(missing.len() == 1 && missing[0].contains("node.json: is missing"), "{missing:?}");
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        assert_eq!(examine(), Vec::<String>::new());
        let path = dir.path().join(IDENTITY);
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, good.replace("\"boot\": 1", "\"boot\": 3")).unwrap();
        let said = examine();
        assert!(said.len() == 1 && said[0].contains("node.json: is damaged"), "{said:?}");
    }

    #[test]
    fn a_second_process_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _first = open(dir.path()).unwrap();
        assert!(matches!(open(dir.path()), Err(OpenError::InUse(_))));
    }

    #[test]
    fn another_ring_size_or_format_is_refused_with_what_would_be_right() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        let text = files.start(128).unwrap_err().to_string();
        assert!(text.contains("set ring_size = 64"), "{text}");
        std::fs::write(dir.path().join(IDENTITY), "{\"format\": 9}").unwrap();
        let text = files.start(64).unwrap_err().to_string();
        assert!(text.contains("format 9"), "{text}");
        std::fs::write(dir.path().join(IDENTITY), "nonsense").unwrap();
        assert!(matches!(files.start(64), Err(OpenError::Unusable { .. })));
    }
}
