//! One data file of a store: its identity, its counters, and a handle that is opened on demand.

use super::feed::ReadMarks;
use crate::backend::ReadMode;
use crate::error::StorageError;
use crate::fs::{File, FileSystem, OpenMode};
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The path of a data file that was synced at least once, header included. Damage to that part is
/// corruption.
pub(crate) fn data_path(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("{id:010}.data"))
}

/// The path of a data file before its first sync. None of it needs to survive a loss of power.
pub(crate) fn unsynced_path(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("{id:010}.fresh"))
}

pub(crate) fn merging_path(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("{id:010}.merging"))
}

pub(crate) fn hint_path(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("{id:010}.hint"))
}

pub(crate) fn hint_temporary_path(dir: &Path, id: u32) -> PathBuf {
    dir.join(format!("{id:010}.hint.tmp"))
}

/// A file id that no file of the directory has had. `next` is the one after the highest.
pub(crate) fn take_file_id(next: &mut u32, dir: &Path) -> Result<u32, StorageError> {
    let id = *next;
    // The highest number stands for "no file".
    let Some(behind) = id.checked_add(1) else {
        let what = format!(
            "no file can be begun behind {}, the last number there is: if it is no file of this store, move it away and start \
             again; if it is, carry the data over to a new directory",
            u32::MAX - 1
        );
        return Err(StorageError::Unusable { path: dir.to_owned(), what });
    };
    *next = behind;
    Ok(id)
}

/// Counters of a file's content. Counts of records never fall; counts of live ones do.
#[derive(Default)]
pub(super) struct FileCounters {
    /// Length of the file in bytes.
    pub(super) length: AtomicU64,
    /// The length that is known to be on disk.
    pub(super) synced_length: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) tombstones: AtomicU64,
    pub(super) tombstone_bytes: AtomicU64,
    /// Number of versions that the index points at.
    pub(super) live_records: AtomicU64,
    pub(super) live_bytes: AtomicU64,
    pub(super) seq_max: AtomicU64,
    pub(super) tstamp_max: AtomicU32,
    /// Number of damaged ranges that had been synced.
    pub(super) lost_ranges: AtomicU32,
    seq_min_inverted: AtomicU64,
}

impl FileCounters {
    pub(super) fn count_record(&self, tombstone: bool, size: u64, seq: u64, tstamp_secs: u32) {
        self.records.fetch_add(1, Ordering::Relaxed);
        if tombstone {
            self.tombstones.fetch_add(1, Ordering::Relaxed);
            self.tombstone_bytes.fetch_add(size, Ordering::Relaxed);
        }
        self.seq_max.fetch_max(seq, Ordering::Relaxed);
        self.seq_min_inverted.fetch_max(u64::MAX - seq, Ordering::Relaxed);
        self.tstamp_max.fetch_max(tstamp_secs, Ordering::Relaxed);
    }

    /// Takes over a range of sequence numbers that was counted earlier.
    pub(super) fn widen_seqs(&self, seq_min: u64, seq_max: u64) {
        self.seq_max.fetch_max(seq_max, Ordering::Relaxed);
        self.seq_min_inverted.fetch_max(u64::MAX - seq_min, Ordering::Relaxed);
    }

    /// Starts counting records again from 0. The counts of live ones stay.
    pub(super) fn reset_records(&self) {
        self.records.store(0, Ordering::Relaxed);
        self.tombstones.store(0, Ordering::Relaxed);
        self.tombstone_bytes.store(0, Ordering::Relaxed);
    }

    pub(super) fn add_live(&self, size: u32) {
        self.live_records.fetch_add(1, Ordering::AcqRel);
        self.live_bytes.fetch_add(u64::from(size), Ordering::AcqRel);
    }

    pub(super) fn remove_live(&self, size: u32) {
        self.live_records.fetch_sub(1, Ordering::AcqRel);
        self.live_bytes.fetch_sub(u64::from(size), Ordering::AcqRel);
    }

    /// The lowest `seq` in the file; `u64::MAX` if it has no record.
    pub(super) fn seq_min(&self) -> u64 {
        u64::MAX - self.seq_min_inverted.load(Ordering::Relaxed)
    }
}

/// A data file of a store.
pub(super) struct DataFile {
    pub(super) id: u32,
    pub(super) salt: u64,
    pub(super) counters: FileCounters,
    /// Where readers of the change feed have been.
    pub(super) read_marks: ReadMarks,
    /// Whether a merge failed to read a part of it. Such a file stays until nothing in it is
    /// current.
    pub(super) unmergeable: AtomicBool,
    /// Whether the disk did not give back a part of it to a merge. There may be storage tombstones
    /// in that part, so the file stays while it has any.
    pub(super) has_unread_part: AtomicBool,
    /// Whether the inventory no longer promises it, because it is about to be removed.
    pub(super) is_unpromised: AtomicBool,
    path: Mutex<PathBuf>,
    handle: RwLock<Option<Arc<dyn File>>>,
    used: AtomicBool,
}

impl DataFile {
    pub(super) fn new(id: u32, salt: u64, path: PathBuf) -> Self {
        Self {
            id,
            salt,
            counters: FileCounters::default(),
            read_marks: ReadMarks::default(),
            unmergeable: AtomicBool::new(false),
            has_unread_part: AtomicBool::new(false),
            is_unpromised: AtomicBool::new(false),
            path: Mutex::new(path),
            handle: RwLock::new(None),
            used: AtomicBool::new(false),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.lock().clone()
    }

    /// Records the new path after a rename.
    pub(super) fn set_path(&self, path: PathBuf) {
        *self.path.lock() = path;
    }

    pub(super) fn io_error(&self, op: &'static str, source: io::Error) -> StorageError {
        StorageError::Io { op, path: self.path(), source }
    }

    pub(super) fn media_error(&self, offset: u64, source: io::Error) -> StorageError {
        StorageError::MediaError { file: self.path(), offset, source }
    }

    pub(super) fn damaged(&self, offset: u64, what: &'static str) -> StorageError {
        StorageError::Damaged { file: self.path(), offset, what }
    }

    /// Whether a merge could do something with the file: the part that cannot be read must have
    /// nothing that has to be kept.
    pub(super) fn can_be_merged(&self) -> bool {
        let has_live = self.counters.live_records.load(Ordering::Acquire) > 0;
        let is_stuck = has_live && self.unmergeable.load(Ordering::Relaxed);
        !is_stuck && !self.may_hide_tombstones()
    }

    /// Whether the part that the disk did not give back may have storage tombstones.
    pub(super) fn may_hide_tombstones(&self) -> bool {
        self.has_unread_part.load(Ordering::Relaxed) && self.counters.tombstones.load(Ordering::Relaxed) > 0
    }

    fn close_handle(&self) {
        *self.handle.write() = None;
    }
}

/// Bounds the number of open handles. Handles that were not used lately are closed first.
pub(super) struct Handles {
    fs: Arc<dyn FileSystem>,
    open_max: usize,
    open: Mutex<VecDeque<Weak<DataFile>>>,
}

impl Handles {
    pub(super) fn new(fs: Arc<dyn FileSystem>, open_max: usize) -> Self {
        Self { fs, open_max: open_max.max(1), open: Mutex::default() }
    }

    /// A handle for reads. Only callers that may wait for the disk open a file.
    pub(super) fn get(&self, file: &Arc<DataFile>, mode: ReadMode) -> io::Result<Arc<dyn File>> {
        if let Some(handle) = &*file.handle.read() {
            if !file.used.load(Ordering::Relaxed) {
                file.used.store(true, Ordering::Relaxed);
            }
            return Ok(handle.clone());
        }
        if mode == ReadMode::Cached {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let handle = self.fs.open(&file.path(), OpenMode::Read)?;
        self.register_open(file, handle.clone());
        Ok(handle)
    }

    /// Takes over an open handle.
    pub(super) fn register_open(&self, file: &Arc<DataFile>, handle: Arc<dyn File>) {
        // The kernel takes neighbouring records in the page cache for a sign of a sequential
        // reader, and then reads far more than the record. Merges and starts read windows of their
        // own.
        handle.expect_random_reads();
        *file.handle.write() = Some(handle);
        file.used.store(true, Ordering::Relaxed);
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(file));
        // Second-chance eviction: a handle that was used since the last check goes to the end of
        // the queue once.
        let mut looks = open.len() * 2;
        while open.len() > self.open_max && looks > 0 {
            looks -= 1;
            let Some(oldest) = open.pop_front() else { break };
            let Some(candidate) = oldest.upgrade() else { continue };
            if candidate.used.swap(false, Ordering::Relaxed) && looks > 0 {
                open.push_back(oldest);
            } else {
                candidate.close_handle();
            }
        }
    }
}
