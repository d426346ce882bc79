//! What a directory holds, for a node that looks before it takes part.

use super::machine::position_of;
use super::types::{Entry, EntryId, SnapshotMeta, Vote};
use crate::log::{LogError, LogStore, SnapshotFile};
use crate::state::{Metadata, RaftId};
use ombak_storage::fs::FileSystem;
use openraft::EntryPayload;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::Arc;

/// How far a log is. The order is that of the life of one log: terms only rise, and within one term
/// the log only grows. A new term may begin with a shorter log, because a new leader takes back
/// entries that were not committed. So indexes compare only within one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogProgress {
    /// The term of the last vote.
    pub term: u64,
    /// The index of the last entry; 0 if there is none.
    pub index: u64,
}

impl LogProgress {
    /// Whether a log that is so far lacks something that another node has seen in it.
    pub fn is_behind(self, seen: Self) -> bool {
        self < seen
    }
}

/// What a directory holds.
#[derive(Clone, Debug)]
pub struct SavedMetadata {
    /// The state after the last entry that is known to be committed.
    pub metadata: Metadata,
    /// The identity of the log.
    pub log: RaftId,
    /// How far the log is.
    pub progress: LogProgress,
}

impl SavedMetadata {
    /// Reads a directory in which a node has taken part before. It fails if the log is missing.
    /// Blocks.
    pub fn read(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, LogError> {
        let unusable = |what: String| LogError::Unusable { path: dir.to_owned(), what };
        let lost = || Err(unusable("has lost its log: put back the newest copy of this directory".into()));
        let store = LogStore::open(fs.clone(), dir, lost)?;
        let vote: Option<Vote> = serde_json::from_value(store.vote().clone()).map_err(|e| unusable(e.to_string()))?;
        let (mut metadata, mut applied) = (Metadata::default(), None);
        if let Some(saved) = SnapshotFile::new(fs, dir).read()? {
            let Description { meta } = from_json(&saved.description).map_err(unusable)?;
            let position = position_of(&meta, &saved.state).map_err(|e| unusable(e.to_string()))?;
            (metadata, applied) = (position.metadata, position.applied.map(|applied| applied.index));
        }
        let content = store.content();
        let committed: Option<EntryId> = match &content.committed {
            Some(which) => from_json(which).map_err(unusable)?,
            None => None,
        };
        for (index, entry) in &content.entries {
            if Some(*index) <= applied || committed.is_none_or(|committed| *index > committed.index) {
                continue;
            }
            let entry: Entry = from_json(entry).map_err(unusable)?;
            if let EntryPayload::Normal(command) = entry.payload {
                // A refused command changes nothing.
                let _ = metadata.apply(*index, command);
            }
        }
        let last = content.entries.last_key_value().map(|(index, _)| *index);
        let index = last.max(content.purged.as_ref().map(|(index, _)| *index)).unwrap_or(0);
        let term = vote.map_or(0, |vote| vote.leader_id().get_term());
        Ok(Self { metadata, log: RaftId::new(store.identity()), progress: LogProgress { term, index } })
    }
}

/// The part of a snapshot's description that counts here.
#[derive(serde::Deserialize)]
struct Description {
    meta: SnapshotMeta,
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("is damaged ({e})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_compare_only_within_one_term() {
        let progress = |(term, index)| LogProgress { term, index };
        let is_behind = |own, seen| progress(own).is_behind(progress(seen));
        assert!(!is_behind((4, 10), (3, 12)), "the leader of term 4 took back what was not committed");
        assert!(is_behind((3, 12), (4, 10)));
        assert!(is_behind((3, 10), (3, 12)) && !is_behind((3, 12), (3, 12)) && !is_behind((3, 13), (3, 12)));
    }
}
