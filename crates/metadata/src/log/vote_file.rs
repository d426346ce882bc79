//! The file of this node's vote. It is replaced as a whole and durably.
//!
//! The file exists as long as the log does and names the log's identity. A log whose vote is
//! missing, or whose vote belongs to another log, is not used: the node could vote twice in one
//! term.

use super::error::LogError;
use super::log_file::io_error;
use ombak_node_files::saved_json::{self, Formats};
use ombak_storage::fs::{FileSystem, read_file, replace_file};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file.
pub(crate) const VOTE_FILE: &str = "metadata-vote.json";
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Each version has a checksum.
const FORMATS: Formats = Formats { without_checksum: 1, current: 1 };

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    /// The identity of the log, in 16 hexadecimal digits.
    log: String,
    vote: Value,
}

/// The vote of a node, and the identity of the log to which it belongs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SavedVote {
    pub log: u64,
    /// What openraft calls a vote; null before the first one.
    pub vote: Value,
}

/// The file in the directory of a node.
pub(crate) struct VoteFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl VoteFile {
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path) -> Self {
        Self { fs, path: dir.join(VOTE_FILE) }
    }

    /// Reads the vote; `None` without a file.
    pub fn read(&self) -> Result<Option<SavedVote>, LogError> {
        let text = match read_file(&*self.fs, &self.path, FILE_BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LogError::Io { op: "read", path: self.path.clone(), source }),
        };
        let unusable = |what| LogError::Unusable { path: self.path.clone(), what };
        let saved: Saved = saved_json::from_text(text, FORMATS).map_err(unusable)?;
        let log = u64::from_str_radix(&saved.log, 16)
            .map_err(|_| unusable(format!("is damaged ({:?} is not the identity of a log)", saved.log)))?;
        Ok(Some(SavedVote { log, vote: saved.vote }))
    }

    /// Replaces the vote.
    pub fn save(&self, saved: &SavedVote) -> Result<(), LogError> {
        let saved = Saved { format: FORMATS.current, log: format!("{:016x}", saved.log), vote: saved.vote.clone() };
        let io = io_error("replace", &self.path);
        let text = saved_json::to_text(&saved).map_err(|e| LogError::Io {
            op: "encode",
            path: self.path.clone(),
            source: e.into(),
        })?;
        replace_file(&*self.fs, &self.path, &text).map_err(io)
    }
}
