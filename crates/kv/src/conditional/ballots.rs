//! The ballots that this node has promised.

use super::Ballot;
use crate::deliberate_faults::{BrokenRule, is_broken};
use ombak_node_files::saved_json::{self, Formats};
use ombak_node_files::{NodeFileError, read_saved};
use ombak_storage::fs::{FileSystem, replace_file};
use ombak_types::time::UnixMicros;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64_with_seed;

const FILE_NAME: &str = "ballots.json";
const FILE_BYTES_MAX: u64 = 1 << 16;
/// The first version has a checksum, too.
const FORMATS: Formats = Formats { without_checksum: 0, current: 1 };
/// Number of ballots in memory. Two keys that share one only make a put ask again, with a later
/// time.
const PLACES: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };
/// How far the saved limit is beyond the ballot that raised it, in microseconds: so the file is
/// replaced at most so often. It is also how far into the future the first conditional put after a
/// kill may be dated.
const STEP_US: u64 = 5_000_000;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    format: u32,
    /// No ballot was promised beyond this time, in microseconds since 1970.
    limit_us: u64,
}

/// The latest ballot of each key. What a process has promised is in memory; the file has a limit
/// that is beyond all of it. A start begins from that limit, and from the time of its own clock.
pub(crate) struct Ballots {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    /// What earlier processes may have promised.
    floor: UnixMicros,
    /// The limit that is on the disk.
    limit_us: AtomicU64,
    /// Locked while the file is replaced.
    saving: Mutex<()>,
    /// Made with the first conditional put.
    promised: Mutex<Box<[Ballot]>>,
}

/// What a node says to a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    /// A ballot up to this time was promised before.
    Outbid(UnixMicros),
    /// The limit on the disk must be raised first, which blocks.
    NeedsDisk,
}

impl Ballots {
    /// Reads the limit that was saved last.
    pub(crate) fn open(fs: Arc<dyn FileSystem>, dir: &Path, now: UnixMicros) -> Result<Self, NodeFileError> {
        let path = dir.join(FILE_NAME);
        let remedy = "without it this node does not know what it promised: put back a copy of it";
        let saved: Saved = read_saved(&*fs, path.clone(), FILE_BYTES_MAX, FORMATS, remedy)?.unwrap_or_default();
        let is_forgotten = is_broken(BrokenRule::BallotsOutliveRestarts);
        let floor = if is_forgotten { UnixMicros(0) } else { UnixMicros(saved.limit_us).max(now) };
        let (limit_us, saving) = (AtomicU64::new(saved.limit_us), Mutex::new(()));
        Ok(Self { fs, path, floor, limit_us, saving, promised: Mutex::default() })
    }

    /// Promises a ballot, or accepts a value with it, unless a later one was promised. Called under
    /// the key's lock.
    pub(crate) fn admit(&self, partition: u32, key: &[u8], ballot: Ballot) -> Admission {
        if is_broken(BrokenRule::BallotsAreKept) || is_broken(BrokenRule::PrimariesCheckConditions) {
            return Admission::Admitted;
        }
        if ballot.stamp <= self.floor {
            return Admission::Outbid(self.floor);
        }
        let mut promised = self.promised.lock();
        if promised.is_empty() {
            *promised = vec![Ballot::default(); PLACES].into();
        }
        let place = &mut promised[xxh3_64_with_seed(key, partition.into()) as usize % PLACES];
        if !ballot.follows(place) {
            return Admission::Outbid(place.stamp);
        }
        if ballot.stamp.0 > self.limit_us.load(Ordering::SeqCst) {
            return Admission::NeedsDisk;
        }
        *place = ballot;
        Admission::Admitted
    }

    /// Raises the limit on the disk, so that a ballot can be promised. Blocks.
    pub(crate) fn make_room(&self, ballot: Ballot) -> io::Result<()> {
        let _saving = self.saving.lock();
        if ballot.stamp.0 <= self.limit_us.load(Ordering::SeqCst) {
            return Ok(());
        }
        let limit_us = ballot.stamp.0.saturating_add(STEP_US);
        let text = saved_json::to_text(&Saved { format: FORMATS.current, limit_us })?;
        replace_file(&*self.fs, &self.path, &text)?;
        self.limit_us.store(limit_us, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombak_storage::fs::RealFs;

    fn ballot(stamp: u64, number: u64) -> Ballot {
        Ballot { stamp: UnixMicros(stamp), number }
    }

    fn admit(ballots: &Ballots, key: &[u8], ballot: Ballot) -> Admission {
        match ballots.admit(3, key, ballot) {
            Admission::NeedsDisk => {
                ballots.make_room(ballot).unwrap();
                ballots.admit(3, key, ballot)
            }
            said => said,
        }
    }

    #[test]
    fn only_later_ballots_are_promised_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let open = |now| Ballots::open(Arc::new(RealFs), dir.path(), UnixMicros(now)).unwrap();
        let ballots = open(100);
        let first = ballot(200, 1);
        assert_eq!(ballots.admit(3, b"k", first), Admission::NeedsDisk);
        assert_eq!(admit(&ballots, b"k", first), Admission::Admitted);
        assert_eq!(admit(&ballots, b"k", first), Admission::Admitted, "the same put");
        assert_eq!(admit(&ballots, b"k", ballot(200, 2)), Admission::Outbid(UnixMicros(200)), "the same time");
        assert_eq!(admit(&ballots, b"k", ballot(150, 3)), Admission::Outbid(UnixMicros(200)));
        assert_eq!(admit(&ballots, b"other", ballot(150, 3)), Admission::Admitted);
        assert_eq!(admit(&ballots, b"other", ballot(99, 4)), Admission::Outbid(UnixMicros(100)), "before the start");
        assert_eq!(admit(&ballots, b"k", ballot(300, 5)), Admission::Admitted);
        // The clock was set back.
        let again = open(0);
        let Admission::Outbid(floor) = admit(&again, b"k", ballot(300, 5)) else { panic!("it has forgotten") };
        assert!(floor >= UnixMicros(300));
        assert_eq!(admit(&again, b"k", ballot(floor.0 + 1, 6)), Admission::Admitted);
        std::fs::write(dir.path().join(FILE_NAME), "{}").unwrap();
        let damaged = Ballots::open(Arc::new(RealFs), dir.path(), UnixMicros(0));
        assert!(damaged.is_err(), "damage is not an empty file");
    }

    #[test]
    fn the_file_has_the_bytes_of_version_1() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Ballots::open(Arc::new(RealFs), dir.path(), UnixMicros(0)).unwrap();
        open().make_room(ballot(1_600_000_000_000_000, 1)).unwrap();
        let written = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
        let frozen = ombak_fixtures::check_file(env!("CARGO_MANIFEST_DIR"), 1, FILE_NAME, &written);
        std::fs::write(dir.path().join(FILE_NAME), frozen).unwrap();
        assert_eq!(open().floor, UnixMicros(1_600_000_005_000_000));
    }
}
