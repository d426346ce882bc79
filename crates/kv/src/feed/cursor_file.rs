//! The places of one consumer in the feeds of all partitions, on disk.

use ombak_node_files::read_saved;
use ombak_node_files::saved_json::{self, Formats};
use ombak_storage::FeedCursor;
use ombak_storage::feed::StorePlace;
use ombak_storage::fs::{FileSystem, replace_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// An upper bound: 1,024 partitions with several stores each take less.
const FILE_BYTES_MAX: u64 = 16 << 20;
const FORMATS: Formats = Formats { without_checksum: 0, current: 1 };

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedPlace {
    store_id: u64,
    run: u64,
    seq: u64,
    lost_ranges: u64,
    removals: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCursor {
    partition: u32,
    seq: u64,
    stores: Vec<SavedPlace>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    cursors: Vec<SavedCursor>,
}

/// The places of one consumer; see the module.
pub(super) struct CursorFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    cursors: BTreeMap<u32, FeedCursor>,
    /// Whether the file has other places.
    is_changed: bool,
}

impl CursorFile {
    /// Reads the file of a consumer. Without it, or if it cannot be read, the consumer has no
    /// places and begins anew.
    pub(super) fn open(fs: Arc<dyn FileSystem>, data_dir: &Path, consumer: &str) -> Self {
        let path = data_dir.join(format!("feed-{consumer}.json"));
        let remedy = "the consumer begins anew";
        let saved = read_saved::<Saved>(&*fs, path.clone(), FILE_BYTES_MAX, FORMATS, remedy);
        let saved = saved.unwrap_or_else(|error| {
            warn!(consumer, %error, "the places of a consumer of changes cannot be read");
            None
        });
        let place = |SavedPlace { store_id, run, seq, lost_ranges, removals }| StorePlace {
            store_id,
            run,
            seq,
            lost_ranges,
            removals,
        };
        let cursors = saved.into_iter().flat_map(|saved| saved.cursors).map(|saved| {
            let stores = saved.stores.into_iter().map(place).collect();
            (saved.partition, FeedCursor { seq: saved.seq, stores })
        });
        Self { fs, path, cursors: cursors.collect(), is_changed: false }
    }

    /// The place in the feed of a partition.
    pub(super) fn get(&self, partition: u32) -> Option<&FeedCursor> {
        self.cursors.get(&partition)
    }

    /// The seq of each place, by partition.
    pub(super) fn seqs(&self) -> BTreeMap<u32, u64> {
        self.cursors.iter().map(|(number, cursor)| (*number, cursor.seq)).collect()
    }

    /// Changes a place, or forgets it. It is on disk after the next [`save`](Self::save).
    pub(super) fn set(&mut self, partition: u32, cursor: Option<FeedCursor>) {
        if self.cursors.get(&partition) == cursor.as_ref() {
            return;
        }
        match cursor {
            Some(cursor) => drop(self.cursors.insert(partition, cursor)),
            None => drop(self.cursors.remove(&partition)),
        }
        self.is_changed = true;
    }

    /// Replaces the file if a place has changed. Blocks.
    pub(super) fn save(&mut self) -> io::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        let place = |place: &StorePlace| {
            let StorePlace { store_id, run, seq, lost_ranges, removals } = *place;
            SavedPlace { store_id, run, seq, lost_ranges, removals }
        };
        let cursors = self.cursors.iter().map(|(partition, cursor)| SavedCursor {
            partition: *partition,
            seq: cursor.seq,
            stores: cursor.stores.iter().map(place).collect(),
        });
        let saved = Saved { format: FORMATS.current, cursors: cursors.collect() };
        replace_file(&*self.fs, &self.path, &saved_json::to_text(&saved)?)?;
        self.is_changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn open(dir: &Path) -> CursorFile {
        CursorFile::open(Arc::new(RealFs), dir, "search")
    }

    #[test]
    fn places_come_back_and_damage_means_to_begin_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = open(dir.path());
        let place = StorePlace { store_id: u64::MAX, run: 3, seq: 17, lost_ranges: 1, removals: 4 };
        let cursor = FeedCursor { seq: 20, stores: vec![place, StorePlace::default()] };
        file.set(7, Some(cursor.clone()));
        file.set(8, Some(FeedCursor::default()));
        file.set(8, None);
        assert!(open(dir.path()).get(7).is_none(), "nothing is saved yet");
        file.save().unwrap();
        assert_eq!(open(dir.path()).get(7), Some(&cursor));
        assert!(open(dir.path()).get(8).is_none());
        let path = dir.path().join("feed-search.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("17", "18");
        std::fs::write(&path, text).unwrap();
        assert!(open(dir.path()).get(7).is_none());
    }
}
