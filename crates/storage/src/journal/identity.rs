//! The identity of a store on disk: the file `identity` in its directory.
//!
//! Layout: magic 8, version u16, flags u16, base u32 in units of 2^16, store id, boot, last boot
//! that may have lost acknowledged writes, seq (u64 each), OS boot id u128, inode and creation time
//! of this file (u64 each), CRC-32 of all that u32. Flags: 1 closed cleanly, 2 began as a copy, 4
//! the OS boot id is known, 8 a write or sync failed, 16 there is a history of openings
//! (`super::openings_file`). All integers are little-endian. Earlier
//! versions of this program write 0 for the base and do not read it.
//!
//! Invariants:
//! * The mark of a clean close is durably gone before the first write of a start.
//! * The base of a run (`crate::seq`) is durable before the first append of the run. A clean close
//!   removes it, because all appends are found then. If the run had none, the base of an earlier
//!   run that did not end in order stays.
//! * A copied identity file makes the copy another store: the file records its own inode and
//!   creation time.

use super::format::le_at;
use super::openings_file::{self, FoundOpenings};
use super::small_file::{Frame, read_small_file};
use crate::append_marks::{EarlierRun, StoreMark};
use crate::error::{StorageError, io_error};
use crate::fs::{FileIdentity, FileSystem, replace_file_with};
use crate::identity::{StoreIdentity, random_id};
use crate::openings::{Opening, Openings};
use crate::seq::{BASE_UNIT, REMEDY, base_after, runs_short};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file name.
pub(crate) const NAME: &str = "identity";
const FRAME: Frame = Frame { magic: b"OMBAKSID", versions: 1..=1 };
const CONTENT_BYTES: usize = 80;

const CLEAN: u16 = 1;
const RESTORED: u16 = 2;
const MACHINE_KNOWN: u16 = 4;
const FAILED: u16 = 8;
const OPENINGS: u16 = 16;

/// The content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    store_id: u64,
    boot: u64,
    /// Set last, by a close that had synced everything.
    is_clean: bool,
    is_restored: bool,
    /// Whether a write or sync failed, so that it is unknown what reached the disk.
    has_failed: bool,
    /// Whether the history of openings is on disk.
    has_openings: bool,
    /// The last boot that may have lost acknowledged writes; 0: none.
    lost_writes_boot: u64,
    /// No append had a higher number when this was written.
    seq: u64,
    /// All appends of the run have higher numbers. After a clean close it is the base of an earlier
    /// run that did not end in order, if no later append shows that its numbers are used; 0
    /// otherwise.
    base: u64,
    /// The OS boot id.
    machine: Option<u128>,
}

impl Record {
    pub(crate) fn encode(&self, file_identity: FileIdentity) -> Vec<u8> {
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = flag(self.is_clean, CLEAN)
            | flag(self.is_restored, RESTORED)
            | flag(self.machine.is_some(), MACHINE_KNOWN)
            | flag(self.has_failed, FAILED)
            | flag(self.has_openings, OPENINGS);
        FRAME.seal(|bytes| {
            bytes.extend_from_slice(&flags.to_le_bytes());
            let base = u32::try_from(self.base.div_ceil(BASE_UNIT)).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&base.to_le_bytes());
            for number in [self.store_id, self.boot, self.lost_writes_boot, self.seq] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes.extend_from_slice(&self.machine.unwrap_or(0).to_le_bytes());
            bytes.extend_from_slice(&file_identity.inode.to_le_bytes());
            bytes.extend_from_slice(&file_identity.created_ns.to_le_bytes());
        })
    }

    /// None if the content is damaged.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Option<(Self, FileIdentity)>, StorageError> {
        let Some(content) = FRAME.open(bytes, path)?.filter(|content| content.len() == CONTENT_BYTES) else {
            return Ok(None);
        };
        let flags = le_at!(u16, content, 10);
        let record = Self {
            store_id: le_at!(u64, content, 16),
            boot: le_at!(u64, content, 24),
            is_clean: flags & CLEAN != 0,
            is_restored: flags & RESTORED != 0,
            has_failed: flags & FAILED != 0,
            has_openings: flags & OPENINGS != 0,
            lost_writes_boot: le_at!(u64, content, 32),
            seq: le_at!(u64, content, 40),
            base: u64::from(le_at!(u32, content, 12)) * BASE_UNIT,
            machine: (flags & MACHINE_KNOWN != 0).then(|| le_at!(u128, content, 48)),
        };
        Ok(Some((record, FileIdentity { inode: le_at!(u64, content, 64), created_ns: le_at!(u64, content, 72) })))
    }

    /// Whether a write or sync of the run failed, as the record or the mark has it.
    fn has_failed_by(&self, marked: Option<&EarlierRun>) -> bool {
        self.has_failed || marked.is_some_and(|run| run.store_id == self.store_id && run.has_failed)
    }

    /// Whether the mark of the run shows appends that a start has not found.
    fn lacks_appends(&self, marked: Option<&EarlierRun>, found: FoundAppends) -> bool {
        let of_this_store = marked.filter(|run| run.store_id == self.store_id);
        of_this_store.is_some_and(|run| run.has_lost(found.unsynced, found.seq_max.max(self.seq)))
    }

    /// The record of a store that begins with this start.
    fn begin(fs: &dyn FileSystem, dir: &Path, is_restored: bool, machine: Option<u128>) -> Result<Self, StorageError> {
        Ok(Self {
            store_id: random_id(fs.machine(), dir)?,
            boot: 1,
            is_clean: false,
            is_restored,
            has_failed: false,
            has_openings: false,
            lost_writes_boot: 0,
            seq: 0,
            base: 0,
            machine,
        })
    }

    /// The record of the same store at its next start. `lacks_appends`: the start has not found all
    /// that was appended.
    fn next(&self, machine: Option<u128>, lacks_appends: bool) -> Self {
        let boot = self.boot + 1;
        let same_machine_run = machine.is_some() && machine == self.machine && !self.has_failed;
        let has_all = (self.is_clean || same_machine_run) && !lacks_appends;
        let lost_writes_boot = if has_all { self.lost_writes_boot } else { boot };
        Self { boot, is_clean: false, has_failed: false, lost_writes_boot, machine, ..*self }
    }
}

/// What a start found of a store besides the identity file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreContent {
    /// Nothing, not even the directory.
    Nothing,
    /// The directory without data.
    Directory,
    /// Data that was written to the store.
    Data,
}

/// What a start found of the appends of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundAppends {
    /// The highest `seq`.
    pub(super) seq_max: u64,
    /// The number of appends after those that the mark calls synced.
    pub(super) unsynced: u64,
}

/// The identity of the store in a directory, and the file that stores it.
pub(super) struct IdentityFile {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    was_clean: bool,
    /// Whether there was neither an identity file nor data.
    is_fresh: bool,
    /// The base of an earlier run that did not end in order, or 0.
    spent_base: u64,
    /// The openings on disk. Locked after `record`.
    history: Mutex<Openings>,
    /// Whether this start made the history, because its file was missing or damaged.
    is_history_new: bool,
    record: Mutex<Record>,
    /// Whether this start is recorded on disk.
    has_begun: AtomicBool,
    /// Whether the base is on disk from which the numbers of appends are counted.
    may_append: AtomicBool,
    /// Where appends are counted outside of the file system of the store.
    mark: Option<StoreMark>,
    /// No append that the start found has a higher number.
    found_seq: u64,
}

impl IdentityFile {
    /// Reads the identity of the store in a directory, and compares what the start found in it with
    /// the mark of the run before.
    pub(super) fn load(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        content: StoreContent,
        mark: Option<StoreMark>,
        appends: FoundAppends,
    ) -> Result<Self, StorageError> {
        let path = dir.join(NAME);
        let failed = |source| io_error("read", &path, source);
        let machine = fs.os_boot_id().map_err(failed)?;
        let found = match content {
            StoreContent::Nothing => None,
            StoreContent::Directory | StoreContent::Data => read(&*fs, &path)?,
        };
        let (record, was_clean) = match &found {
            Some(Some((last, file_identity))) if *file_identity == fs.file_identity(&path).map_err(failed)? => {
                let marked = mark.as_ref().and_then(StoreMark::earlier_run);
                let lacks_appends = last.lacks_appends(marked.as_ref(), appends);
                if lacks_appends {
                    tracing::error!(
                        dir = %dir.display(),
                        "the machine ran on, and the newest writes to this store are missing: its file system has lost what \
                         was not synced, or was set back"
                    );
                }
                let last = Record { has_failed: last.has_failed_by(marked.as_ref()), ..*last };
                (last.next(machine, lacks_appends), last.is_clean && last.boot > 0 && !lacks_appends)
            }
            Some(Some((last, _))) => {
                tracing::warn!(dir = %dir.display(), "this store is a copy of another one: it takes an id of its own");
                (Record { seq: last.seq, base: last.base, ..Record::begin(&*fs, dir, true, machine)? }, false)
            }
            Some(None) => {
                tracing::error!(file = %path.display(), "damaged: the store takes a new id");
                (Record::begin(&*fs, dir, true, machine)?, false)
            }
            None => (Record::begin(&*fs, dir, content == StoreContent::Data, machine)?, false),
        };
        let is_fresh = found.is_none() && content != StoreContent::Data;
        let spent = appends.seq_max.max(record.seq).max(record.base);
        let history = if found.is_some() { read_history(&*fs, dir, &record, spent)? } else { Openings::default() };
        // An earlier version of this program removes the base, and leaves the history.
        let base = if is_fresh { 0 } else { base_of_run(dir, spent.max(history.last_base())) };
        Ok(Self {
            fs,
            dir: dir.to_owned(),
            was_clean,
            is_fresh,
            spent_base: record.base,
            is_history_new: history.forgotten() == Some(spent),
            history: Mutex::new(history),
            record: Mutex::new(Record { base, ..record }),
            has_begun: AtomicBool::new(false),
            may_append: AtomicBool::new(false),
            mark,
            found_seq: appends.seq_max,
        })
    }

    pub(super) fn identity(&self) -> StoreIdentity {
        let record = self.record.lock();
        StoreIdentity {
            store_id: record.store_id,
            boot: if self.is_fresh && !self.has_begun() { 0 } else { record.boot },
            was_clean: self.was_clean,
            is_restored: record.is_restored,
            lost_writes_boot: Some(record.lost_writes_boot).filter(|boot| *boot > 0),
            children: Vec::new(),
        }
    }

    /// No append had a higher number when the file was written. No later append may get a number up
    /// to it.
    pub(super) fn seq(&self) -> u64 {
        self.record.lock().seq
    }

    /// All appends of this run get higher numbers than this one.
    pub(super) fn base(&self) -> u64 {
        self.record.lock().base
    }

    /// Whether [`begin`](Self::begin) has been done.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Whether [`allow_appends_after`](Self::allow_appends_after) has been done. Every append must
    /// check this.
    pub(super) fn may_append(&self) -> bool {
        self.may_append.load(Ordering::Acquire)
    }

    /// Whether an earlier run may have given numbers that the start has not found. After an
    /// orderly end there are none, unless that run itself had found such a loss and appended
    /// nothing.
    pub(super) fn may_miss_appends(&self) -> bool {
        !(self.is_fresh || self.was_clean && self.spent_base == 0)
    }

    /// The history of the store, with what this start leaves out.
    pub(super) fn openings(&self, of_this_run: Option<Opening>) -> Openings {
        let mut openings = self.history.lock().clone();
        of_this_run.into_iter().for_each(|opening| openings.add(opening));
        openings
    }

    /// Records on disk that the appends of this run get numbers above `base`, and what the start
    /// leaves out. The start has been recorded, which is enough after an orderly end.
    pub(super) fn allow_appends_after(&self, base: u64, opening: Option<Opening>) -> io::Result<()> {
        let mut record = self.record.lock();
        let openings = self.openings(opening);
        let mut history = self.history.lock();
        let is_only_here = self.is_history_new && !self.may_append();
        if openings != *history || is_only_here {
            // The identity file names the history, so the history comes first.
            openings_file::write(&*self.fs, &self.dir, record.store_id, &openings)?;
        }
        let raised = Record { base: record.base.max(base), has_openings: openings != Openings::default(), ..*record };
        if raised != *record {
            self.write(&raised)?;
            *record = raised;
        }
        *history = openings;
        self.may_append.store(true, Ordering::Release);
        Ok(())
    }

    /// Records this start on disk. This removes the mark of a clean close. The stores of the
    /// partition that were opened so far count from `base`.
    pub(super) fn begin(&self, base: u64) -> io::Result<()> {
        let mut record = self.record.lock();
        if !self.has_begun() {
            record.base = record.base.max(base);
            self.write(&record)?;
            if let Some(mark) = &self.mark {
                // What the last mark showed is recorded now.
                mark.begin(record.store_id, record.boot, self.found_seq.max(record.seq));
            }
            self.has_begun.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Records that numbers up to `seq` are used, because the file that shows it is about to be
    /// removed.
    pub(super) fn record_used_seq(&self, seq: u64) -> Result<(), StorageError> {
        self.change(|record| record.seq = record.seq.max(seq))
    }

    /// Writes the mark of a clean close. Everything else has been closed.
    pub(super) fn end(&self, seq: u64) -> Result<(), StorageError> {
        if !self.has_begun() {
            // Nothing was written since the last mark.
            return Ok(());
        }
        self.change(|record| {
            record.seq = record.seq.max(seq);
            // A run that has lost all of its appends has used numbers up to here. Without an append
            // of this run, only that base tells the next start. The first run of a store has the
            // base 0, so the lowest other one stands for it.
            record.base = match () {
                () if record.seq > record.base || !self.may_miss_appends() => 0,
                () => self.spent_base.max(BASE_UNIT),
            };
            record.is_clean = true;
        })
    }

    /// Records that a write or sync failed. It is then unknown what reached the disk. The next
    /// start must know this even if the machine was not restarted.
    pub(super) fn note_failure(&self) {
        if let Some(mark) = &self.mark {
            // The disk that failed may not take the note below.
            mark.note_failure();
        }
        if let Err(error) = self.change(|record| record.has_failed = true) {
            tracing::warn!(%error, "the failure cannot be noted");
        }
    }

    fn change(&self, change: impl FnOnce(&mut Record)) -> Result<(), StorageError> {
        let mut record = self.record.lock();
        change(&mut record);
        self.write(&record).map_err(|source| io_error("write", &self.dir.join(NAME), source))
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        write(&*self.fs, &self.dir, record)
    }
}

/// The history of the store with this record. `spent`: no number that is known was higher.
fn read_history(fs: &dyn FileSystem, dir: &Path, record: &Record, spent: u64) -> Result<Openings, StorageError> {
    match openings_file::read(fs, dir, record.store_id)? {
        FoundOpenings::Some(openings) => Ok(openings),
        FoundOpenings::None if !record.has_openings => Ok(Openings::default()),
        FoundOpenings::None | FoundOpenings::Damaged => {
            tracing::error!(
                file = %dir.join(openings_file::NAME).display(),
                "missing or damaged: what this store proved with others is proved again"
            );
            Ok(Openings::forgotten_up_to(spent))
        }
    }
}

/// The base of a run of the store in a directory, whose start knows of numbers up to `spent`.
fn base_of_run(dir: &Path, spent: u64) -> u64 {
    if runs_short(spent) {
        tracing::error!(dir = %dir.display(), spent, "the sequence numbers of this store run short: {REMEDY}");
    }
    base_after(spent)
}

/// Whether a write or sync of the previous run failed. The page cache may then hold data that is
/// not on the disk. A later successful sync does not change that, because the kernel takes the
/// pages for written.
pub(super) fn run_before_has_failed(
    fs: &dyn FileSystem,
    dir: &Path,
    marked: Option<&EarlierRun>,
) -> Result<bool, StorageError> {
    Ok(read(fs, &identity_path(dir))?.flatten().is_some_and(|(record, _)| record.has_failed_by(marked)))
}

/// Whether a directory has an identity file that is damaged.
pub(crate) fn identity_is_damaged(fs: &dyn FileSystem, dir: &Path) -> Result<bool, StorageError> {
    Ok(read(fs, &identity_path(dir))? == Some(None))
}

/// The path of the identity file in the directory of a store.
pub(crate) fn identity_path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// The outer option is none if there is no file; the inner one is none if the file is damaged.
fn read(fs: &dyn FileSystem, path: &Path) -> Result<Option<Option<(Record, FileIdentity)>>, StorageError> {
    match read_small_file(fs, path)? {
        Some(bytes) => Record::decode(&bytes, path).map(Some),
        None => Ok(None),
    }
}

fn write(fs: &dyn FileSystem, dir: &Path, record: &Record) -> io::Result<()> {
    replace_file_with(fs, &dir.join(NAME), |new| Ok(record.encode(fs.file_identity(new)?)))
}

/// Makes a store out of a directory that the files of a backup were put into. Its first start finds
/// it restored. `seq`: no append in it has a higher number.
pub(crate) fn begin_restored(fs: &dyn FileSystem, dir: &Path, seq: u64) -> Result<(), StorageError> {
    let record = Record { boot: 0, is_clean: true, seq, ..Record::begin(fs, dir, true, None)? };
    write(fs, dir, &record).map_err(|source| io_error("write", &dir.join(NAME), source))
}

#[cfg(test)]
mod tests;
