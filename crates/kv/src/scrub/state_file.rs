//! How far scrubbing has come, on disk: the file `scrub.json`. It is replaced as a whole. A file
//! that is missing or damaged begins a new round.

use super::schedule::{SavedSchedule, StoreProgress};
use ombak_node_files::read_saved;
use ombak_node_files::saved_json::{self, Formats};
use ombak_storage::ScrubCursor;
use ombak_storage::fs::{FileSystem, replace_file};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

const NAME: &str = "scrub.json";
/// An upper bound: 1,024 partitions take less.
const FILE_BYTES_MAX: u64 = 4 << 20;
const FORMATS: Formats = Formats { without_checksum: 0, current: 1 };

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCursor {
    store: u32,
    in_index: bool,
    lap: u32,
    last_file: u64,
    file: u64,
    offset: u64,
    up_to_seq: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedStore {
    partition: u32,
    store_id: u64,
    done_round: u64,
    last_full_secs: Option<u64>,
    bytes_read: u64,
    damaged: u64,
    obsolete: u64,
    places: u64,
    cursor: SavedCursor,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    round: u64,
    began_secs: u64,
    stores: Vec<SavedStore>,
}

/// The file; see the module.
pub(super) struct StateFile {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl StateFile {
    pub(super) fn new(fs: Arc<dyn FileSystem>, data_dir: &Path) -> Self {
        Self { fs, path: data_dir.join(NAME) }
    }

    /// What was saved last; nothing if that cannot be read.
    pub(super) fn load(&self) -> SavedSchedule {
        let remedy = "scrubbing begins a new round";
        let saved = read_saved::<Saved>(&*self.fs, self.path.clone(), FILE_BYTES_MAX, FORMATS, remedy);
        let saved = saved.unwrap_or_else(|error| {
            warn!(%error, "how far scrubbing has come cannot be read");
            None
        });
        let Some(Saved { round, began_secs, stores, .. }) = saved else { return SavedSchedule::default() };
        let stores = stores.into_iter().map(|store| (store.partition, progress_of(&store)));
        SavedSchedule { round, began_secs, stores: stores.collect() }
    }

    /// Replaces the file. Blocks.
    pub(super) fn save(&self, schedule: &SavedSchedule) -> io::Result<()> {
        let stores = schedule.stores.iter().map(|(partition, progress)| saved_of(*partition, progress));
        let saved = Saved {
            format: FORMATS.current,
            round: schedule.round,
            began_secs: schedule.began_secs,
            stores: stores.collect(),
        };
        replace_file(&*self.fs, &self.path, &saved_json::to_text(&saved)?)
    }
}

fn progress_of(saved: &SavedStore) -> StoreProgress {
    let SavedCursor { store, in_index, lap, last_file, file, offset, up_to_seq } = saved.cursor;
    StoreProgress {
        store_id: saved.store_id,
        done_round: saved.done_round,
        last_full_secs: saved.last_full_secs,
        cursor: ScrubCursor { store, in_index, lap, last_file, file, offset, up_to_seq },
        bytes_read: saved.bytes_read,
        damaged: saved.damaged,
        obsolete: saved.obsolete,
        places: saved.places,
    }
}

fn saved_of(partition: u32, progress: &StoreProgress) -> SavedStore {
    let ScrubCursor { store, in_index, lap, last_file, file, offset, up_to_seq } = progress.cursor;
    SavedStore {
        partition,
        store_id: progress.store_id,
        done_round: progress.done_round,
        last_full_secs: progress.last_full_secs,
        bytes_read: progress.bytes_read,
        damaged: progress.damaged,
        obsolete: progress.obsolete,
        places: progress.places,
        cursor: SavedCursor { store, in_index, lap, last_file, file, offset, up_to_seq },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_fixtures::check_file;
    use ombak_storage::fs::sim::{FaultyFs, Loss};

    fn dir() -> &'static Path {
        Path::new("/node")
    }

    fn saved(round: u64) -> SavedSchedule {
        let cursor = ScrubCursor {
            store: 1,
            in_index: true,
            lap: 2,
            last_file: 9,
            file: 7,
            offset: 4_096 + round,
            up_to_seq: u64::MAX,
        };
        let progress = StoreProgress {
            store_id: 0xFEDC_BA98_7654_3210,
            done_round: 3,
            last_full_secs: Some(1_700_000_000),
            cursor,
            bytes_read: 1 << 40,
            damaged: 5,
            obsolete: 6,
            places: 7,
        };
        let other = StoreProgress { store_id: 1, ..StoreProgress::default() };
        SavedSchedule { round, began_secs: 1_700_000_000, stores: [(17, progress), (18, other)].into() }
    }

    #[test]
    fn the_state_comes_back_and_any_damage_begins_a_new_round() {
        let fs = FaultyFs::new(1);
        fs.create_dir_all(dir()).unwrap();
        let file = StateFile::new(fs.clone(), dir());
        assert_eq!(file.load(), SavedSchedule::default());
        file.save(&saved(4)).unwrap();
        assert_eq!(file.load(), saved(4));
        let path = dir().join(NAME);
        for bit in (0..fs.length(&path).unwrap() * 8).step_by(7) {
            fs.flip_bit(&path, bit).unwrap();
            assert_eq!(file.load(), SavedSchedule::default(), "bit {bit}");
            fs.flip_bit(&path, bit).unwrap();
        }
    }

    /// The first format is that of version 2 of the program.
    #[test]
    fn a_state_has_the_bytes_of_version_2() {
        let fs = FaultyFs::new(1);
        fs.create_dir_all(dir()).unwrap();
        let file = StateFile::new(fs.clone(), dir());
        file.save(&saved(4)).unwrap();
        let written = fs.content(&dir().join(NAME)).unwrap();
        let frozen = check_file(env!("CARGO_MANIFEST_DIR"), 2, NAME, &written);
        replace_file(&*fs, &dir().join(NAME), &frozen).unwrap();
        assert_eq!(file.load(), saved(4));
    }

    /// Whenever the power goes, the state is the one before or the one after.
    #[test]
    fn a_loss_of_power_leaves_one_of_the_two_states() {
        for cut in 1.. {
            let fs = FaultyFs::new(cut);
            fs.create_dir_all(dir()).unwrap();
            fs.sync_dir(Path::new("/")).unwrap();
            StateFile::new(fs.clone(), dir()).save(&saved(1)).unwrap();
            fs.cut_power_at(cut);
            let written = StateFile::new(fs.clone(), dir()).save(&saved(2));
            let fs = fs.restart(Loss::Everything);
            let found = StateFile::new(fs.clone(), dir()).load();
            assert!(found == saved(2) || written.is_err() && found == saved(1), "cut {cut}");
            if written.is_ok() {
                assert!(cut > 3, "the calls of a replacement");
                return;
            }
        }
    }
}
