//! Which of several logs in a node's directory is in force.
//!
//! A node that joins a cluster leaves the log of its own cluster behind and begins a new one. The
//! new log gets a directory of its own. One small file says which directory counts, so a loss of
//! power leaves the node with the old log or with the new one.

use crate::log::LogError;
use ombak_node_files::saved_json::{self, Formats};
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const POINTER: &str = "current.json";
const PREFIX: &str = "log-";
const FORMATS: Formats = Formats { without_checksum: 0, current: 1 };
const POINTER_BYTES_MAX: u64 = 64 << 10;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    log: u64,
}

/// The directory in which a node has the directories of its logs. All methods block.
#[derive(Clone)]
pub struct LogDirs {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
}

impl LogDirs {
    /// The logs below `dir`, which need not exist.
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path) -> Self {
        Self { fs, dir: dir.to_owned() }
    }

    /// The file that says which log is in force.
    pub fn pointer(&self) -> PathBuf {
        self.dir.join(POINTER)
    }

    /// The directory of the log in force; `None` if the node has none yet.
    pub fn current(&self) -> Result<Option<PathBuf>, LogError> {
        let path = self.dir.join(POINTER);
        let text = match read_file(&*self.fs, &path, POINTER_BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LogError::Io { op: "read", path, source }),
        };
        let saved: Saved =
            saved_json::from_text(text, FORMATS).map_err(|what| LogError::Unusable { path: path.clone(), what })?;
        Ok(Some(self.dir.join(format!("{PREFIX}{}", saved.log))))
    }

    /// Makes an empty directory for a new log. It is not in force yet.
    pub fn begin(&self) -> Result<PathBuf, LogError> {
        self.begin_inner().map_err(|source| LogError::Io { op: "create", path: self.dir.clone(), source })
    }

    fn begin_inner(&self) -> io::Result<PathBuf> {
        self.fs.create_dir_all(&self.dir)?;
        if let Some(parent) = self.dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.fs.sync_dir(parent)?;
        }
        let number =
            self.fs.list(&self.dir)?.iter().filter_map(|name| number_of(name)).max().map_or(1, |last| last + 1);
        let log = self.dir.join(format!("{PREFIX}{number}"));
        self.fs.create_dir_all(&log)?;
        self.fs.sync_dir(&self.dir)?;
        Ok(log)
    }

    /// Puts a log in force, and removes all others. When this returns, it survives a loss of power.
    pub fn put_in_force(&self, log: &Path) -> Result<(), LogError> {
        let failed = |op, path: &Path| {
            let path = path.to_owned();
            move |source| LogError::Io { op, path, source }
        };
        let path = self.dir.join(POINTER);
        let number = log.file_name().and_then(|name| number_of(name.to_str()?));
        let number = number.ok_or_else(|| LogError::Unusable { path: log.to_owned(), what: "is no log".into() })?;
        let text = saved_json::to_text(&Saved { format: FORMATS.current, log: number }).map_err(io::Error::from);
        let text = text.map_err(failed("write", &path))?;
        replace_file(&*self.fs, &path, &text).map_err(failed("write", &path))?;
        for name in self.fs.list(&self.dir).map_err(failed("read", &self.dir))? {
            let other = self.dir.join(&name);
            if number_of(&name).is_some() && other != log {
                self.remove(&other);
            }
        }
        Ok(())
    }

    /// Removes a log that is not in force. What cannot be removed stays: nothing reads it.
    pub fn remove(&self, log: &Path) {
        let removed = self.fs.list(log).and_then(|names| {
            names.iter().try_for_each(|name| self.fs.remove_file(&log.join(name)))?;
            self.fs.remove_dir(log)
        });
        if let Err(error) = removed {
            tracing::warn!(path = %log.display(), %error, "a metadata log that is not used any more stays");
        }
    }
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::sim::{FaultyFs, Loss};

    #[test]
    fn one_log_is_in_force_whenever_the_power_goes() {
        let dir = Path::new("/data/metadata");
        for call in 1..40 {
            let fs = FaultyFs::new(call);
            fs.create_dir_all(Path::new("/data")).unwrap();
            fs.sync_dir(Path::new("/")).unwrap();
            let first = {
                let dirs = LogDirs::new(fs.clone(), dir);
                assert_eq!(dirs.current().unwrap(), None);
                let first = dirs.begin().unwrap();
                dirs.put_in_force(&first).unwrap();
                first
            };
            fs.cut_power_at(call);
            let dirs = LogDirs::new(fs.clone(), dir);
            let second = dirs.begin().ok();
            let done = second.as_ref().is_some_and(|second| dirs.put_in_force(second).is_ok());
            let fs = fs.restart(Loss::Everything);
            let current = LogDirs::new(fs, dir).current().unwrap().unwrap();
            assert!(current == first || Some(&current) == second.as_ref(), "call {call}: {current:?}");
            assert!(!done || Some(&current) == second.as_ref(), "call {call}: what was put in force stays");
        }
    }
}
