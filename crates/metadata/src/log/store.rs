//! The log and the vote of a node together.

use super::error::LogError;
use super::log_file::{LOG_FILE, LogContent, LogFile, io_error};
use super::snapshot_file::SnapshotFile;
use super::vote_file::{SavedVote, VoteFile};
use bytes::Bytes;
use ombak_storage::fs::FileSystem;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The log and the vote of a node. All methods block.
pub(crate) struct LogStore {
    log: LogFile,
    vote_file: VoteFile,
    vote: Value,
}

impl LogStore {
    /// Opens what is in the directory. If there is nothing yet, a log with the identity that
    /// `draw_identity` returns is created.
    pub fn open<E: From<LogError>>(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        draw_identity: impl FnOnce() -> Result<u64, E>,
    ) -> Result<Self, E> {
        // A killed process may have left new names in the page cache only. What is read now counts
        // from now on, so it must not go back at a loss of power.
        fs.sync_dir(dir).map_err(io_error("sync", dir))?;
        let vote_file = VoteFile::new(fs.clone(), dir);
        let saved = vote_file.read()?;
        match (LogFile::open(fs.clone(), dir)?, saved) {
            (Some(log), Some(saved)) if saved.log == log.identity() => Ok(Self { log, vote_file, vote: saved.vote }),
            // A vote that is null was written by a creation that did not finish.
            (Some(_), Some(saved)) if !saved.vote.is_null() => {
                Err(unusable(dir, "does not belong to the vote beside it").into())
            }
            (Some(_), None) => Err(unusable(dir, "has lost its vote: this node could vote twice").into()),
            (None, Some(saved)) if !saved.vote.is_null() => {
                let what = "is missing although this node has voted; remove the vote beside it, too, and the node \
                            takes part under a new identity";
                Err(unusable(dir, what).into())
            }
            _ => Ok(Self::create(fs, dir, draw_identity()?)?),
        }
    }

    /// Creates an empty log and an empty vote. An existing log, vote and snapshot are removed.
    pub fn create(fs: Arc<dyn FileSystem>, dir: &Path, identity: u64) -> Result<Self, LogError> {
        let vote_file = VoteFile::new(fs.clone(), dir);
        vote_file.save(&SavedVote { log: identity, vote: Value::Null })?;
        SnapshotFile::new(fs.clone(), dir).remove()?;
        Ok(Self { log: LogFile::create(fs, dir, identity)?, vote_file, vote: Value::Null })
    }

    /// The random number that tells this log from all others.
    pub fn identity(&self) -> u64 {
        self.log.identity()
    }

    /// What the log holds.
    pub fn content(&self) -> &LogContent {
        self.log.content()
    }

    /// The length of the log's file in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.log.length_bytes()
    }

    /// The vote; null before the first one.
    pub fn vote(&self) -> &Value {
        &self.vote
    }

    /// Replaces the vote.
    pub fn save_vote(&mut self, vote: Value) -> Result<(), LogError> {
        self.vote_file.save(&SavedVote { log: self.log.identity(), vote: vote.clone() })?;
        self.vote = vote;
        Ok(())
    }

    /// Appends entries. Their indexes follow the last one without a gap.
    pub fn append(&mut self, entries: Vec<(u64, Bytes)>) -> Result<(), LogError> {
        self.log.append(entries)
    }

    /// Removes the entries from `index` on.
    pub fn remove_from(&mut self, index: u64) -> Result<(), LogError> {
        self.log.remove_from(index)
    }

    /// Remembers which entry is known to be committed.
    pub fn set_committed(&mut self, which: Bytes) -> Result<(), LogError> {
        self.log.set_committed(which)
    }

    /// Removes the entries up to and including `index`.
    pub fn purge(&mut self, index: u64, which: Bytes) -> Result<(), LogError> {
        self.log.purge(index, which)
    }
}

fn unusable(dir: &Path, what: &str) -> LogError {
    LogError::Unusable { path: dir.join(LOG_FILE), what: what.to_owned() }
}
