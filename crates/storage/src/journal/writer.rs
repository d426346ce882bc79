//! The append side of a store: one active file, and one write call for each record.
//!
//! Invariant: a record is either whole in the active file or truncated again. If the truncation
//! fails too, the store is poisoned and never appends after the torn record.

use super::config::JournalConfig;
use super::data_file::{DataFile, hint_temporary_path, take_file_id, unsynced_path};
use super::format::{
    BodyCoding, FILE_HEADER_BYTES, FileHeader, HintEntry, HintWriter, Kind, RECORD_HEADER_BYTES, RecordFields,
    encode_record, extra_len,
};
use super::index::{Position, head_units};
use super::shared::Shared;
use super::space::{CHECK_BYTES, Purpose};
use crate::append_marks::StoreMark;
use crate::error::{StorageError, io_error};
use crate::fs::{File, OpenMode, is_disk_full};
use crate::seq::{SeqSource, used_up};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A buffer that a long record has grown beyond this is shrunk again.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

thread_local! {
    /// The buffer in which a record is encoded. One for each thread stays in the processor's cache;
    /// one for each store would not.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An open file that records are appended to: the active file, or the output of a merge.
pub(super) struct Appender {
    pub(super) file: Arc<DataFile>,
    pub(super) handle: Arc<dyn File>,
    pub(super) length: u64,
    /// None if the hint file could not be written. The next start then reads the data file instead.
    pub(super) hint: Option<HintWriter>,
}

impl Appender {
    /// Creates a file and writes its header.
    pub(super) fn create(shared: &Shared, dir: &Path, path: PathBuf, id: u32, created_secs: u64) -> io::Result<Self> {
        // Clients cannot predict it, so a stored value cannot imitate a record.
        let salt = shared.fs.machine().random_u64()?;
        let handle = shared.fs.open(&path, OpenMode::CreateNew)?;
        if let Err(error) = handle.write_at(&FileHeader { file_id: id, created_secs, salt }.encode(), 0) {
            // Frees the name for the next attempt.
            let _ = shared.fs.remove_file(&path);
            return Err(error);
        }
        let hint = HintWriter::create(&*shared.fs, hint_temporary_path(dir, id), id, salt).ok();
        let file = Arc::new(DataFile::new(id, salt, path));
        file.counters.length.store(FILE_HEADER_BYTES as u64, Ordering::Relaxed);
        shared.handles.register_open(&file, handle.clone());
        Ok(Self { file, handle, length: FILE_HEADER_BYTES as u64, hint })
    }

    /// Counts a record that was written at the end of the file.
    pub(super) fn count(&mut self, shared: &Shared, entry: &HintEntry<'_>) {
        let size = record_bytes(entry);
        let is_tombstone = entry.kind == Kind::Tombstone;
        self.file.counters.count_record(is_tombstone, size, entry.seq, entry.tstamp_secs);
        self.length += size;
        self.file.counters.length.store(self.length, Ordering::Release);
        if let Some(hint) = &mut self.hint
            && let Err(error) = hint.add(entry)
        {
            tracing::warn!(file = %self.file.path().display(), %error, "no hint file: the next start will read the data");
            if let Some(hint) = self.hint.take() {
                hint.abandon(&*shared.fs);
            }
        }
    }
}

/// Length of the record on disk in bytes.
pub(super) fn record_bytes(entry: &HintEntry<'_>) -> u64 {
    (RECORD_HEADER_BYTES + extra_len(entry.expires_secs)) as u64
        + entry.key.len() as u64
        + u64::from(entry.head_len)
        + u64::from(entry.body_len)
}

/// The position under which the index finds a record.
pub(super) fn position_of(file_id: u32, entry: &HintEntry<'_>) -> Position {
    let size = match entry.kind {
        Kind::Put => record_bytes(entry) as u32,
        // A load recognises a tombstone by size 0.
        Kind::Tombstone => 0,
    };
    Position { file_id, offset: entry.offset, size, head_units: head_units(entry.head_len), has_terms: entry.has_terms }
}

/// A record that is to be appended.
pub(super) struct NewRecord<'a> {
    pub(super) kind: Kind,
    pub(super) key: &'a [u8],
    pub(super) head: &'a [u8],
    pub(super) body: &'a [&'a [u8]],
    pub(super) body_len: usize,
    pub(super) coding: BodyCoding,
    pub(super) crc_body: u32,
    pub(super) digest: u64,
    pub(super) tstamp_secs: u32,
    /// Unix seconds; 0: never.
    pub(super) expires_secs: u32,
    pub(super) has_terms: bool,
}

impl NewRecord<'_> {
    fn purpose(&self, config: &JournalConfig) -> Purpose {
        match self.kind {
            Kind::Put if !(config.is_tombstone)(self.digest) => Purpose::Put,
            Kind::Put | Kind::Tombstone => Purpose::Delete,
        }
    }
}

/// The result of an append.
pub(super) struct Written {
    pub(super) seq: u64,
    pub(super) position: Position,
    pub(super) file: Arc<DataFile>,
}

/// The state under the writer's lock.
pub(crate) struct Writer {
    pub(super) active: Option<Appender>,
    /// Files that are closed for appends, but not yet synced and without a hint file.
    pub(super) closed_unsealed: Vec<Appender>,
    pub(super) seqs: SeqSource,
    /// The `seq` of this store's last append.
    last_seq: u64,
    pub(super) next_id: u32,
    /// Whether the partition's directory exists.
    pub(super) dir_exists: bool,
    /// Whether the directory was created and its own name is not synced.
    pub(super) root_dirty: bool,
    /// Whether files were created whose names are not synced.
    pub(super) dir_dirty: bool,
    pub(super) bytes_written: u64,
    /// Whether a write was refused for lack of room, and no check has found room since.
    pub(super) disk_full: bool,
    /// Bytes appended since the free space was last checked.
    bytes_since_space_check: u64,
    /// Where appends are counted outside of the file system of the store.
    mark: Option<StoreMark>,
}

/// Why an append failed.
pub(super) enum AppendError {
    /// The file is unchanged: another write may succeed.
    Refused(StorageError),
    /// The content of the file is unknown.
    Fatal(StorageError),
}

impl Writer {
    pub(super) fn new(seqs: SeqSource, last_seq: u64, next_id: u32, dir_exists: bool, mark: Option<StoreMark>) -> Self {
        Self {
            active: None,
            closed_unsealed: Vec::new(),
            seqs,
            last_seq,
            next_id,
            dir_exists,
            root_dirty: false,
            dir_dirty: false,
            bytes_written: 0,
            disk_full: false,
            // The first append checks the free space.
            bytes_since_space_check: CHECK_BYTES,
            mark,
        }
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Where appends are counted, if they are, and the number of them in this run.
    pub(super) fn mark(&self) -> Option<(StoreMark, u64)> {
        self.mark.as_ref().map(|mark| (mark.clone(), mark.appended()))
    }

    /// Appends a record with one write call.
    pub(super) fn append(
        &mut self,
        shared: &Shared,
        dir: &Path,
        record: &NewRecord<'_>,
        now_secs: u64,
    ) -> Result<Written, AppendError> {
        let size = (RECORD_HEADER_BYTES
            + extra_len(record.expires_secs)
            + record.key.len()
            + record.head.len()
            + record.body_len) as u64;
        let purpose = record.purpose(&shared.config);
        let bytes_since_space_check = self.bytes_since_space_check.saturating_add(size);
        if self.disk_full || shared.space.is_below_reserve() || shared.space.needs_check_after(bytes_since_space_check)
        {
            self.check_space(shared, dir, size, purpose)?;
        }
        self.close_active_if_full(size, &shared.config);
        if self.active.is_none() {
            self.create_active(shared, dir, now_secs)?;
        }
        let Some(active) = &mut self.active else {
            return Err(AppendError::Refused(StorageError::Closed));
        };
        let Some(seq) = self.seqs.take() else { return Err(AppendError::Refused(used_up(dir))) };
        let fields = RecordFields {
            kind: record.kind,
            tstamp_secs: record.tstamp_secs,
            expires_secs: record.expires_secs,
            coding: record.coding,
            has_terms: record.has_terms,
            synced_to: active.file.counters.synced_length.load(Ordering::Acquire) as u32,
            seq,
            digest: record.digest,
            crc_body: record.crc_body,
        };
        let result = BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            encode_record(buffer, &fields, record.key, record.head, record.body, active.file.salt, active.length);
            let result = active.handle.write_at(buffer, active.length);
            buffer.shrink_to(BUFFER_BYTES_KEPT);
            result
        });
        if let Err(error) = result {
            return Err(self.write_failed(error));
        }
        if let Some(mark) = &self.mark {
            mark.count_append();
        }
        let hint = HintEntry {
            kind: record.kind,
            seq,
            digest: record.digest,
            offset: active.length as u32,
            head_len: record.head.len() as u32,
            body_len: record.body_len as u32,
            tstamp_secs: record.tstamp_secs,
            expires_secs: record.expires_secs,
            has_terms: record.has_terms,
            key: record.key,
        };
        let position = position_of(active.file.id, &hint);
        active.count(shared, &hint);
        let file = active.file.clone();
        self.last_seq = seq;
        self.bytes_written += size;
        self.bytes_since_space_check = self.bytes_since_space_check.saturating_add(size);
        // A delete may use space that puts may not use, so its success does not end the refusal of
        // puts.
        self.disk_full &= purpose == Purpose::Delete;
        Ok(Written { seq, position, file })
    }

    /// Closes the active file for appends. The next append begins a new file.
    pub(crate) fn close_active(&mut self) {
        self.closed_unsealed.extend(self.active.take());
    }

    /// The ids of the files that are not sealed: the active file, and closed files without a hint
    /// file.
    pub(super) fn unsealed_ids(&self) -> Vec<u32> {
        self.closed_unsealed.iter().chain(self.active.as_ref()).map(|appender| appender.file.id).collect()
    }

    /// A file id that no file of the directory has had.
    pub(super) fn take_id(&mut self, dir: &Path) -> Result<u32, StorageError> {
        take_file_id(&mut self.next_id, dir)
    }

    fn close_active_if_full(&mut self, size: u64, config: &JournalConfig) {
        let full = |active: &Appender| {
            let has_no_room = active.length.saturating_add(size) > config.file_bytes_max
                || active.file.counters.records.load(Ordering::Relaxed) >= config.file_records_max;
            active.length > FILE_HEADER_BYTES as u64 && has_no_room
        };
        if self.active.as_ref().is_some_and(full) {
            self.close_active();
        }
    }

    fn create_active(&mut self, shared: &Shared, dir: &Path, now_secs: u64) -> Result<(), AppendError> {
        if !self.dir_exists {
            shared.fs.create_dir_all(dir).map_err(|source| self.refused("create", dir, source))?;
            self.dir_exists = true;
            self.root_dirty = true;
        }
        let id = self.take_id(dir).map_err(AppendError::Refused)?;
        let path = unsynced_path(dir, id);
        self.dir_dirty = true;
        let active = Appender::create(shared, dir, path.clone(), id, now_secs)
            .map_err(|source| self.refused("create", &path, source))?;
        self.active = Some(active);
        Ok(())
    }

    fn refused(&mut self, op: &'static str, path: &Path, source: io::Error) -> AppendError {
        self.disk_full |= is_disk_full(&source);
        AppendError::Refused(refused_io(op, path, source))
    }

    /// Checks the free space before a write: from time to time, and before every write after the
    /// disk was full, so that a flood of writes is refused cheaply.
    fn check_space(&mut self, shared: &Shared, dir: &Path, size: u64, purpose: Purpose) -> Result<(), AppendError> {
        let dir = if self.dir_exists { dir } else { &shared.root };
        let free_bytes = match shared.space.check(&*shared.fs, dir) {
            Ok(free_bytes) => free_bytes,
            Err(source) if self.disk_full => return Err(AppendError::Refused(io_error("statvfs", dir, source))),
            // The write itself shows whether there is room.
            Err(_) => return Ok(()),
        };
        // After a write that did not fit, more than its own length must be free, because file
        // systems need space for themselves.
        let needed_bytes = if self.disk_full { size.saturating_mul(2) } else { size };
        if free_bytes > shared.space.floor_bytes(purpose).saturating_add(needed_bytes) {
            self.bytes_since_space_check = 0;
            return Ok(());
        }
        self.disk_full = true;
        Err(AppendError::Refused(StorageError::DiskFull { path: dir.to_owned() }))
    }

    fn write_failed(&mut self, error: io::Error) -> AppendError {
        let Some(active) = &self.active else { return AppendError::Refused(StorageError::Closed) };
        let cut = active.handle.truncate(active.length);
        if !is_disk_full(&error) {
            return AppendError::Fatal(active.file.io_error("write", error));
        }
        if let Err(source) = cut {
            return AppendError::Fatal(active.file.io_error("truncate", source));
        }
        self.disk_full = true;
        AppendError::Refused(StorageError::DiskFull { path: active.file.path() })
    }
}

/// The error of an operation that failed and left everything unchanged.
pub(super) fn refused_io(op: &'static str, path: &Path, source: io::Error) -> StorageError {
    if is_disk_full(&source) { StorageError::DiskFull { path: path.to_owned() } } else { io_error(op, path, source) }
}

/// Whether a call failed for lack of room. It may succeed later.
pub(super) fn is_no_room(error: &StorageError) -> bool {
    match error {
        StorageError::DiskFull { .. } => true,
        StorageError::Io { source, .. } => is_disk_full(source),
        _ => false,
    }
}
