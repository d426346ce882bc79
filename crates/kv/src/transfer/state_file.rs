//! The file in which a node keeps what it knows of its replicas: classes that are not full, owed
//! marks and checkpoints, and the placement by which it has its classes.
//!
//! The file exists once the node has been in a cluster. It is replaced as a whole at each
//! checkpoint. `is_closed` says that the process ended in order: then the marks are complete.
//! Otherwise everything that a store appended after its checkpoint is owed to all peers.

use super::classes::{Filling, KnownStore};
use super::owed::Owed;
use crate::replica::ClassId;
use ombak_node_files::saved_json::{self, Formats};
use ombak_node_files::{NodeFileError, read_saved};
use ombak_ring::placement::Placement;
use ombak_storage::fs::{FileSystem, replace_file};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file in the directory of a node.
const FILE_NAME: &str = "replicas.json";
/// An upper bound: 1,024 partitions with marks for every class and peer take less.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The first version is written with a checksum, too. It lacks what is set aside.
const FORMATS: Formats = Formats { without_checksum: 1, current: 2 };

/// What is saved of one partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedPartition {
    pub(crate) number: u32,
    pub(crate) store: KnownStore,
    /// Every put that had appended up to this seq had ended.
    pub(crate) checkpoint_seq: u64,
    /// The seq up to which versions are set aside; 0: none is.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(crate) set_aside_to: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) filling: Option<Filling>,
    /// The seq up to which copies are in doubt; 0: none is. Earlier versions of the program do not
    /// know it, nor the tokens.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub(crate) doubt_to: u64,
    /// The fullness tokens of the classes, by ascending n.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) tokens: Vec<SavedToken>,
}

/// The fullness token of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedToken {
    pub(crate) n: u32,
    #[serde(with = "ombak_node_files::hex")]
    pub(crate) token: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMark {
    partition: u32,
    n: u32,
    peer: NodeId,
    since_seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    is_closed: bool,
    partitions: Vec<SavedPartition>,
    owed: Vec<SavedMark>,
    /// None as long as the ring has never changed. Earlier versions of the program do not know it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    placement: Option<Placement>,
}

/// What a node knows of its replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaState {
    /// Whether the process ended in order after this was saved.
    pub(crate) is_closed: bool,
    pub(crate) partitions: Vec<SavedPartition>,
    pub(crate) owed: Vec<Owed>,
    /// The placement that the node has adopted last, if the ring has changed.
    pub(crate) placement: Option<Placement>,
}

/// The file.
pub(crate) struct StateFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl StateFile {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, data_dir: &Path) -> Self {
        Self { fs, path: data_dir.join(FILE_NAME) }
    }

    /// Reads the file; `None` when there is none.
    pub(crate) fn load(&self) -> Result<Option<ReplicaState>, NodeFileError> {
        let remedy = "without it this node does not know what it owes to others: put back a copy of it";
        let saved = read_saved::<Saved>(&*self.fs, self.path.clone(), FILE_BYTES_MAX, FORMATS, remedy)?;
        let Some(saved) = saved else { return Ok(None) };
        let owed = saved.owed.iter().map(|mark| Owed {
            class: ClassId { partition: mark.partition, n: mark.n },
            peer: mark.peer,
            since_seq: mark.since_seq,
        });
        let Saved { is_closed, partitions, placement, .. } = saved;
        Ok(Some(ReplicaState { is_closed, partitions, owed: owed.collect(), placement }))
    }

    /// Replaces the file. After a success the state survives a power loss. Blocks.
    pub(crate) fn save(&self, state: &ReplicaState) -> io::Result<()> {
        let owed = state.owed.iter().map(|owed| SavedMark {
            partition: owed.class.partition,
            n: owed.class.n,
            peer: owed.peer,
            since_seq: owed.since_seq,
        });
        let saved = Saved {
            format: FORMATS.current,
            is_closed: state.is_closed,
            partitions: state.partitions.clone(),
            owed: owed.collect(),
            placement: state.placement.clone(),
        };
        replace_file(&*self.fs, &self.path, &saved_json::to_text(&saved)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::FillReason;
    use super::*;
    use ombak_storage::fs::RealFs;

    fn state(set_aside_to: u64) -> ReplicaState {
        let store = KnownStore { store_id: u64::MAX - 1, boot: 4, lost_ranges: 2 };
        let filling = Filling { reason: FillReason::LostWrites, full: [1, 3].into() };
        ReplicaState {
            is_closed: true,
            partitions: vec![
                SavedPartition {
                    number: 0,
                    store,
                    checkpoint_seq: 12,
                    set_aside_to,
                    filling: Some(filling),
                    doubt_to: 0,
                    tokens: Vec::new(),
                },
                SavedPartition {
                    number: 1,
                    store: KnownStore::default(),
                    checkpoint_seq: 0,
                    set_aside_to: 0,
                    filling: None,
                    doubt_to: 0,
                    tokens: Vec::new(),
                },
            ],
            owed: vec![Owed { class: ClassId { partition: 0, n: 3 }, peer: NodeId::new(u64::MAX), since_seq: 7 }],
            placement: None,
        }
    }

    #[test]
    fn what_was_saved_is_loaded_and_damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(Arc::new(RealFs), dir.path());
        assert_eq!(file.load().unwrap(), None);
        file.save(&state(9)).unwrap();
        assert_eq!(file.load().unwrap(), Some(state(9)));
        let path = dir.path().join(FILE_NAME);
        let text = std::fs::read(&path).unwrap();
        for length in [0, 1, text.len() / 2, text.len() - 1] {
            std::fs::write(&path, &text[..length]).unwrap();
            assert!(matches!(file.load(), Err(NodeFileError::Unusable { .. })), "{length} bytes");
        }
    }

    #[test]
    fn the_file_has_the_bytes_of_version_1() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let file = StateFile::new(Arc::new(RealFs), dir.path());
        let partition = |(number, reason)| SavedPartition {
            filling: Some(Filling { reason, full: [1, 3].into() }),
            number,
            ..state(0).partitions[0].clone()
        };
        let reasons = [FillReason::NewStore, FillReason::LostWrites, FillReason::Restored, FillReason::Unreadable];
        let mut all = ReplicaState { is_closed: false, ..state(9) };
        all.partitions.extend((300..).zip(reasons).map(partition));
        file.save(&all).unwrap();
        let frozen =
            ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 1, FILE_NAME, &std::fs::read(&path).unwrap());
        std::fs::write(path, frozen).unwrap();
        assert_eq!(file.load().unwrap(), Some(all));
    }

    #[test]
    fn doubt_and_tokens_are_saved_and_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(Arc::new(RealFs), dir.path());
        let mut all = state(9);
        all.partitions[0].doubt_to = 300;
        all.partitions[1].tokens = vec![SavedToken { n: 1, token: 7 }, SavedToken { n: 3, token: u64::MAX }];
        file.save(&all).unwrap();
        let path = dir.path().join(FILE_NAME);
        let written = std::fs::read(&path).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, FILE_NAME, &written);
        std::fs::write(path, frozen).unwrap();
        assert_eq!(file.load().unwrap(), Some(all));
    }

    #[test]
    fn a_placement_is_saved_and_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(Arc::new(RealFs), dir.path());
        let ring = ombak_ring::Ring::from_owners(&[NodeId::new(1); 8], ombak_ring::RingVersion::first(3)).unwrap();
        let state = ReplicaState { placement: Some(Placement::of_ring(Arc::new(ring))), ..state(0) };
        file.save(&state).unwrap();
        assert_eq!(file.load().unwrap(), Some(state));
    }

    #[test]
    fn the_first_format_stays_readable() {
        let dir = tempfile::tempdir().unwrap();
        let file = StateFile::new(Arc::new(RealFs), dir.path());
        std::fs::write(dir.path().join(FILE_NAME), FIRST_FORMAT).unwrap();
        assert_eq!(file.load().unwrap(), Some(state(0)));
    }

    const FIRST_FORMAT: &str = r#"{
  "checksum": "c0259069e6b8a311",
  "format": 1,
  "is_closed": true,
  "partitions": [
    {
      "number": 0,
      "store": {
        "store_id": "fffffffffffffffe",
        "boot": 4,
        "lost_ranges": 2
      },
      "checkpoint_seq": 12,
      "filling": {
        "reason": "lost_writes",
        "full": [
          1,
          3
        ]
      }
    },
    {
      "number": 1,
      "store": {
        "store_id": "0000000000000000",
        "boot": 0,
        "lost_ranges": 0
      },
      "checkpoint_seq": 0
    }
  ],
  "owed": [
    {
      "partition": 0,
      "n": 3,
      "peer": "ffffffffffffffff",
      "since_seq": 7
    }
  ]
}
"#;
}
