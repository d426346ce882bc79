//! The file in which a node keeps its marks.
//!
//! The file is replaced as a whole, with a checksum. Each mark names the stores of both nodes, so a
//! copy of the file beside other stores says nothing.

use super::marks::{Known, Marks, PeerStore, Towards};
use crate::replica::ClassId;
use ombak_node_files::saved_json::{self, Formats};
use ombak_node_files::{NodeFileError, hex, read_saved};
use ombak_storage::fs::{FileSystem, replace_file};
use ombak_types::NodeId;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file in the directory of a node.
pub(crate) const FILE_NAME: &str = "sync-marks.json";
/// An upper bound: 1,024 partitions with some classes and peers each take less.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The first version is written with a checksum, too.
const FORMATS: Formats = Formats { without_checksum: 1, current: 1 };

/// One mark. Which store is whose depends on the list that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedMark {
    partition: u32,
    n: u32,
    peer: NodeId,
    /// The store whose versions were included.
    #[serde(with = "hex")]
    from_store: u64,
    seq: u64,
    /// The store in which they were included, and its token.
    #[serde(with = "hex")]
    at_store: u64,
    #[serde(with = "hex")]
    at_token: u64,
    at_seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedToken {
    partition: u32,
    n: u32,
    #[serde(with = "hex")]
    store: u64,
    #[serde(with = "hex")]
    token: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    /// What of this node was included at others.
    towards: Vec<SavedMark>,
    /// What of others was included here.
    known: Vec<SavedMark>,
    /// A trial version kept tokens here. They are not used: `Fullness` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<SavedToken>,
}

type StoreAt = (PeerStore, u64);

fn saved_mark((class, peer): (ClassId, NodeId), from_store: u64, seq: u64, (at, at_seq): StoreAt) -> SavedMark {
    let ClassId { partition, n } = class;
    SavedMark { partition, n, peer, from_store, seq, at_store: at.store_id, at_token: at.token, at_seq }
}

impl SavedMark {
    const fn place(&self) -> (ClassId, NodeId) {
        (ClassId { partition: self.partition, n: self.n }, self.peer)
    }

    const fn at(&self) -> PeerStore {
        PeerStore { store_id: self.at_store, token: self.at_token }
    }
}

impl Saved {
    fn of(marks: &Marks) -> Self {
        let towards = marks
            .towards
            .iter()
            .map(|(at, mark)| saved_mark(*at, mark.own_store, mark.seq, (mark.peer, mark.peer_seq)));
        let known =
            marks.known.iter().map(|(at, known)| saved_mark(*at, known.store, known.seq, (known.own, known.own_seq)));
        Self { format: FORMATS.current, towards: towards.collect(), known: known.collect(), tokens: Vec::new() }
    }

    fn marks(&self) -> Marks {
        let towards = self.towards.iter().map(|mark| {
            let SavedMark { from_store, seq, at_seq, .. } = *mark;
            (mark.place(), Towards { own_store: from_store, seq, peer: mark.at(), peer_seq: at_seq })
        });
        let known = self.known.iter().map(|mark| {
            let SavedMark { from_store, seq, at_seq, .. } = *mark;
            (mark.place(), Known { store: from_store, seq, own: mark.at(), own_seq: at_seq })
        });
        Marks { towards: towards.collect(), known: known.collect() }
    }
}

/// The file.
pub(crate) struct MarksFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl MarksFile {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, data_dir: &Path) -> Self {
        Self { fs, path: data_dir.join(FILE_NAME) }
    }

    /// Reads the file; no marks if there is none.
    pub(crate) fn load(&self) -> Result<Marks, NodeFileError> {
        let remedy = "without it, keys that were removed may come back from a node that was set back: put back a copy \
                      of it, or remove the file if no store of the cluster was set back";
        let saved = read_saved::<Saved>(&*self.fs, self.path.clone(), FILE_BYTES_MAX, FORMATS, remedy)?;
        Ok(saved.map(|saved| saved.marks()).unwrap_or_default())
    }

    /// Replaces the file. After a success the marks survive a loss of power. Blocks.
    pub(crate) fn save(&self, marks: &Marks) -> io::Result<()> {
        replace_file(&*self.fs, &self.path, &saved_json::to_text(&Saved::of(marks))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn marks() -> Marks {
        let class = ClassId { partition: 12, n: 3 };
        let (here, there) =
            (PeerStore { store_id: 1, token: u64::MAX }, PeerStore { store_id: u64::MAX - 1, token: 2 });
        let towards = Towards { own_store: 1, seq: 300, peer: there, peer_seq: 5 };
        let known = Known { store: u64::MAX - 1, seq: 7, own: here, own_seq: 1 << 40 };
        Marks {
            towards: [((class, NodeId::new(u64::MAX)), towards)].into(),
            known: [((class, NodeId::new(u64::MAX)), known)].into(),
        }
    }

    fn file_in(dir: &Path) -> MarksFile {
        MarksFile::new(Arc::new(RealFs), dir)
    }

    #[test]
    fn what_was_saved_is_loaded_and_damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = file_in(dir.path());
        assert_eq!(file.load().unwrap(), Marks::default());
        file.save(&marks()).unwrap();
        assert_eq!(file.load().unwrap(), marks());
        let path = dir.path().join(FILE_NAME);
        let text = std::fs::read(&path).unwrap();
        for length in [0, 1, text.len() / 2, text.len() - 1] {
            std::fs::write(&path, &text[..length]).unwrap();
            assert!(matches!(file.load(), Err(NodeFileError::Unusable { .. })), "{length} bytes");
        }
    }

    #[test]
    fn the_file_has_the_bytes_of_version_2() {
        let dir = tempfile::tempdir().unwrap();
        let file = file_in(dir.path());
        file.save(&marks()).unwrap();
        let path = dir.path().join(FILE_NAME);
        let written = std::fs::read(&path).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, FILE_NAME, &written);
        std::fs::write(path, frozen).unwrap();
        assert_eq!(file.load().unwrap(), marks());
    }

    #[test]
    fn the_file_of_a_trial_version_is_read_without_its_tokens() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), WITH_TOKENS).unwrap();
        assert_eq!(file_in(dir.path()).load().unwrap(), marks());
    }

    const WITH_TOKENS: &str = r#"{
  "checksum": "ef68f2a05164f45a",
  "format": 1,
  "towards": [
    {
      "partition": 12,
      "n": 3,
      "peer": "ffffffffffffffff",
      "from_store": "0000000000000001",
      "seq": 300,
      "at_store": "fffffffffffffffe",
      "at_token": "0000000000000002",
      "at_seq": 5
    }
  ],
  "known": [
    {
      "partition": 12,
      "n": 3,
      "peer": "ffffffffffffffff",
      "from_store": "fffffffffffffffe",
      "seq": 7,
      "at_store": "0000000000000001",
      "at_token": "ffffffffffffffff",
      "at_seq": 1099511627776
    }
  ],
  "tokens": [
    {
      "partition": 12,
      "n": 3,
      "store": "0000000000000001",
      "token": "ffffffffffffffff"
    }
  ]
}
"#;
}
