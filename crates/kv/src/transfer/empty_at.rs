//! Up to which seqs this node held nothing of classes of which it is no primary: *empty at s*
//! (docs/design/anti-entropy.md §5).
//!
//! A member that is asked in a round of reaping, and holds nothing of the class, writes down how
//! far its store is. Every copy of the class up to that seq had been handed back and removed. If
//! such a copy is there later, the record of its removal was lost: it is dropped and not pushed.
//!
//! What it is not: it does not count copies (`foreign`).
//!
//! Invariants:
//! * A seq belongs to one store, and to the classes that keys had when it was noted. After a change
//!   of the n_val of a bucket it says nothing.
//! * It is on the disk before the answer to the round. A file that is damaged is left out: it makes
//!   this node know less, and nothing wrong.

use crate::replica::ClassId;
use ombak_node_files::saved_json::{self, Formats};
use ombak_node_files::{NodeFileError, hex, read_saved};
use ombak_storage::fs::{FileSystem, replace_file};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// The name of the file in the directory of a node.
const FILE_NAME: &str = "empty-at.json";
/// An upper bound: 1,024 partitions with some classes each take less.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The first version is written with a checksum, too.
const FORMATS: Formats = Formats { without_checksum: 1, current: 1 };

/// The store of a class, and which keys were in the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmptyStore {
    /// The id of the store.
    #[serde(with = "hex")]
    pub store_id: u64,
    /// A number for the keys of the class: `Snapshot::class_print` of the properties of buckets.
    #[serde(with = "hex")]
    pub class_print: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedSeq {
    partition: u32,
    n: u32,
    #[serde(with = "hex")]
    store_id: u64,
    #[serde(with = "hex")]
    class_print: u64,
    seq: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    classes: Vec<SavedSeq>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Noted {
    store: EmptyStore,
    seq: u64,
    /// How many foreign copies of the class had been begun in this run; none if an earlier run has
    /// noted this.
    begun: Option<u64>,
}

/// Up to which seqs this node held nothing of classes of which it is no primary.
pub struct EmptyAt {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    /// What the file has.
    noted: Mutex<BTreeMap<ClassId, Noted>>,
}

impl EmptyAt {
    pub(crate) fn open(fs: Arc<dyn FileSystem>, data_dir: &Path) -> Result<Self, NodeFileError> {
        let path = data_dir.join(FILE_NAME);
        let remedy = "this node may hand back copies that it had handed back before";
        let saved = match read_saved::<Saved>(&*fs, path.clone(), FILE_BYTES_MAX, FORMATS, remedy) {
            Err(why @ NodeFileError::Unusable { .. }) => {
                warn!(%why, "a file is left out");
                None
            }
            saved => saved?,
        };
        let noted = saved.into_iter().flat_map(|saved| saved.classes).map(|class| {
            let SavedSeq { partition, n, store_id, class_print, seq } = class;
            let store = EmptyStore { store_id, class_print };
            (ClassId { partition, n }, Noted { store, seq, begun: None })
        });
        let noted = Mutex::new(noted.collect());
        Ok(Self { fs, path, noted })
    }

    /// Notes durably that nothing of a class was in a store at a seq. `begun` is the number of
    /// foreign copies of the class that were begun in this run: where none came since the last
    /// note, that one says as much. Blocks.
    pub fn note(&self, class: ClassId, store: EmptyStore, seq: u64, begun: u64) -> io::Result<()> {
        let mut noted = self.noted.lock();
        let is_known = |before: &Noted| before.store == store && (before.begun == Some(begun) || before.seq >= seq);
        if noted.get(&class).is_some_and(is_known) {
            return Ok(());
        }
        let mut next = noted.clone();
        next.insert(class, Noted { store, seq, begun: Some(begun) });
        let classes = next.iter().map(|(class, noted)| SavedSeq {
            partition: class.partition,
            n: class.n,
            store_id: noted.store.store_id,
            class_print: noted.store.class_print,
            seq: noted.seq,
        });
        let saved = Saved { format: FORMATS.current, classes: classes.collect() };
        replace_file(&*self.fs, &self.path, &saved_json::to_text(&saved)?)?;
        *noted = next;
        Ok(())
    }

    /// The seq at which nothing of a class was in a store; 0 if that is not known.
    pub fn of(&self, class: ClassId, store: EmptyStore) -> u64 {
        let noted = self.noted.lock();
        noted.get(&class).filter(|noted| noted.store == store).map_or(0, |noted| noted.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    const CLASS: ClassId = ClassId { partition: 1, n: 3 };
    const STORE: EmptyStore = EmptyStore { store_id: u64::MAX, class_print: 5 };

    fn open(dir: &Path) -> EmptyAt {
        EmptyAt::open(Arc::new(RealFs), dir).unwrap()
    }

    #[test]
    fn what_was_noted_outlives_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let empty_at = open(dir.path());
        assert_eq!(empty_at.of(CLASS, STORE), 0);
        empty_at.note(CLASS, STORE, 40, 2).unwrap();
        let again = open(dir.path());
        assert_eq!(again.of(CLASS, STORE), 40);
        for other in [EmptyStore { store_id: 1, ..STORE }, EmptyStore { class_print: 6, ..STORE }] {
            assert_eq!(again.of(CLASS, other), 0, "it says nothing of {other:?}");
        }
        assert_eq!(again.of(ClassId { n: 2, ..CLASS }, STORE), 0);
        again.note(CLASS, EmptyStore { store_id: 1, ..STORE }, 3, 0).unwrap();
        assert_eq!(again.of(CLASS, STORE), 0, "the store was replaced");
    }

    #[test]
    fn nothing_is_written_while_no_copy_has_come() {
        let dir = tempfile::tempdir().unwrap();
        let empty_at = open(dir.path());
        empty_at.note(CLASS, STORE, 40, 2).unwrap();
        empty_at.note(CLASS, STORE, 50, 2).unwrap();
        assert_eq!(empty_at.of(CLASS, STORE), 40);
        empty_at.note(CLASS, STORE, 60, 3).unwrap();
        assert_eq!(open(dir.path()).of(CLASS, STORE), 60);
    }

    #[test]
    fn a_damaged_file_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).note(CLASS, STORE, 40, 2).unwrap();
        let path = dir.path().join(FILE_NAME);
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        let again = open(dir.path());
        assert_eq!(again.of(CLASS, STORE), 0);
        again.note(CLASS, STORE, 41, 0).unwrap();
        assert_eq!(open(dir.path()).of(CLASS, STORE), 41);
    }
}
