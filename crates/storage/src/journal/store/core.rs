//! The part of a store that its snapshots share: its state, and whether it takes reads and writes.
//!
//! Locks, in the order in which they may be taken: `background`, `writer`, an index shard, `files`.
//! Reads take the last two and hold neither while they wait for the disk.

use crate::drops::DropNotifier;
use crate::error::StorageError;
use crate::feed::RemovalLog;
use crate::fold::Expired;
use crate::inventory::PromisedFile;
use crate::journal::background::BackgroundWork;
use crate::journal::data_file::DataFile;
use crate::journal::feed::Retention;
use crate::journal::identity::IdentityFile;
use crate::journal::inventory_keeper::InventoryKeeper;
use crate::journal::policy::JournalPolicy;
use crate::journal::scrub::ScrubState;
use crate::journal::shared::Shared;
use crate::journal::snapshot::SnapshotTickets;
use crate::journal::status::StoreCounters;
use crate::journal::writer::Writer;
use crate::unreadable::UnreadableNotifier;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// The data files of a store by id.
pub(in crate::journal) type Files = BTreeMap<u32, Arc<DataFile>>;

/// The part of a store that its snapshots share.
pub(crate) struct Core<P: JournalPolicy> {
    pub(in crate::journal) shared: Arc<Shared>,
    pub(in crate::journal) partition: u32,
    pub(in crate::journal) dir: PathBuf,
    pub(in crate::journal) identity: IdentityFile,
    pub(in crate::journal) inventory: InventoryKeeper,
    /// Promised files that the start could not read. It left them in place.
    pub(in crate::journal) unreadable_files: BTreeMap<u32, PromisedFile>,
    pub(crate) index: P::Index,
    pub(in crate::journal) policy: P,
    pub(in crate::journal) files: RwLock<Files>,
    pub(in crate::journal) writer: Mutex<Writer>,
    pub(in crate::journal) background: Mutex<BackgroundWork>,
    /// When the last sync at an interval began. Not under `background`, because other work may hold
    /// that lock for long.
    pub(in crate::journal) last_sync: Mutex<Instant>,
    pub(in crate::journal) counters: StoreCounters,
    /// Called with the writer's lock held.
    pub(in crate::journal) drops: DropNotifier,
    /// Removals that the journal does not record, for consumers of the change feed. Changed with
    /// the writer's lock held.
    pub(in crate::journal) removals: RemovalLog,
    /// The storage tombstones that consumers of the change feed need.
    pub(in crate::journal) retention: Retention,
    pub(in crate::journal) unreadable: UnreadableNotifier,
    pub(in crate::journal) scrub: ScrubState,
    /// Lost ranges that no open data file counts: the name of their file is lost too, or the file
    /// cannot be read at all.
    pub(in crate::journal) lost_ranges: AtomicU64,
    /// See [`crate::Status::lost_up_to`].
    pub(in crate::journal) lost_up_to: AtomicU64,
    pub(in crate::journal) torn_bytes: u64,
    pub(in crate::journal) now_secs: AtomicU64,
    /// Tickets of live snapshots. Files that were in use when the oldest one began stay on disk.
    pub(in crate::journal) snapshot_tickets: Mutex<SnapshotTickets<P::Index>>,
    /// No append may begin any more. Set under the writer's lock, before the last sync.
    pub(super) is_closing: AtomicBool,
    pub(super) closed: AtomicBool,
    /// Writes are refused while the store is handed over.
    pub(super) is_closed_to_writes: AtomicBool,
    /// Some version may expire.
    pub(super) has_expiring: AtomicBool,
    pub(super) is_poisoned: AtomicBool,
    pub(in crate::journal) poison: Mutex<Option<String>>,
    pub(in crate::journal) synced_seq: AtomicU64,
    pub(super) sync_leader: Mutex<bool>,
    pub(super) sync_done: Condvar,
}

/// The result of the recovery at a start.
pub(in crate::journal) struct Recovered<P: JournalPolicy> {
    pub(in crate::journal) identity: IdentityFile,
    pub(in crate::journal) inventory: InventoryKeeper,
    pub(in crate::journal) unreadable_files: BTreeMap<u32, PromisedFile>,
    pub(in crate::journal) index: P::Index,
    pub(in crate::journal) policy: P,
    pub(in crate::journal) files: Files,
    pub(in crate::journal) writer: Writer,
    pub(in crate::journal) retention: Retention,
    pub(in crate::journal) lost_ranges: u64,
    pub(in crate::journal) lost_up_to: u64,
    pub(in crate::journal) torn_bytes: u64,
    pub(in crate::journal) has_expiring: bool,
}

impl<P: JournalPolicy> Core<P> {
    pub(in crate::journal) fn new(shared: Arc<Shared>, partition: u32, dir: PathBuf, found: Recovered<P>) -> Self {
        let background = BackgroundWork::new(partition);
        let now_secs = AtomicU64::new(shared.config.opened_at_secs);
        let last_sync = Mutex::new(shared.fs.machine().now());
        let synced_seq = AtomicU64::new(found.writer.last_seq());
        Self {
            shared,
            partition,
            dir,
            identity: found.identity,
            inventory: found.inventory,
            unreadable_files: found.unreadable_files,
            index: found.index,
            policy: found.policy,
            files: RwLock::new(found.files),
            writer: Mutex::new(found.writer),
            background: Mutex::new(background),
            last_sync,
            counters: StoreCounters::default(),
            drops: DropNotifier::default(),
            removals: RemovalLog::default(),
            retention: found.retention,
            unreadable: UnreadableNotifier::default(),
            scrub: ScrubState::default(),
            lost_ranges: AtomicU64::new(found.lost_ranges),
            lost_up_to: AtomicU64::new(found.lost_up_to),
            torn_bytes: found.torn_bytes,
            now_secs,
            snapshot_tickets: Mutex::default(),
            is_closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            is_closed_to_writes: AtomicBool::new(false),
            has_expiring: AtomicBool::new(found.has_expiring),
            is_poisoned: AtomicBool::new(false),
            poison: Mutex::new(None),
            synced_seq,
            sync_leader: Mutex::new(false),
            sync_done: Condvar::new(),
        }
    }

    pub(in crate::journal) fn is_expired(&self, expires_secs: u32) -> bool {
        expires_secs != 0 && u64::from(expires_secs) < self.now_secs.load(Ordering::Relaxed)
    }

    /// Whether a version has expired and is not among the visible ones.
    pub(in crate::journal) fn is_hidden(&self, expires_secs: u32, visible: Expired) -> bool {
        self.is_expired(expires_secs) && !visible.shows(self.shared.config.forgets_expired())
    }

    /// Fails when the store is closed. A poisoned store is open for reads.
    pub(in crate::journal) fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) { Err(StorageError::Closed) } else { Ok(()) }
    }

    pub(in crate::journal) fn check_writable(&self) -> Result<(), StorageError> {
        self.check_open()?;
        if self.is_poisoned.load(Ordering::Acquire) {
            return Err(StorageError::Poisoned(self.poison.lock().clone().unwrap_or_default()));
        }
        Ok(())
    }

    /// Fails when no append may begin. The result holds for as long as the caller holds the
    /// writer's lock.
    pub(super) fn check_appendable(&self) -> Result<(), StorageError> {
        self.check_writable()?;
        if self.is_closing.load(Ordering::Acquire) {
            return Err(StorageError::Closed);
        }
        if self.is_closed_to_writes.load(Ordering::Acquire) { Err(StorageError::ClosedToWrites) } else { Ok(()) }
    }

    /// Stops all further writes, because it is unknown which bytes have reached the disk.
    pub(in crate::journal) fn poison(&self, error: &StorageError) {
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

    /// Whether the index may contain versions that expire.
    pub(in crate::journal) fn expires_anything(&self) -> bool {
        self.has_expiring.load(Ordering::Relaxed)
    }
}

impl<P: JournalPolicy> Drop for Core<P> {
    fn drop(&mut self) {
        self.background.get_mut().merges.release_turn(&self.shared, self.partition);
        self.shared.leave(self.partition);
    }
}
