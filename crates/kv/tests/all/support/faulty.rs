//! Stores that fail on demand.

use ombak_storage::{
    Appended, Backend, BackendFactory, ChangesQuery, ChangesSince, DropObserver, FeedCursor, MemoryConfig,
    MemoryFactory, Openings, ReadMode, SeqSource, Snapshot, Status, StorageError, StoreIdentity, Stored, Write,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// The faults that currently apply to all stores of a node.
#[derive(Default)]
pub struct Faults {
    pub nothing_cached: AtomicBool,
    /// Values are on the disk alone, and heads are in memory.
    pub no_value_cached: AtomicBool,
    pub reads_fail: AtomicBool,
    /// The disk does not give back what cannot be read. Otherwise it is damaged.
    pub are_media_errors: AtomicBool,
    /// Values cannot be read; heads can.
    pub values_fail: AtomicBool,
    pub writes_fail: AtomicBool,
    pub syncs_fail: AtomicBool,
    pub syncs: AtomicU64,
    /// Syncs wait while this is true.
    pub syncs_held: Mutex<bool>,
    pub syncs_released: Condvar,
    /// Background work waits while this is true.
    pub maintenance_held: Mutex<bool>,
    pub maintenance_released: Condvar,
    /// Number of stores whose background work waits.
    pub maintenance_waiting: AtomicU64,
    /// The interval at which stores ask for a sync.
    pub sync_interval: Mutex<Option<Duration>>,
    /// The partition with this number returns no snapshots and removes no keys; `failures` counts
    /// its failures.
    pub broken_partition: Mutex<Option<u32>>,
    pub failures: AtomicU64,
    /// Puts wait in the store, with the lock of their key, while this is true.
    pub puts_held: Mutex<bool>,
    pub puts_released: Condvar,
    /// Number of puts that have reached the store.
    pub puts: AtomicU64,
    /// Snapshots wait while this is true.
    pub snapshots_held: Mutex<bool>,
    pub snapshots_released: Condvar,
    /// Number of snapshots that were asked for.
    pub snapshots: AtomicU64,
}

impl Faults {
    pub fn set(&self, flag: &AtomicBool, on: bool) {
        flag.store(on, Ordering::SeqCst);
    }

    pub fn hold_maintenance(&self, held: bool) {
        *self.maintenance_held.lock().unwrap() = held;
        self.maintenance_released.notify_all();
    }

    /// The error of a version that cannot be read.
    fn unreadable(&self) -> StorageError {
        if !self.are_media_errors.load(Ordering::SeqCst) {
            return StorageError::Damaged { file: "1.data".into(), offset: 7, what: "checksum" };
        }
        // EIO.
        let source = std::io::Error::from_raw_os_error(5);
        StorageError::MediaError { file: "1.data".into(), offset: 7, source }
    }

    fn check_partition(&self, partition: u32) -> Result<(), StorageError> {
        if *self.broken_partition.lock().unwrap() != Some(partition) {
            return Ok(());
        }
        self.failures.fetch_add(1, Ordering::SeqCst);
        Err(self.unreadable())
    }

    pub fn hold_puts(&self, held: bool) {
        *self.puts_held.lock().unwrap() = held;
        self.puts_released.notify_all();
    }

    pub fn hold_snapshots(&self, held: bool) {
        *self.snapshots_held.lock().unwrap() = held;
        self.snapshots_released.notify_all();
    }

    pub fn hold_syncs(&self, held: bool) {
        *self.syncs_held.lock().unwrap() = held;
        self.syncs_released.notify_all();
    }
}

pub struct FaultyFactory {
    pub faults: Arc<Faults>,
    inner: Box<dyn BackendFactory>,
}

impl FaultyFactory {
    pub fn new() -> Self {
        Self::over(MemoryFactory::new(MemoryConfig::default()))
    }

    /// Wraps the stores of another factory, so that they fail on demand.
    pub fn over(inner: impl BackendFactory + 'static) -> Self {
        Self { faults: Arc::default(), inner: Box::new(inner) }
    }
}

struct FaultyStore {
    faults: Arc<Faults>,
    inner: Arc<dyn Backend>,
    partition: u32,
    synced: AtomicU64,
}

impl BackendFactory for FaultyFactory {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        let inner = self.inner.open_in(partition, seqs)?;
        Ok(Arc::new(FaultyStore { faults: self.faults.clone(), inner, partition, synced: AtomicU64::new(0) }))
    }

    fn name(&self) -> &'static str {
        "faulty"
    }
}

impl FaultyStore {
    fn check_read(&self, mode: ReadMode) -> Result<(), StorageError> {
        if self.faults.nothing_cached.load(Ordering::SeqCst) && mode == ReadMode::Cached {
            return Err(StorageError::WouldBlock);
        }
        if self.faults.reads_fail.load(Ordering::SeqCst) {
            return Err(self.faults.unreadable());
        }
        Ok(())
    }

    fn check_values(&self, mode: ReadMode) -> Result<(), StorageError> {
        if self.faults.no_value_cached.load(Ordering::SeqCst) && mode == ReadMode::Cached {
            return Err(StorageError::WouldBlock);
        }
        if !self.faults.values_fail.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(self.faults.unreadable())
    }
}

impl Backend for FaultyStore {
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.check_read(mode)?;
        self.check_values(mode)?;
        self.inner.get(key, mode)
    }

    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.check_read(mode)?;
        self.inner.head(key, mode)
    }

    fn get_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.check_read(mode)?;
        self.check_values(mode)?;
        self.inner.get_with_expired(key, mode)
    }

    fn head_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.check_read(mode)?;
        self.inner.head_with_expired(key, mode)
    }

    fn check_writable(&self, key: &[u8]) -> Result<(), StorageError> {
        self.inner.check_writable(key)
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        if self.faults.writes_fail.load(Ordering::SeqCst) {
            return Err(StorageError::DiskFull { path: PathBuf::from("1.data") });
        }
        self.faults.puts.fetch_add(1, Ordering::SeqCst);
        let mut held = self.faults.puts_held.lock().unwrap();
        while *held {
            held = self.faults.puts_released.wait(held).unwrap();
        }
        drop(held);
        self.inner.put(write)
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        self.faults.check_partition(self.partition)?;
        self.inner.delete(key)
    }

    fn known_digest(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        self.inner.known_digest(key)
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        self.faults.check_partition(self.partition)?;
        self.inner.delete_if(key, digest)
    }

    fn drop_if(&self, key: &[u8], digest: u64) -> Result<bool, StorageError> {
        self.inner.drop_if(key, digest)
    }

    fn observe_drops(&self, observer: Arc<dyn DropObserver>) -> bool {
        self.inner.observe_drops(observer)
    }

    fn synced_seq(&self) -> u64 {
        self.synced.load(Ordering::SeqCst)
    }

    fn last_seq(&self) -> u64 {
        self.inner.last_seq()
    }

    fn found_seq(&self) -> u64 {
        self.inner.found_seq()
    }

    fn first_seq(&self) -> u64 {
        self.inner.first_seq()
    }

    fn openings(&self) -> Openings {
        self.inner.openings()
    }

    fn close_to_writes(&self, closed: bool) {
        self.inner.close_to_writes(closed);
    }

    fn sync(&self, seq: u64) -> Result<(), StorageError> {
        self.faults.syncs.fetch_add(1, Ordering::SeqCst);
        let mut held = self.faults.syncs_held.lock().unwrap();
        while *held {
            held = self.faults.syncs_released.wait(held).unwrap();
        }
        if self.faults.syncs_fail.load(Ordering::SeqCst) {
            return Err(StorageError::Poisoned("fsync".into()));
        }
        self.synced.fetch_max(seq, Ordering::SeqCst);
        Ok(())
    }

    fn is_synced(&self, seq: u64) -> bool {
        self.synced.load(Ordering::SeqCst) >= seq
    }

    fn sync_each_write(&self) -> bool {
        false
    }

    fn feed_cursor(&self) -> FeedCursor {
        self.inner.feed_cursor()
    }

    fn changes_since(&self, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError> {
        self.faults.check_partition(self.partition)?;
        self.inner.changes_since(query)
    }

    fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError> {
        self.inner.retain_removals(after)
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        self.faults.check_partition(self.partition)?;
        self.faults.snapshots.fetch_add(1, Ordering::SeqCst);
        let mut held = self.faults.snapshots_held.lock().unwrap();
        while *held {
            held = self.faults.snapshots_released.wait(held).unwrap();
        }
        drop(held);
        self.inner.snapshot()
    }

    fn ordered_snapshot(&self, bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        self.inner.ordered_snapshot(bucket)
    }

    fn identity(&self) -> StoreIdentity {
        self.inner.identity()
    }

    fn status(&self) -> Status {
        self.inner.status()
    }

    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError> {
        self.inner.note_loss(lost_ranges)
    }

    fn drop_partition(&self) -> Result<(), StorageError> {
        self.inner.drop_partition()
    }

    fn tell_time(&self, now_secs: u64) {
        self.inner.tell_time(now_secs);
    }

    fn sync_interval(&self) -> Option<Duration> {
        *self.faults.sync_interval.lock().unwrap()
    }

    fn sync_if_due(&self, _now: Instant) -> Result<(), StorageError> {
        self.sync(self.last_seq())
    }

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        let mut held = self.faults.maintenance_held.lock().unwrap();
        while *held {
            self.faults.maintenance_waiting.fetch_add(1, Ordering::SeqCst);
            held = self.faults.maintenance_released.wait(held).unwrap();
        }
        drop(held);
        self.inner.maintain(now_secs)
    }

    fn close(&self) -> Result<(), StorageError> {
        self.inner.close()
    }
}
