//! The identity of a store on disk: the file `identity` in its directory.
//!
//! Layout: magic 8, version u16, flags u16, zero u32, store id, boot, last boot that may have lost
//! acknowledged writes, seq (u64 each), OS boot id u128, inode and creation time of
//! this file (u64 each), CRC-32 of all that u32. Flags: 1 closed cleanly, 2 began as a copy, 4 the
//! OS boot id is known, 8 a write or sync failed. All integers are little-endian.
//!
//! Invariants:
//! * The mark of a clean close is durably gone before the first write of a start.
//! * A copied identity file makes the copy another store: the file records its own inode and
//!   creation time.

use super::format::le_at;
use super::small_file::{Frame, read_small_file};
use crate::error::{StorageError, io_error};
use crate::fs::{FileIdentity, FileSystem, replace_file_with};
use crate::identity::{StoreIdentity, random_id};
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
    /// The last boot that may have lost acknowledged writes; 0: none.
    lost_writes_boot: u64,
    /// No append had a higher number when this was written.
    seq: u64,
    /// The OS boot id.
    machine: Option<u128>,
}

impl Record {
    pub(crate) fn encode(&self, file_identity: FileIdentity) -> Vec<u8> {
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = flag(self.is_clean, CLEAN)
            | flag(self.is_restored, RESTORED)
            | flag(self.machine.is_some(), MACHINE_KNOWN)
            | flag(self.has_failed, FAILED);
        FRAME.seal(|bytes| {
            bytes.extend_from_slice(&flags.to_le_bytes());
            bytes.extend_from_slice(&[0; 4]);
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
            lost_writes_boot: le_at!(u64, content, 32),
            seq: le_at!(u64, content, 40),
            machine: (flags & MACHINE_KNOWN != 0).then(|| le_at!(u128, content, 48)),
        };
        Ok(Some((record, FileIdentity { inode: le_at!(u64, content, 64), created_ns: le_at!(u64, content, 72) })))
    }

    /// The record of a store that begins with this start.
    fn begin(fs: &dyn FileSystem, dir: &Path, is_restored: bool, machine: Option<u128>) -> Result<Self, StorageError> {
        Ok(Self {
            store_id: random_id(fs.machine(), dir)?,
            boot: 1,
            is_clean: false,
            is_restored,
            has_failed: false,
            lost_writes_boot: 0,
            seq: 0,
            machine,
        })
    }

    /// The record of the same store at its next start.
    fn next(&self, machine: Option<u128>) -> Self {
        let boot = self.boot + 1;
        let same_machine_run = machine.is_some() && machine == self.machine && !self.has_failed;
        let lost_writes_boot = if self.is_clean || same_machine_run { self.lost_writes_boot } else { boot };
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

/// The identity of the store in a directory, and the file that stores it.
pub(super) struct IdentityFile {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    was_clean: bool,
    /// Whether there was neither an identity file nor data.
    is_fresh: bool,
    record: Mutex<Record>,
    /// Whether this start is recorded on disk.
    has_begun: AtomicBool,
}

impl IdentityFile {
    /// Reads the identity of the store in a directory.
    pub(super) fn load(fs: Arc<dyn FileSystem>, dir: &Path, content: StoreContent) -> Result<Self, StorageError> {
        let path = dir.join(NAME);
        let failed = |source| io_error("read", &path, source);
        let machine = fs.os_boot_id().map_err(failed)?;
        let found = match content {
            StoreContent::Nothing => None,
            StoreContent::Directory | StoreContent::Data => read(&*fs, &path)?,
        };
        let (record, was_clean) = match &found {
            Some(Some((last, file_identity))) if *file_identity == fs.file_identity(&path).map_err(failed)? => {
                (last.next(machine), last.is_clean && last.boot > 0)
            }
            Some(Some((last, _))) => {
                tracing::warn!(dir = %dir.display(), "this store is a copy of another one: it takes an id of its own");
                (Record { seq: last.seq, ..Record::begin(&*fs, dir, true, machine)? }, false)
            }
            Some(None) => {
                tracing::error!(file = %path.display(), "damaged: the store takes a new id");
                (Record::begin(&*fs, dir, true, machine)?, false)
            }
            None => (Record::begin(&*fs, dir, content == StoreContent::Data, machine)?, false),
        };
        Ok(Self {
            fs,
            dir: dir.to_owned(),
            was_clean,
            is_fresh: found.is_none() && content != StoreContent::Data,
            record: Mutex::new(record),
            has_begun: AtomicBool::new(false),
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

    /// Whether [`begin`](Self::begin) has been done. Every write must check this.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// Records this start on disk. This removes the mark of a clean close.
    pub(super) fn begin(&self) -> io::Result<()> {
        let record = self.record.lock();
        if !self.has_begun() {
            self.write(&record)?;
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
            record.is_clean = true;
        })
    }

    /// Records that a write or sync failed. It is then unknown what reached the disk. The next
    /// start must know this even if the machine was not restarted.
    pub(super) fn note_failure(&self) {
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

/// Whether a write or sync of the previous run failed. The page cache may then hold data that is
/// not on the disk. A later successful sync does not change that, because the kernel takes the
/// pages for written.
pub(super) fn run_before_has_failed(fs: &dyn FileSystem, dir: &Path) -> Result<bool, StorageError> {
    Ok(read(fs, &identity_path(dir))?.flatten().is_some_and(|(record, _)| record.has_failed))
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
mod tests {
    use super::*;
    use crate::fs::read_file;
    use crate::fs::sim::{FaultyFs, Loss};

    const DIR: &str = "/store";

    fn load(fs: &Arc<FaultyFs>, content: StoreContent) -> IdentityFile {
        IdentityFile::load(fs.clone(), Path::new(DIR), content).unwrap()
    }

    fn begun(fs: &Arc<FaultyFs>) -> IdentityFile {
        fs.create_dir_all(Path::new(DIR)).unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        let file = load(fs, StoreContent::Data);
        file.begin().unwrap();
        file
    }

    #[test]
    fn every_bit_of_the_file_is_checked() {
        let record = Record {
            store_id: 1 << 60,
            boot: 7,
            is_clean: true,
            is_restored: true,
            has_failed: true,
            lost_writes_boot: 3,
            seq: 99,
            machine: Some(1 << 100),
        };
        let file_identity = FileIdentity { inode: 5, created_ns: 6 };
        let bytes = record.encode(file_identity);
        assert_eq!(bytes.len(), CONTENT_BYTES + 4);
        assert_eq!(Record::decode(&bytes, Path::new("f")).unwrap(), Some((record, file_identity)));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&bad, Path::new("f")).unwrap(), None, "bit {bit}");
        }
        let mut newer = bytes[..CONTENT_BYTES].to_vec();
        newer[8] = 2;
        newer.extend_from_slice(&crc32fast::hash(&newer).to_le_bytes());
        let text = Record::decode(&newer, Path::new("f")).unwrap_err().to_string();
        assert!(text.contains("format 2"), "{text}");
    }

    #[test]
    fn a_start_knows_how_the_run_before_ended() {
        let fs = FaultyFs::new(1);
        let first = begun(&fs).identity();
        assert!(first.is_restored, "data, and nothing that says whose");
        assert_eq!((first.boot, first.was_clean, first.lost_writes_boot), (1, false, None));
        let killed = begun(&fs.restart(Loss::Nothing)).identity();
        assert_eq!((killed.store_id, killed.boot, killed.lost_writes_boot), (first.store_id, 2, None));
    }

    #[test]
    fn the_tail_is_lost_with_the_power_and_never_after_a_clean_end() {
        let fs = FaultyFs::new(1);
        begun(&fs).end(40).unwrap();
        let fs = fs.restart(Loss::Everything);
        let clean = begun(&fs);
        let identity = clean.identity();
        assert_eq!((identity.boot, identity.was_clean, identity.lost_writes_boot, clean.seq()), (2, true, None, 40));
        let fs = fs.restart(Loss::Everything);
        let lost = begun(&fs).identity();
        assert_eq!((lost.boot, lost.was_clean, lost.lost_writes_boot), (3, false, Some(3)));
        assert!(lost.has_lost_writes());
        let later = begun(&fs.restart(Loss::Nothing)).identity();
        assert_eq!((later.boot, later.lost_writes_boot, later.has_lost_writes()), (4, Some(3), false));
    }

    #[test]
    fn a_failed_sync_is_as_bad_as_a_loss_of_power() {
        let fs = FaultyFs::new(1);
        begun(&fs).note_failure();
        let fs = fs.restart(Loss::Nothing);
        assert_eq!(begun(&fs).identity().lost_writes_boot, Some(2));
        assert_eq!(begun(&fs).identity().lost_writes_boot, Some(2), "that was noted once");
    }

    #[test]
    fn a_clean_mark_serves_one_start_wherever_the_power_goes() {
        for call in 1..20 {
            for loss in [Loss::Everything, Loss::Some, Loss::Nothing] {
                let fs = FaultyFs::new(call);
                begun(&fs).end(1).unwrap();
                fs.cut_power_at(call);
                let second = IdentityFile::load(fs.clone(), Path::new(DIR), StoreContent::Data);
                let begun = second.is_ok_and(|second| second.begin().is_ok());
                let third = load(&fs.restart(loss), StoreContent::Data).identity();
                assert!(!begun || (third.boot, third.was_clean) == (3, false), "call {call}, {loss:?}: {third:?}");
                assert!(third.was_clean == (third.boot == 2), "call {call}, {loss:?}: {third:?}");
            }
        }
    }

    #[test]
    fn a_copy_is_another_store() {
        let fs = FaultyFs::new(1);
        let first = begun(&fs);
        first.end(9).unwrap();
        let path = Path::new(DIR).join(NAME);
        let bytes = read_file(&*fs, &path, 1000).unwrap();
        fs.remove_file(&path).unwrap();
        crate::fs::replace_file(&*fs, &path, &bytes).unwrap();
        let copy = load(&fs, StoreContent::Data);
        let identity = copy.identity();
        assert_ne!(identity.store_id, first.identity().store_id);
        assert_eq!((identity.boot, identity.was_clean, identity.is_restored, copy.seq()), (1, false, true, 9));
    }

    #[test]
    fn a_damaged_file_makes_a_new_store_and_an_empty_directory_one_that_is_new() {
        let fs = FaultyFs::new(1);
        begun(&fs).end(1).unwrap();
        fs.flip_bit(&Path::new(DIR).join(NAME), 200).unwrap();
        assert!(load(&fs, StoreContent::Data).identity().is_restored);
        let fs = FaultyFs::new(1);
        fs.create_dir_all(Path::new(DIR)).unwrap();
        let empty = load(&fs, StoreContent::Directory);
        assert!(empty.identity().is_new() && empty.identity().boot == 0);
        empty.begin().unwrap();
        assert!(empty.identity().is_new() && empty.identity().boot == 1);
        assert!(!load(&fs, StoreContent::Directory).identity().is_new());
    }

    #[test]
    fn a_restored_store_says_so_at_every_start() {
        let fs = FaultyFs::new(1);
        fs.create_dir_all(Path::new(DIR)).unwrap();
        begin_restored(&*fs, Path::new(DIR), 77).unwrap();
        for boot in 1..4 {
            let file = begun(&fs);
            let identity = file.identity();
            assert_eq!((identity.boot, identity.is_restored, identity.was_clean), (boot, true, false));
            assert_eq!((file.seq(), identity.lost_writes_boot), (77, None));
        }
    }
}
