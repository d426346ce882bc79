//! The floors of time of partitions (docs/design/replication.md §6).
//!
//! In a bucket without siblings an expired version that a removal left behind could hide a later
//! value whose coordinator's clock is behind. So a removal raises the floor of its partition to the
//! time of that version first, durably, and a coordinator stamps later times only. Tombstones need
//! a floor only while some member does not take their time before it removes them.

use ombak_node_files::saved_json::{self, Formats};
use ombak_node_files::{NodeFileError, read_saved};
use ombak_storage::fs::{FileSystem, replace_file};
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const FILE_NAME: &str = "reaped.json";
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The first version has a checksum, too.
const FORMATS: Formats = Formats { without_checksum: 0, current: 1 };

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    /// For each partition the floor in microseconds since 1970.
    floors_us: BTreeMap<u32, u64>,
}

/// The floor of each partition, in memory and on the disk.
pub struct Floors {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    floors_us: Box<[AtomicU64]>,
    /// Locked while the file is replaced.
    saving: Mutex<()>,
}

impl Floors {
    /// Reads the floors that were saved last.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &std::path::Path, partitions: u32) -> Result<Self, NodeFileError> {
        let path = dir.join(FILE_NAME);
        let remedy = "without it this node does not know what it reaped: put back a copy of it";
        let saved: Saved = read_saved(&*fs, path.clone(), FILE_BYTES_MAX, FORMATS, remedy)?.unwrap_or_default();
        let floor = |partition| AtomicU64::new(saved.floors_us.get(&partition).copied().unwrap_or(0));
        Ok(Self { fs, path, floors_us: (0..partitions).map(floor).collect(), saving: Mutex::new(()) })
    }

    /// The floor of a partition. A coordinator of a bucket without siblings stamps later times.
    pub(crate) fn of(&self, partition: u32) -> UnixMicros {
        UnixMicros(self.floors_us.get(partition as usize).map_or(0, |floor| floor.load(Ordering::SeqCst)))
    }

    /// Raises the floor of a partition durably. Blocks.
    pub fn raise(&self, partition: u32, to: UnixMicros) -> io::Result<()> {
        if self.of(partition) >= to {
            return Ok(());
        }
        let _saving = self.saving.lock();
        let Some(floor) = self.floors_us.get(partition as usize) else { return Ok(()) };
        // Raised in memory first: no write that begins now may get an earlier time.
        floor.fetch_max(to.0, Ordering::SeqCst);
        let raised = |(partition, floor): (usize, &AtomicU64)| (partition as u32, floor.load(Ordering::SeqCst));
        let floors_us = self.floors_us.iter().enumerate().map(raised).filter(|(_, floor)| *floor > 0).collect();
        let text = saved_json::to_text(&Saved { format: FORMATS.current, floors_us })?;
        replace_file(&*self.fs, &self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    #[test]
    fn floors_rise_and_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Floors::open(Arc::new(RealFs), dir.path(), 8).unwrap();
        let floors = open();
        assert_eq!(floors.of(3), UnixMicros(0));
        floors.raise(3, UnixMicros(70)).unwrap();
        floors.raise(3, UnixMicros(50)).unwrap();
        floors.raise(5, UnixMicros(9)).unwrap();
        for floors in [floors, open()] {
            assert_eq!((floors.of(3), floors.of(4), floors.of(5)), (UnixMicros(70), UnixMicros(0), UnixMicros(9)));
        }
        std::fs::write(dir.path().join(FILE_NAME), "{}").unwrap();
        assert!(Floors::open(Arc::new(RealFs), dir.path(), 8).is_err(), "damage is not an empty file");
    }

    #[test]
    fn the_file_has_the_bytes_of_version_1() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Floors::open(Arc::new(RealFs), dir.path(), 300).unwrap();
        let floors = open();
        floors.raise(299, UnixMicros(1_600_000_000_000_000)).unwrap();
        floors.raise(0, UnixMicros(7)).unwrap();
        let written = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 1, FILE_NAME, &written);
        std::fs::write(dir.path().join(FILE_NAME), frozen).unwrap();
        assert_eq!((open().of(299), open().of(0)), (UnixMicros(1_600_000_000_000_000), UnixMicros(7)));
    }
}
