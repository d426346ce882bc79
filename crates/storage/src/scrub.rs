//! Scrubbing: what a store has on its disk is read and checked although nobody asks for it.
//!
//! What it is: the place of a round in a store, the bounds of one step, and what a step has found.
//! A round reads every file of a store once, in the order of the files' numbers. Files that come
//! while a round runs (the outputs of merges) are read in further *laps* of the round.
//!
//! What it is not: nothing here paces itself, repairs or removes anything. A damaged version that
//! an index points at is told to the store's [`UnreadableObserver`](crate::UnreadableObserver), as
//! if a read had met it.
//!
//! Invariants:
//! * Every version that was durable when a round began, and is current when the round ends, has
//!   been read by the round, unless merges have moved it in [`LAPS_MAX`] laps one after another.
//! * A round ends: the number of its laps is bounded.

use bytes::Bytes;
use std::path::PathBuf;
use std::time::Duration;

/// How often a round takes in the files that have come meanwhile.
pub const LAPS_MAX: u32 = 4;
/// How many damaged versions and places a step lists. It counts the others.
pub const LISTED_MAX: usize = 1_000;

/// The place of a round in a store. It stays right while files come and go, and after a restart.
/// The default is the beginning of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubCursor {
    /// Which of the stores of a partition with several backends, from 0.
    pub store: u32,
    /// Whether the data files are done, and the files of the index are being read.
    pub in_index: bool,
    /// The lap, from 1; 0 before the first one.
    pub lap: u32,
    /// The highest number of a file of this lap.
    pub last_file: u64,
    /// No file with a lower number is to be read in this lap.
    pub file: u64,
    /// Where to go on in that file, in bytes; 0: at its beginning.
    pub offset: u64,
    /// The last append that was durable when the round began in this store.
    pub up_to_seq: u64,
}

impl ScrubCursor {
    /// The next of these files, whose numbers ascend. Begins another lap if there are files for it.
    /// None at the end of the round.
    pub(crate) fn next_of(&mut self, numbers: &[u64]) -> Option<u64> {
        loop {
            let first = numbers.partition_point(|number| *number < self.file);
            if let Some(number) = numbers.get(first).copied().filter(|number| *number <= self.last_file) {
                if number != self.file {
                    (self.file, self.offset) = (number, 0);
                }
                return Some(number);
            }
            let highest = numbers.last().copied().unwrap_or_default();
            if self.lap >= LAPS_MAX || self.lap > 0 && highest <= self.last_file {
                return None;
            }
            let first = if self.lap == 0 { 0 } else { self.last_file.saturating_add(1) };
            *self = Self { lap: self.lap + 1, last_file: highest, file: first, offset: 0, ..*self };
        }
    }

    /// The present file is done.
    pub(crate) fn pass_file(&mut self) {
        (self.file, self.offset) = (self.file.saturating_add(1), 0);
    }
}

/// How much one step may do. A step may read one record, or one window of 256 KiB, more.
#[derive(Clone, Copy)]
pub struct ScrubLimits<'a> {
    /// Bytes that are read.
    pub bytes_max: u64,
    /// How long the step takes.
    pub time_max: Duration,
    /// Called after each record, without any lock, so that the thread can give way to others.
    pub give_way: &'a dyn Fn(),
}

/// The result of a step.
#[derive(Debug, Default)]
pub struct ScrubStep {
    /// Where the next step begins.
    pub next: ScrubCursor,
    /// Whether everything of the store has been read.
    pub is_round_over: bool,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Records that were read, damaged ones included.
    pub records: u64,
    /// Blocks of 4 KiB that the disk has not given back. A step ends after some of them. Requests
    /// and repairs that read too many within a minute fail a store as a whole, so the caller waits
    /// before the next step.
    pub unread_blocks: u64,
    /// What is damaged.
    pub found: ScrubFound,
}

impl ScrubStep {
    /// A step that begins at a place.
    pub(crate) fn at(cursor: ScrubCursor) -> Self {
        Self { next: cursor, ..Self::default() }
    }

    /// The step of a store that has nothing on a disk.
    pub(crate) fn nothing() -> Self {
        Self { is_round_over: true, ..Self::default() }
    }
}

/// The damage that a step has met.
#[derive(Debug, Default)]
pub struct ScrubFound {
    /// Current versions that cannot be read, at most [`LISTED_MAX`]. The observer was told of each.
    pub versions: Vec<DamagedVersion>,
    /// How many there are, those included that are not listed.
    pub versions_count: u64,
    /// Damaged records that nothing points at any more.
    pub obsolete: u64,
    /// Damage that is no single record: headers of files, blocks of an index, its list of tables,
    /// records of a log whose versions are still in memory. At most [`LISTED_MAX`].
    pub places: Vec<DamagedPlace>,
    /// How many there are, those included that are not listed.
    pub places_count: u64,
}

impl ScrubFound {
    /// Adds a version.
    pub(crate) fn add_version(&mut self, version: DamagedVersion) {
        self.versions_count += 1;
        if self.versions.len() < LISTED_MAX {
            self.versions.push(version);
        }
    }

    /// Adds a place.
    pub(crate) fn add_place(&mut self, place: DamagedPlace) {
        self.places_count += 1;
        if self.places.len() < LISTED_MAX {
            self.places.push(place);
        }
    }

    /// Whether nothing was found.
    pub fn is_nothing(&self) -> bool {
        self.versions_count == 0 && self.obsolete == 0 && self.places_count == 0
    }
}

/// A current version whose record is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedVersion {
    /// The storage key of the object.
    pub key: Bytes,
    /// The data file.
    pub file: PathBuf,
    /// Where its record begins.
    pub offset: u64,
}

/// A damaged place of a file that is no single record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedPlace {
    /// The file.
    pub file: PathBuf,
    /// Where the damage begins.
    pub offset: u64,
    /// Its length in bytes; 0 if it is not known.
    pub length: u64,
    /// What is wrong, and what becomes of it.
    pub what: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that a round reads while `files` come and go.
    fn read_all(mut files_at: impl FnMut(usize) -> Vec<u64>) -> Vec<u64> {
        let (mut cursor, mut read) = (ScrubCursor::default(), Vec::new());
        while let Some(number) = cursor.next_of(&files_at(read.len())) {
            read.push(number);
            cursor.pass_file();
            assert!(read.len() < 100, "a round without an end");
        }
        read
    }

    #[test]
    fn a_round_reads_each_file_once() {
        assert_eq!(read_all(|_| vec![]), [0; 0]);
        assert_eq!(read_all(|_| vec![3, 5, 9]), [3, 5, 9]);
    }

    #[test]
    fn what_comes_meanwhile_is_read_in_another_lap_and_what_is_gone_is_passed() {
        let files = |read| if read < 2 { vec![1, 2, 3] } else { vec![4, 5] };
        assert_eq!(read_all(files), [1, 2, 4, 5], "3 was merged into 4 and 5");
    }

    #[test]
    fn a_round_ends_although_files_come_for_ever() {
        let files = |read: usize| (1..=read as u64 + 1).collect();
        assert_eq!(read_all(files), [1, 2, 3, 4]);
        assert_eq!(LAPS_MAX, 4);
    }

    #[test]
    fn a_place_in_a_file_is_kept_and_is_not_taken_for_one_in_another_file() {
        let mut cursor = ScrubCursor { lap: 1, last_file: 9, file: 5, offset: 700, ..ScrubCursor::default() };
        assert_eq!((cursor.next_of(&[2, 5, 9]), cursor.offset), (Some(5), 700));
        assert_eq!((cursor.next_of(&[2, 9]), cursor.offset), (Some(9), 0));
    }
}
