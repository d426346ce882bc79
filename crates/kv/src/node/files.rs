//! The files of a node's directory.

use super::clean_mark::CleanMark;
use super::identity::Identity;
use crate::backup::INCOMPLETE_RESTORE;
use crate::buckets;
use crate::open_error::OpenError;
use crate::partition::ActorState;
use crate::random::random_u64;
use crate::saved_json::{self, Formats};
use ombak_storage::fs::{FileBirth, FileLock, FileSystem, read_file, replace_file, replace_file_with};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const IDENTITY_FORMATS: Formats = Formats { without_checksum: 1, current: 2 };
/// Version 1 did not say which stores were closed.
const MARK_FORMATS: Formats = Formats { without_checksum: 2, current: 3 };
/// The name of the identity in the directory of a node.
pub const IDENTITY: &str = "node.json";
const CLEAN_MARK: &str = "clean.json";
const LOCK: &str = "node.lock";
/// No file of a node is near this long.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The directory of a node, locked for this process.
pub struct NodeFiles {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// Released when dropped.
    _lock: Box<dyn FileLock>,
}

impl NodeFiles {
    /// Locks the directory, creating it if need be.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, OpenError> {
        fs.create_dir_all(dir).map_err(io_error("create", dir))?;
        let marker = dir.join(INCOMPLETE_RESTORE);
        match fs.birth(&marker) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Io { op: "read", path: marker, source }),
            Ok(_) => {
                let what = "'ombak restore' has not finished here: empty the directory and run it again".into();
                return Err(OpenError::Unusable { path: marker, what });
            }
        }
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

    /// Starts the node: consumes the mark of a clean end, if there is a valid one, and counts the start.
    pub fn start(&self, ring_size: u32) -> Result<(Identity, Option<CleanMark>), OpenError> {
        let mark = self.take_clean_mark()?;
        let identity = match read::<Identity>(&*self.fs, &self.dir, IDENTITY, IDENTITY_FORMATS)? {
            Some(found) if found.ring_size != ring_size => {
                return Err(OpenError::Config(format!(
                    "the data in {} is laid out for ring_size {}, and the configuration says {ring_size}; set \
                     ring_size = {} or use another data directory",
                    self.dir.display(),
                    found.ring_size,
                    found.ring_size
                )));
            }
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
        let mark = mark.filter(|m| m.boot + 1 == identity.boot);
        Ok((identity, mark))
    }

    fn take_clean_mark(&self) -> Result<Option<CleanMark>, OpenError> {
        let path = self.dir.join(CLEAN_MARK);
        // A mark that does not decode proves nothing; it goes all the same.
        let mark = match read::<CleanMark>(&*self.fs, &self.dir, CLEAN_MARK, MARK_FORMATS) {
            Ok(None) => return Ok(None),
            Ok(mark) => {
                let birth = self.fs.birth(&path).map_err(io_error("read", &path))?;
                mark.filter(|mark| FileBirth { inode: mark.inode, created_ns: mark.created_ns } == birth)
            }
            Err(OpenError::Unusable { .. }) => None,
            Err(e) => return Err(e),
        };
        self.fs.remove_file(&path).map_err(io_error("remove", &path))?;
        self.fs.sync_dir(&self.dir).map_err(io_error("sync", &self.dir))?;
        Ok(mark)
    }

    /// Leaves the mark of a clean end. Everything else must have been closed.
    pub fn mark_clean(&self, boot: u64, stores: u64, actors: ActorState) -> Result<(), OpenError> {
        let ActorState { id: actor, next_ticket, floor } = actors;
        let path = self.dir.join(CLEAN_MARK);
        let content = |new: &Path| {
            let FileBirth { inode, created_ns } = self.fs.birth(new)?;
            let format = MARK_FORMATS.current;
            let mark = CleanMark { format, boot, actor, next_ticket, floor, stores, inode, created_ns };
            saved_json::to_text(&mark).map_err(io::Error::from)
        };
        replace_file_with(&*self.fs, &path, content).map_err(io_error("write", &path))
    }

    fn replace<T: Serialize>(&self, name: &str, value: &T) -> Result<(), OpenError> {
        let path = self.dir.join(name);
        let text = saved_json::to_text(value).map_err(io::Error::from).map_err(io_error("write", &path))?;
        replace_file(&*self.fs, &path, &text).map_err(io_error("write", &path))
    }
}

/// Examines the files of a directory that no node runs on. The errors say what is damaged.
pub fn examine_files(fs: &Arc<dyn FileSystem>, dir: &Path) -> Vec<OpenError> {
    let identity = match read::<Identity>(&**fs, dir, IDENTITY, IDENTITY_FORMATS) {
        Ok(Some(_)) => None,
        Ok(None) => {
            let what = "is missing: the next start takes this for a new node; put back the copy of your last backup";
            Some(OpenError::Unusable { path: dir.join(IDENTITY), what: what.into() })
        }
        Err(error) => Some(error),
    };
    let mark = match read::<CleanMark>(&**fs, dir, CLEAN_MARK, MARK_FORMATS) {
        Err(OpenError::Unusable { path, .. }) => {
            let what = "is damaged: the next start ignores it, and begins as one after a crash";
            Some(OpenError::Unusable { path, what: what.into() })
        }
        other => other.err(),
    };
    identity.into_iter().chain(mark).chain(buckets::examine_file(fs, dir)).collect()
}

/// Reads a file of a directory; none when there is none.
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
        // Far longer than any that was written.
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

    const STATE: ActorState = ActorState { id: u64::MAX - 1, next_ticket: 5, floor: 3 };

    fn open(dir: &Path) -> Result<NodeFiles, OpenError> {
        NodeFiles::open(Arc::new(RealFs), dir)
    }

    #[test]
    fn boots_are_counted_and_identity_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (first, mark) = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!((first.boot, mark), (1, None));
        let (second, mark) = open(dir.path()).unwrap().start(64).unwrap();
        assert_eq!((second.boot, mark), (2, None));
        assert_eq!(second, Identity { boot: 2, ..first });
    }

    #[test]
    fn a_clean_mark_serves_one_start() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        let (identity, _) = files.start(64).unwrap();
        files.mark_clean(identity.boot, 0xABCD, STATE).unwrap();
        drop(files);
        let mark = open(dir.path()).unwrap().start(64).unwrap().1.unwrap();
        assert_eq!((mark.actor, mark.next_ticket, mark.floor, mark.stores), (u64::MAX - 1, 5, 3, 0xABCD));
        assert_eq!(open(dir.path()).unwrap().start(64).unwrap().1, None);
    }

    #[test]
    fn the_mark_of_an_earlier_boot_is_worthless() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        files.start(64).unwrap();
        files.start(64).unwrap();
        files.mark_clean(1, 7, STATE).unwrap();
        assert_eq!(files.start(64).unwrap().1, None);
    }

    #[test]
    fn a_copied_mark_and_one_of_another_version_are_worthless() {
        let dir = tempfile::tempdir().unwrap();
        let files = open(dir.path()).unwrap();
        let mark = dir.path().join(CLEAN_MARK);
        let (identity, _) = files.start(64).unwrap();
        files.mark_clean(identity.boot, 7, STATE).unwrap();
        std::fs::copy(&mark, dir.path().join("copy")).unwrap();
        std::fs::rename(dir.path().join("copy"), &mark).unwrap();
        assert_eq!(files.start(64).unwrap().1, None, "a copied directory is another node's past");
        std::fs::write(&mark, "{\"format\": 1, \"boot\": 2, \"actor\": \"7\", \"next_ticket\": 5, \"floor\": 3}")
            .unwrap();
        assert_eq!(files.start(64).unwrap().1, None);
        assert!(!mark.exists());
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
        let (identity, _) = files.start(64).unwrap();
        files.mark_clean(identity.boot, 7, STATE).unwrap();
        assert_eq!(examine(), Vec::<String>::new());
        for name in [IDENTITY, CLEAN_MARK] {
            let path = dir.path().join(name);
            let good = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, good.replace("\"boot\": 1", "\"boot\": 3")).unwrap();
            let said = examine();
            assert!(said.len() == 1 && said[0].contains(&format!("{name}: is damaged")), "{said:?}");
            std::fs::write(&path, good).unwrap();
        }
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
