//! Append marks: how far each store of a root has come, in memory that outlives the process and
//! ends with the run of the machine (docs/inventory.md).
//!
//! A kill loses nothing that was written. A loss of power does, and another OS boot id shows it.
//! But a file system can also lose what was not synced while the machine runs on: it shut itself
//! down and was mounted again, or its volume was detached and came back. Nothing on that file
//! system tells. So a store counts its appends outside of it, and a start compares the count
//! with what it finds.
//!
//! What it is: a table with one place for each partition, either in a file on tmpfs that is mapped
//! into memory, or in plain memory for simulated machines.
//!
//! What it is not: a promise. Without the table, or with one that knows nothing of a store, a start
//! trusts the OS boot id alone.
//!
//! Invariants:
//! * An append is counted after its write call has returned, and before anybody is told of it.
//! * What is noted as synced is on disk.
//! * A place counts only for the store whose id it names.

#[cfg(target_os = "linux")]
mod mapped;

#[cfg(target_os = "linux")]
use mapped::MappedWords;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place has a cache line of its own, so that stores do not slow each other down.
const PLACE_WORDS: usize = 8;
/// The words before the first place: what the table is, and the run of the machine that it is of.
const HEADER_WORDS: usize = 8;

const fn words_for(partitions: u32) -> usize {
    HEADER_WORDS + partitions as usize * PLACE_WORDS
}

/// What a table is and its version: "OMBAKAM" and 1.
const MAGIC: u64 = u64::from_be_bytes(*b"OMBAKAM\x01");

// The words of the header.
const HEADER_MAGIC: usize = 0;
const HEADER_BOOT_HIGH: usize = 1;
const HEADER_BOOT_LOW: usize = 2;

// The words of a place.
const APPENDED: usize = 0;
const STORE_ID: usize = 1;
const BOOT: usize = 2;
const SYNCED_SEQ: usize = 3;
const SYNCED_APPENDED: usize = 4;
const HAS_FAILED: usize = 5;

/// The marks of all stores of one root; see the module.
pub struct AppendMarks {
    words: Words,
}

enum Words {
    #[cfg(target_os = "linux")]
    Mapped(MappedWords),
    Owned(Box<[AtomicU64]>),
}

impl AppendMarks {
    /// The marks of the stores of so many partitions in `root`, in a file in `dir`, which must
    /// be in memory (tmpfs). `os_boot_id`: the present run of the machine. The file belongs to
    /// the directory `root` itself and not to its path: a root that is mounted elsewhere has the
    /// same marks, and a copy of a root has none. An orderly end removes the file if all is
    /// synced.
    #[cfg(target_os = "linux")]
    pub fn open(dir: &Path, root: &Path, partitions: u32, os_boot_id: u128) -> io::Result<Arc<Self>> {
        let words = MappedWords::open(&mapped::path_of(dir, root)?, words_for(partitions))?;
        let marks = Self { words: Words::Mapped(words) };
        marks.begin(os_boot_id);
        Ok(Arc::new(marks))
    }

    /// Other systems have no such file.
    #[cfg(not(target_os = "linux"))]
    pub fn open(_dir: &Path, _root: &Path, _partitions: u32, _os_boot_id: u128) -> io::Result<Arc<Self>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Marks of a simulated machine, for so many partitions. They end with the value.
    pub fn in_memory(partitions: u32) -> Arc<Self> {
        let marks = Self { words: Words::Owned((0..words_for(partitions)).map(|_| AtomicU64::new(0)).collect()) };
        marks.begin(0);
        Arc::new(marks)
    }

    /// Empties the table if it is of another run of the machine, or of another version.
    fn begin(&self, os_boot_id: u128) {
        let words = self.words();
        let header = [
            (HEADER_MAGIC, MAGIC),
            (HEADER_BOOT_HIGH, (os_boot_id >> 64) as u64),
            (HEADER_BOOT_LOW, os_boot_id as u64),
        ];
        if header.iter().all(|(place, word)| words[*place].load(Ordering::Acquire) == *word) {
            return;
        }
        words.iter().for_each(|word| word.store(0, Ordering::Release));
        // The magic number comes last: a process that is killed here leaves no half table.
        header.iter().rev().for_each(|(place, word)| words[*place].store(*word, Ordering::Release));
    }

    fn words(&self) -> &[AtomicU64] {
        match &self.words {
            #[cfg(target_os = "linux")]
            Words::Mapped(words) => words.get(),
            Words::Owned(words) => words,
        }
    }

    /// The mark of a partition's store. None if there is no place for it.
    pub(crate) fn of_store(self: &Arc<Self>, partition: u32) -> Option<StoreMark> {
        let first = words_for(partition);
        (first < self.words().len()).then(|| StoreMark { marks: self.clone(), first })
    }
}

#[cfg(target_os = "linux")]
impl Drop for AppendMarks {
    fn drop(&mut self) {
        let Words::Mapped(mapped) = &self.words else { return };
        let (places, _) = mapped.get()[HEADER_WORDS..].as_chunks::<PLACE_WORDS>();
        if !places.iter().filter_map(EarlierRun::of).any(|run| run.unsynced > 0 || run.has_failed) {
            mapped.remove_file();
        }
    }
}

impl fmt::Debug for AppendMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppendMarks({} words)", self.words().len())
    }
}

/// The mark of one store. Only the process that has the store open changes it.
#[derive(Clone, Debug)]
pub(crate) struct StoreMark {
    marks: Arc<AppendMarks>,
    first: usize,
}

impl StoreMark {
    fn word(&self, number: usize) -> &AtomicU64 {
        &self.marks.words()[self.first + number]
    }

    /// What the mark says of the run before. None if it says nothing.
    pub(crate) fn earlier_run(&self) -> Option<EarlierRun> {
        let (places, _) = self.marks.words()[self.first..].as_chunks::<PLACE_WORDS>();
        places.first().and_then(EarlierRun::of)
    }

    /// Begins a run of a store that has everything up to `seq` on disk. What the start found is
    /// recorded in the store before.
    pub(crate) fn begin(&self, store_id: u64, boot: u64, seq: u64) {
        // A process that is killed here leaves a mark that says nothing.
        self.word(BOOT).store(0, Ordering::Release);
        let words = [(STORE_ID, store_id), (APPENDED, 0), (SYNCED_APPENDED, 0), (SYNCED_SEQ, seq), (HAS_FAILED, 0)];
        words.iter().for_each(|(number, word)| self.word(*number).store(*word, Ordering::Release));
        self.word(BOOT).store(boot, Ordering::Release);
    }

    /// Counts an append. The caller holds the lock of the store's writer.
    pub(crate) fn count_append(&self) {
        let appended = self.word(APPENDED);
        // Nobody else changes it, so no locked instruction is needed.
        appended.store(appended.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The number of appends of this run so far.
    pub(crate) fn appended(&self) -> u64 {
        self.word(APPENDED).load(Ordering::Relaxed)
    }

    /// Notes that the first `appended` appends of this run are on disk, of which `seq` was the
    /// last.
    pub(crate) fn note_synced(&self, seq: u64, appended: u64) {
        // In this order a process that is killed between the two has noted that less is missing,
        // and a start never takes something for missing that is there.
        self.word(SYNCED_APPENDED).fetch_max(appended, Ordering::AcqRel);
        self.word(SYNCED_SEQ).fetch_max(seq, Ordering::AcqRel);
    }

    /// Notes that a write or sync of this run failed.
    pub(crate) fn note_failure(&self) {
        self.word(HAS_FAILED).store(1, Ordering::Release);
    }
}

/// What a mark says of the run before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EarlierRun {
    /// The store that it is of.
    pub(crate) store_id: u64,
    /// The number of its appends that were not synced.
    unsynced: u64,
    /// Everything up to this `seq` was synced.
    pub(crate) synced_seq: u64,
    /// Whether a write or sync failed.
    pub(crate) has_failed: bool,
}

impl EarlierRun {
    /// What a place says. None if it says nothing.
    fn of(place: &[AtomicU64; PLACE_WORDS]) -> Option<Self> {
        let word = |number: usize| place[number].load(Ordering::Acquire);
        (word(BOOT) != 0).then(|| Self {
            store_id: word(STORE_ID),
            unsynced: word(APPENDED).saturating_sub(word(SYNCED_APPENDED)),
            synced_seq: word(SYNCED_SEQ),
            has_failed: word(HAS_FAILED) != 0,
        })
    }

    /// Whether a start lacks appends of the run. It has found `unsynced` appends after the
    /// synced ones, and none after `seq_max`.
    pub(crate) fn has_lost(&self, unsynced: u64, seq_max: u64) -> bool {
        unsynced < self.unsynced || seq_max < self.synced_seq
    }
}

#[cfg(test)]
mod tests;
