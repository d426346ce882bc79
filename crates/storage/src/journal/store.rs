//! The store of one partition: reads, writes and syncs.
//!
//! Locks, in the order in which they may be taken: `upkeep`, `writer`, an index shard, `files`.
//! Reads take the last two and hold neither while they wait for the disk.

use super::backup::JournalBackup;
use super::coding::{CompressionPoint, compress};
use super::config::SyncStrategy;
use super::data_file::{DataFile, data_path};
use super::format::{BodyCoding, Kind, body_crc};
use super::identity::IdentityFile;
use super::inventory_keeper::InventoryKeeper;
use super::key_index::{Entry, Found, Keeps, KeyIndex, Version};
use super::lost_note::LostNote;
use super::read::{Read, Wanted, read_record};
use super::root::{DROPPED_SUFFIX, remove_store_dir};
use super::shared::Shared;
use super::snapshot::{JournalSnapshot, SnapshotTickets};
use super::status::StoreCounters;
use super::upkeep::Upkeep;
use super::writer::{AppendError, NewRecord, Writer, Written, refused_io};
use crate::backend::{Appended, Backend, ReadMode, Snapshot, Status, Stored, Write};
use crate::backup::StoreBackup;
use crate::error::{StorageError, io_error};
use crate::identity::StoreIdentity;
use crate::inventory::PromisedFile;
use crate::limits::check_sizes;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a read is retried because a merge moved the version meanwhile.
const READ_TRIES_MAX: usize = 64;

/// How many keys are added to the ordered index before other work may run.
pub(super) const ORDER_SLICE: usize = 10_000;

/// The data files of a store by id.
pub(super) type Files = BTreeMap<u32, Arc<DataFile>>;

/// The store of one partition: a journal and an index over it.
pub(crate) struct Store<I: KeyIndex> {
    pub(super) core: Arc<Core<I>>,
}

/// The part of a store that its snapshots share.
pub(super) struct Core<I: KeyIndex> {
    pub(super) shared: Arc<Shared>,
    pub(super) partition: u32,
    pub(super) dir: PathBuf,
    pub(super) identity: IdentityFile,
    pub(super) inventory: InventoryKeeper,
    /// Promised files that the start could not read. It left them in place.
    pub(super) left_alone: BTreeMap<u32, PromisedFile>,
    pub(super) index: I,
    pub(super) files: RwLock<Files>,
    pub(super) writer: Mutex<Writer>,
    pub(super) upkeep: Mutex<Upkeep>,
    /// When the last sync at an interval began. Not under `upkeep`, because other work may hold
    /// that lock for long.
    pub(super) last_sync: Mutex<Instant>,
    pub(super) counters: StoreCounters,
    /// Lost ranges that no open data file counts: the name of their file is lost too, or the file
    /// cannot be read at all.
    pub(super) lost_ranges: AtomicU64,
    pub(super) torn_bytes: u64,
    /// The `seq` of the checkpoint that the start found, for an index that keeps everything; 0
    /// otherwise. The counts of live records do not include versions up to it.
    counted_after: u64,
    pub(super) now_secs: AtomicU64,
    /// Tickets of live snapshots. Files that were in use when the oldest one began stay on disk.
    pub(super) snapshot_tickets: Mutex<SnapshotTickets<I>>,
    /// No append may begin any more. Set under the writer's lock, before the last sync.
    is_closing: AtomicBool,
    closed: AtomicBool,
    /// Writes are refused while the store is handed over.
    handed_over: AtomicBool,
    /// Some version may expire.
    has_expiring: AtomicBool,
    is_poisoned: AtomicBool,
    pub(super) poison: Mutex<Option<String>>,
    synced_seq: AtomicU64,
    sync_leader: Mutex<bool>,
    sync_done: Condvar,
}

/// The result of the recovery at a start.
pub(super) struct Recovered<I> {
    pub(super) identity: IdentityFile,
    pub(super) inventory: InventoryKeeper,
    pub(super) left_alone: BTreeMap<u32, PromisedFile>,
    pub(super) index: I,
    pub(super) files: Files,
    pub(super) writer: Writer,
    pub(super) counted_after: u64,
    pub(super) lost_ranges: u64,
    pub(super) torn_bytes: u64,
    pub(super) has_expiring: bool,
}

impl<I: KeyIndex> Core<I> {
    pub(super) fn new(shared: Arc<Shared>, partition: u32, dir: PathBuf, found: Recovered<I>) -> Self {
        let upkeep = Upkeep::new(partition);
        let now_secs = AtomicU64::new(shared.config.opened_at_secs);
        let synced_seq = AtomicU64::new(found.writer.last_seq());
        Self {
            shared,
            partition,
            dir,
            identity: found.identity,
            inventory: found.inventory,
            left_alone: found.left_alone,
            index: found.index,
            files: RwLock::new(found.files),
            writer: Mutex::new(found.writer),
            upkeep: Mutex::new(upkeep),
            last_sync: Mutex::new(Instant::now()),
            counters: StoreCounters::default(),
            lost_ranges: AtomicU64::new(found.lost_ranges),
            torn_bytes: found.torn_bytes,
            counted_after: found.counted_after,
            now_secs,
            snapshot_tickets: Mutex::default(),
            is_closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            handed_over: AtomicBool::new(false),
            has_expiring: AtomicBool::new(found.has_expiring),
            is_poisoned: AtomicBool::new(false),
            poison: Mutex::new(None),
            synced_seq,
            sync_leader: Mutex::new(false),
            sync_done: Condvar::new(),
        }
    }

    pub(super) fn is_expired(&self, expires_secs: u32) -> bool {
        expires_secs != 0 && u64::from(expires_secs) < self.now_secs.load(Ordering::Relaxed)
    }

    /// Fails when the store is closed. A poisoned store is open for reads.
    pub(super) fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) { Err(StorageError::Closed) } else { Ok(()) }
    }

    pub(super) fn check_writable(&self) -> Result<(), StorageError> {
        self.check_open()?;
        if self.is_poisoned.load(Ordering::Acquire) {
            return Err(StorageError::Poisoned(self.poison.lock().clone().unwrap_or_default()));
        }
        Ok(())
    }

    /// Fails when no append may begin. The result holds for as long as the caller holds the
    /// writer's lock.
    fn check_appendable(&self) -> Result<(), StorageError> {
        self.check_writable()?;
        if self.is_closing.load(Ordering::Acquire) {
            return Err(StorageError::Closed);
        }
        if self.handed_over.load(Ordering::Acquire) { Err(StorageError::ClosedToWrites) } else { Ok(()) }
    }

    /// Stops all further writes, because it is unknown which bytes have reached the disk.
    pub(super) fn poison(&self, error: &StorageError) {
        let is_first = {
            let mut poison = self.poison.lock();
            let is_first = poison.is_none();
            poison.get_or_insert_with(|| error.to_string());
            is_first
        };
        self.is_poisoned.store(true, Ordering::Release);
        if is_first {
            tracing::error!(partition = self.partition, %error, "the store takes no writes any more");
            self.identity.note_failure();
        }
    }

    /// Reads a version of a key. Retries the look-up if a merge moves the version between the
    /// look-up and the read.
    pub(super) fn read_with(
        &self,
        key: &[u8],
        mode: ReadMode,
        wanted: Wanted,
        look: impl Fn() -> Result<Option<Found>, StorageError>,
    ) -> Result<Option<Read>, StorageError> {
        self.check_open()?;
        let mut last = StorageError::Damaged { file: self.dir.clone(), offset: 0, what: "a data file is not there" };
        for _ in 0..READ_TRIES_MAX {
            let Some(found) = look()?.filter(|found| !self.is_expired(found.entry.expires_secs)) else {
                return Ok(None);
            };
            let Found { entry, head, body, attrs } = found;
            let body = body.filter(|_| wanted == Wanted::Whole);
            if let Some(head) = head.filter(|_| wanted == Wanted::Head || body.is_some()) {
                let stored = Stored { head, body, digest: entry.digest, seq: entry.seq };
                return Ok(Some(Read { stored, attrs }));
            }
            let Some(file) = self.files.read().get(&entry.position.file_id).cloned() else { continue };
            match read_record(&self.shared.handles, &file, &entry, key, mode, wanted) {
                Ok(read) => {
                    if wanted == Wanted::Head {
                        self.index.remember_head(entry.position, &read.stored.head);
                    }
                    return Ok(Some(read));
                }
                Err(StorageError::Io { op, path, source }) if source.kind() == io::ErrorKind::NotFound => {
                    last = StorageError::Io { op, path, source };
                }
                Err(error @ StorageError::WouldBlock) => return Err(error),
                Err(error) => {
                    self.counters.read_errors.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(partition = self.partition, %error, "a version cannot be read");
                    return Err(error);
                }
            }
        }
        // The files may be gone because the partition was dropped.
        self.check_open()?;
        Err(last)
    }

    /// Whether the index may contain versions that expire.
    pub(super) fn expires_anything(&self) -> bool {
        self.has_expiring.load(Ordering::Relaxed)
    }

    /// Continues to build the ordered index of keys and terms; true when it is complete.
    pub(super) fn make_order(&self, count_max: usize) -> Result<bool, StorageError> {
        self.index.make_order(count_max, &|key, entry| {
            let look = || Ok(Some(Found { entry: *entry, head: None, body: None, attrs: None }));
            let read = self.read_with(key, ReadMode::Blocking, Wanted::Head, look)?;
            Ok(read.map(|read| read.stored.head).unwrap_or_default())
        })
    }

    fn append(&self, writer: &mut MutexGuard<'_, Writer>, record: &NewRecord<'_>) -> Result<Written, StorageError> {
        self.check_appendable()?;
        if !self.identity.has_begun() {
            self.begin_late()?;
        }
        let now_secs = self.now_secs.load(Ordering::Relaxed);
        let had_file = writer.active.as_ref().map(|active| active.file.id);
        let result = writer.append(&self.shared, &self.dir, record, now_secs);
        if let Some(active) = &writer.active
            && had_file != Some(active.file.id)
        {
            self.files.write().insert(active.file.id, active.file.clone());
        }
        result.map_err(|error| match error {
            AppendError::Refused(error) => error,
            AppendError::Fatal(error) => {
                self.poison(&error);
                error
            }
        })
    }

    /// Prepares the directory at the first write of a new store, or of a store whose start found
    /// the disk full.
    #[cold]
    fn begin_late(&self) -> Result<(), StorageError> {
        let begin = || {
            self.shared.fs.create_dir_all(&self.dir)?;
            self.shared.fs.sync_dir(&self.shared.root)?;
            self.identity.begin()
        };
        self.inventory.note_change();
        begin().map_err(|source| refused_io("create", &self.dir, source))
    }

    /// Updates the counts of the version's file, because the index no longer points at the version.
    pub(super) fn forget_live(&self, entry: &Entry) {
        if entry.seq <= self.counted_after {
            return;
        }
        if let Some(file) = self.files.read().get(&entry.position.file_id) {
            file.counters.remove_live(entry.position.size);
        }
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        let body_len = check_sizes(write)?;
        let config = &self.shared.config;
        // An index that keeps whole versions compresses them itself.
        let compresses = config.compression_point == CompressionPoint::OnReceipt && I::KEEPS != Keeps::Everything;
        let compressed = if compresses { compress(config.compression, write.body) } else { None };
        let parts = compressed.as_ref().map(|(_, body)| [&body[..]]);
        let (body, body_len, coding) = match (&parts, &compressed) {
            (Some(parts), Some((coding, body))) => (&parts[..], body.len(), *coding),
            _ => (write.body, body_len, BodyCoding::Plain),
        };
        let record = NewRecord {
            kind: Kind::Put,
            key: write.key,
            head: write.head,
            body,
            body_len,
            coding,
            crc_body: body_crc(body),
            digest: write.digest,
            tstamp_secs: write.tstamp_secs,
            expires_secs: write.expires_secs,
            has_terms: write.has_terms,
        };
        let key = I::key(write.key);
        let mut writer = self.writer.lock();
        let prior = self.index.prior(key)?;
        let Written { seq, position, file } = self.append(&mut writer, &record)?;
        file.counters.add_live(position.size);
        let put_bytes = write.key.len() + write.head.len() + write.body.iter().map(|part| part.len()).sum::<usize>();
        self.counters.put_bytes.fetch_add(put_bytes as u64, Ordering::Relaxed);
        let expires_secs = self.shared.config.expires_at(write.tstamp_secs, write.expires_secs);
        if expires_secs != 0 && !self.expires_anything() {
            self.has_expiring.store(true, Ordering::Relaxed);
        }
        let entry = Entry { position, expires_secs, seq, digest: write.digest };
        let Write { head, body, tstamp_secs, expires_secs, .. } = *write;
        let version = Version { head, body, tstamp_secs, expires_secs };
        let previous = self.index.put(key, &entry, &version, prior);
        if let Some(old) = &previous {
            self.forget_live(old);
        }
        Ok(Appended { previous: previous.map(|old| old.digest), seq })
    }

    /// Removes a key if its current version satisfies `condition`.
    fn delete(&self, key: &[u8], condition: impl Fn(&Entry) -> bool) -> Result<Option<Appended>, StorageError> {
        let indexed = I::key(key);
        let mut writer = self.writer.lock();
        self.check_writable()?;
        if !self.index.get(indexed, ReadMode::Blocking)?.is_some_and(|found| condition(&found.entry)) {
            return Ok(None);
        }
        let prior = self.index.prior(indexed)?;
        let record = NewRecord {
            kind: Kind::Tombstone,
            key,
            head: &[],
            body: &[],
            body_len: 0,
            coding: BodyCoding::Plain,
            crc_body: 0,
            digest: 0,
            tstamp_secs: self.now_secs.load(Ordering::Relaxed).min(u64::from(u32::MAX)) as u32,
            expires_secs: 0,
            has_terms: false,
        };
        let seq = self.append(&mut writer, &record)?.seq;
        let old = self.index.remove(indexed, prior);
        if let Some(old) = &old {
            self.forget_live(old);
        }
        Ok(Some(Appended { previous: old.map(|old| old.digest), seq }))
    }

    fn is_synced(&self, seq: u64) -> bool {
        self.synced_seq.load(Ordering::Acquire) >= seq
    }

    /// Syncs up to `seq`. One caller syncs for all that wait; callers that arrive during a sync are
    /// served by the next one.
    pub(super) fn sync(&self, seq: u64) -> Result<(), StorageError> {
        let mut leading = self.sync_leader.lock();
        loop {
            if self.is_synced(seq) {
                return Ok(());
            }
            if let Err(refused) = self.check_writable() {
                // A close that has ended meanwhile synced everything before it closed the store.
                return if self.is_synced(seq) { Ok(()) } else { Err(refused) };
            }
            if *leading {
                self.sync_done.wait(&mut leading);
                continue;
            }
            *leading = true;
            let last_seq = MutexGuard::unlocked(&mut leading, || self.sync_all());
            *leading = false;
            self.sync_done.notify_all();
            if seq > last_seq {
                // Waiting for a `seq` that was never appended could last forever.
                let what = format!("{seq} was to be synced, and the last append is {last_seq}");
                let source = io::Error::new(io::ErrorKind::InvalidInput, what);
                return Err(io_error("fsync", &self.dir, source));
            }
        }
    }

    /// Syncs everything that was appended so far, and returns the last `seq` of it. A failure
    /// poisons the store.
    fn sync_all(&self) -> u64 {
        let (target, files, dir_dirty, root_dirty) = {
            let mut writer = self.writer.lock();
            let unsynced = |appender: &&super::writer::Appender| {
                appender.file.counters.synced_length.load(Ordering::Acquire) < appender.length
            };
            let all = writer.rolled.iter().chain(writer.active.as_ref()).filter(unsynced);
            let files: Vec<_> =
                all.map(|appender| (appender.file.clone(), appender.handle.clone(), appender.length)).collect();
            let dirty = (std::mem::take(&mut writer.dir_dirty), std::mem::take(&mut writer.root_dirty));
            (writer.last_seq(), files, dirty.0, dirty.1)
        };
        let has_new = files.iter().any(|(file, ..)| file.counters.synced_length.load(Ordering::Acquire) == 0);
        let result = files
            .iter()
            .try_for_each(|(file, handle, _)| {
                handle.sync_data().map_err(|source| file.io_error("fsync", source))?;
                self.name_synced(file)
            })
            .and_then(|()| if dir_dirty { self.sync_dir() } else { Ok(()) })
            .inspect(|()| {
                // Only after the directory is synced: a file that counts as synced may get a hint
                // file, and a hint file must not survive a loss of power that removes the name of
                // its data file.
                for (file, _, length) in &files {
                    file.counters.synced_length.fetch_max(*length, Ordering::AcqRel);
                }
                // This comes last: background work that saw the change earlier would not find the
                // file synced yet, and would not list it.
                if has_new {
                    self.inventory.note_change();
                }
            })
            .and_then(|()| {
                let root = &self.shared.root;
                if root_dirty { self.shared.fs.sync_dir(root).map_err(|e| io_error("fsync", root, e)) } else { Ok(()) }
            });
        match result {
            Ok(()) => drop(self.synced_seq.fetch_max(target, Ordering::AcqRel)),
            Err(error) => self.poison(&error),
        }
        target
    }

    /// Renames a file at its first sync to the name of a synced file. The caller syncs the
    /// directory afterwards.
    fn name_synced(&self, file: &DataFile) -> Result<(), StorageError> {
        if file.counters.synced_length.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        let path = data_path(&self.dir, file.id);
        self.shared.fs.rename(&file.path(), &path).map_err(|source| file.io_error("rename", source))?;
        file.set_path(path);
        Ok(())
    }

    pub(super) fn sync_dir(&self) -> Result<(), StorageError> {
        self.shared.fs.sync_dir(&self.dir).map_err(|source| io_error("fsync", &self.dir, source))
    }

    /// Syncs everything that was appended so far.
    pub(super) fn sync_appended(&self) -> Result<(), StorageError> {
        let seq = self.writer.lock().last_seq();
        self.sync(seq)
    }

    /// Refuses further appends, syncs everything that was appended before, and then marks the store
    /// as cleanly closed. The mark is therefore true even if other threads write meanwhile.
    fn close(&self) -> Result<(), StorageError> {
        let mut upkeep = self.upkeep.lock();
        if self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        upkeep.abandon_merge(self);
        {
            let mut writer = self.writer.lock();
            self.is_closing.store(true, Ordering::Release);
            writer.roll();
        }
        let sealed = self
            .check_writable()
            .and_then(|()| self.seal_rolled(usize::MAX))
            .and_then(|()| self.checkpoint(&mut upkeep))
            .and_then(|()| self.check_writable())
            .inspect(|()| drop(self.renew_inventory()))
            .and_then(|()| self.identity.end(self.writer.lock().last_seq()));
        self.closed.store(true, Ordering::Release);
        sealed
    }

    /// Counts further lost ranges, now and at every start from now on.
    pub(super) fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        let mut writer = self.writer.lock();
        self.check_writable()?;
        let fs = &*self.shared.fs;
        if !writer.dir_exists {
            fs.create_dir_all(&self.dir).map_err(|source| io_error("create", &self.dir, source))?;
            writer.dir_exists = true;
            let root = &self.shared.root;
            fs.sync_dir(root).map_err(|source| io_error("fsync", root, source))?;
        }
        let mut note = LostNote::read(fs, &self.dir)?;
        note.add_further(lost_ranges);
        note.write(fs, &self.dir)?;
        self.inventory.note_change();
        self.lost_ranges.fetch_add(lost_ranges, Ordering::Relaxed);
        Ok(())
    }

    /// Removes the store. The directory is renamed first: after a crash it is either the whole
    /// store, or debris whose name says so.
    fn drop_partition(&self) -> Result<(), StorageError> {
        let mut upkeep = self.upkeep.lock();
        upkeep.abandon_merge(self);
        self.closed.store(true, Ordering::Release);
        let mut writer = self.writer.lock();
        *writer = Writer::new(writer.seqs.clone(), writer.last_seq(), writer.next_id, writer.dir_exists);
        self.files.write().clear();
        if !writer.dir_exists {
            return self.index.destroy();
        }
        self.inventory.forget()?;
        let (fs, root) = (&*self.shared.fs, &self.shared.root);
        let aside = root.join(format!("{}{DROPPED_SUFFIX}", self.partition));
        if fs.list(&aside).is_ok() {
            remove_store_dir(fs, &aside)?;
        }
        fs.rename(&self.dir, &aside).map_err(|source| io_error("rename", &self.dir, source))?;
        writer.dir_exists = false;
        fs.sync_dir(root).map_err(|source| io_error("fsync", root, source))?;
        // Until the renamed directory is gone, each start removes the index again.
        self.index.destroy()?;
        remove_store_dir(fs, &aside)
    }
}

impl<I: KeyIndex> Drop for Core<I> {
    fn drop(&mut self) {
        self.upkeep.get_mut().release_merge_turn(&self.shared, self.partition);
        self.shared.leave(self.partition);
    }
}

impl<I: KeyIndex> Backend for Store<I> {
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        let indexed = I::key(key);
        let read = self.core.read_with(key, mode, Wanted::Whole, || self.core.index.get(indexed, mode))?;
        Ok(read.map(|read| read.stored))
    }

    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        let indexed = I::key(key);
        let read = self.core.read_with(key, mode, Wanted::Head, || self.core.index.get_head(indexed, mode))?;
        Ok(read.map(|read| read.stored))
    }

    fn check_writable(&self, _key: &[u8]) -> Result<(), StorageError> {
        self.core.check_appendable()
    }

    fn record_bytes(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        let found = self.core.index.get(I::key(key), ReadMode::Blocking)?;
        Ok(found.map(|found| u64::from(found.entry.position.size)))
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        self.core.put(write)
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        self.core.delete(key, |_| true)
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        self.core.delete(key, |entry| entry.digest == digest)
    }

    fn sync(&self, seq: u64) -> Result<(), StorageError> {
        if self.core.is_synced(seq) { Ok(()) } else { self.core.sync(seq) }
    }

    fn is_synced(&self, seq: u64) -> bool {
        self.core.is_synced(seq)
    }

    fn synced_seq(&self) -> u64 {
        self.core.synced_seq.load(Ordering::Acquire)
    }

    fn last_seq(&self) -> u64 {
        self.core.writer.lock().last_seq()
    }

    fn close_to_writes(&self, closed: bool) {
        // Taking the lock waits for a write that is under way.
        let _writer = self.core.writer.lock();
        self.core.handed_over.store(closed, Ordering::Release);
    }

    fn sync_each_write(&self) -> bool {
        self.core.shared.config.sync == SyncStrategy::OSync
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        let secs_max = self.core.shared.config.snapshot_secs_max;
        Ok(Box::new(JournalSnapshot::begin(self.core.clone(), secs_max)?))
    }

    fn ordered_snapshot(&self, _bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        while !self.core.make_order(ORDER_SLICE)? {}
        let secs_max = self.core.shared.config.ordered_snapshot_secs_max;
        Ok(Box::new(JournalSnapshot::begin(self.core.clone(), secs_max)?))
    }

    fn identity(&self) -> StoreIdentity {
        self.core.identity.identity()
    }

    fn begin_backup(&self) -> Result<Option<Box<dyn StoreBackup + '_>>, StorageError> {
        Ok(Some(Box::new(JournalBackup::begin(&self.core)?)))
    }

    fn status(&self) -> Status {
        self.core.status()
    }

    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        self.core.note_loss(lost_ranges)
    }

    fn drop_partition(&self) -> Result<(), StorageError> {
        self.core.drop_partition()
    }

    fn tell_time(&self, now_secs: u64) {
        self.core.now_secs.fetch_max(now_secs, Ordering::Relaxed);
    }

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.core.maintain(now_secs)
    }

    fn sync_interval(&self) -> Option<Duration> {
        match self.core.shared.config.sync {
            SyncStrategy::Interval(interval) => Some(interval),
            SyncStrategy::None | SyncStrategy::OSync => None,
        }
    }

    fn sync_if_due(&self, now: Instant) -> Result<(), StorageError> {
        self.core.sync_if_due(now)
    }

    fn is_behind(&self) -> bool {
        self.core.index.is_behind()
    }

    fn catch_up(&self) -> Result<(), StorageError> {
        self.core.catch_up()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.core.close()
    }
}
