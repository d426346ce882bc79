//! The file in which a node keeps its marks, and the marks in memory.
//!
//! The file is replaced as a whole, with a checksum. Whoever changes a mark waits until a file has
//! it; several that wait share one.

use super::marks::{Known, Marks, PeerStore, Towards};
use ombak_kv::ClassId;
use ombak_node_files::saved_json::{self, Formats};
use ombak_node_files::{NodeFileError, hex, read_saved};
use ombak_storage::fs::{FileSystem, replace_file};
use ombak_types::NodeId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the file in the directory of a node.
const FILE_NAME: &str = "sync-marks.json";
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
        let tokens = marks.tokens.iter().map(|(class, own)| SavedToken {
            partition: class.partition,
            n: class.n,
            store: own.store_id,
            token: own.token,
        });
        Self { format: FORMATS.current, towards: towards.collect(), known: known.collect(), tokens: tokens.collect() }
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
        let tokens = self.tokens.iter().map(|saved| {
            let class = ClassId { partition: saved.partition, n: saved.n };
            (class, PeerStore { store_id: saved.store, token: saved.token })
        });
        Marks { towards: towards.collect(), known: known.collect(), tokens: tokens.collect() }
    }
}

struct Present {
    marks: Marks,
    /// Rises with each change.
    version: u64,
}

/// The marks of a node, and the file that has them.
pub(crate) struct SavedMarks {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    present: Mutex<Present>,
    /// The version that the file has. Locked while it is written, and never while the marks are
    /// locked.
    saved_version: Mutex<u64>,
}

impl SavedMarks {
    /// Reads the file, if there is one.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, data_dir: &Path) -> Result<Self, NodeFileError> {
        let path = data_dir.join(FILE_NAME);
        let remedy = "without it, keys that were removed may come back from a node that was set back: put back a copy \
                      of it, or remove the file if no store of the cluster was set back";
        let saved = read_saved::<Saved>(&*fs, path.clone(), FILE_BYTES_MAX, FORMATS, remedy)?;
        let marks = saved.map(|saved| saved.marks()).unwrap_or_default();
        let present = Mutex::new(Present { marks, version: 0 });
        Ok(Self { fs, path, present, saved_version: Mutex::new(0) })
    }

    /// Reads marks.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Marks) -> T) -> T {
        read(&self.present.lock().marks)
    }

    /// Changes marks, and returns when the file has what is there then. `change` says whether it
    /// changed anything. Also without a change the file has everything that this call has seen.
    /// Blocks.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Marks) -> bool) -> io::Result<()> {
        let seen = {
            let mut present = self.present.lock();
            if change(&mut present.marks) {
                present.version += 1;
            }
            present.version
        };
        let mut saved_version = self.saved_version.lock();
        if *saved_version >= seen {
            return Ok(());
        }
        let (saved, version) = {
            let present = self.present.lock();
            (Saved::of(&present.marks), present.version)
        };
        replace_file(&*self.fs, &self.path, &saved_json::to_text(&saved)?)?;
        *saved_version = version;
        Ok(())
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
            tokens: [(class, here)].into(),
        }
    }

    fn open(dir: &Path) -> Result<SavedMarks, NodeFileError> {
        SavedMarks::open(Arc::new(RealFs), dir)
    }

    #[test]
    fn what_was_saved_is_loaded_and_damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let saved = open(dir.path()).unwrap();
        saved.change(|_| false).unwrap();
        let path = dir.path().join(FILE_NAME);
        assert!(!path.exists(), "nothing was noted");
        saved
            .change(|present| {
                *present = marks();
                true
            })
            .unwrap();
        assert_eq!(open(dir.path()).unwrap().read(Marks::clone), marks());
        let text = std::fs::read(&path).unwrap();
        for length in [0, 1, text.len() / 2, text.len() - 1] {
            std::fs::write(&path, &text[..length]).unwrap();
            assert!(matches!(open(dir.path()), Err(NodeFileError::Unusable { .. })), "{length} bytes");
        }
    }

    #[test]
    fn the_file_has_the_bytes_of_version_2() {
        let dir = tempfile::tempdir().unwrap();
        let saved = open(dir.path()).unwrap();
        saved
            .change(|present| {
                *present = marks();
                true
            })
            .unwrap();
        let path = dir.path().join(FILE_NAME);
        let written = std::fs::read(&path).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 2, FILE_NAME, &written);
        std::fs::write(path, frozen).unwrap();
        assert_eq!(open(dir.path()).unwrap().read(Marks::clone), marks());
    }
}
