//! Stores that fail on demand.

use ombak_storage::{
    Appended, Backend, BackendFactory, MemoryConfig, MemoryFactory, ReadMode, SeqSource, Snapshot, Status,
    StorageError, StoreIdentity, Stored, Write,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

/// What is wrong at the moment, with all stores of a node.
#[derive(Default)]
pub struct Faults {
    pub nothing_cached: AtomicBool,
    pub reads_fail: AtomicBool,
    pub writes_fail: AtomicBool,
    pub syncs_fail: AtomicBool,
    pub syncs: AtomicU64,
    /// Syncs wait while this is true.
    pub syncs_held: Mutex<bool>,
    pub syncs_released: Condvar,
}

impl Faults {
    pub fn set(&self, flag: &AtomicBool, on: bool) {
        flag.store(on, Ordering::SeqCst);
    }

    pub fn hold_syncs(&self, held: bool) {
        *self.syncs_held.lock().unwrap() = held;
        self.syncs_released.notify_all();
    }
}

pub struct FaultyFactory {
    pub faults: Arc<Faults>,
    inner: MemoryFactory,
}

impl FaultyFactory {
    pub fn new() -> Self {
        Self { faults: Arc::default(), inner: MemoryFactory::new(MemoryConfig::default()) }
    }
}

struct FaultyStore {
    faults: Arc<Faults>,
    inner: Arc<dyn Backend>,
    synced: AtomicU64,
}

impl BackendFactory for FaultyFactory {
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError> {
        let inner = self.inner.open_in(partition, seqs)?;
        Ok(Arc::new(FaultyStore { faults: self.faults.clone(), inner, synced: AtomicU64::new(0) }))
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
            return Err(StorageError::Damaged { file: "1.data".into(), offset: 7, what: "checksum" });
        }
        Ok(())
    }
}

impl Backend for FaultyStore {
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.check_read(mode)?;
        self.inner.get(key, mode)
    }

    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.check_read(mode)?;
        self.inner.head(key, mode)
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        if self.faults.writes_fail.load(Ordering::SeqCst) {
            return Err(StorageError::DiskFull { path: PathBuf::from("1.data") });
        }
        self.inner.put(write)
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        self.inner.delete(key)
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        self.inner.delete_if(key, digest)
    }

    fn synced_seq(&self) -> u64 {
        self.synced.load(Ordering::SeqCst)
    }

    fn last_seq(&self) -> u64 {
        self.inner.last_seq()
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

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
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

    fn maintain(&self, now_secs: u64) -> Result<(), StorageError> {
        self.inner.maintain(now_secs)
    }

    fn close(&self) -> Result<(), StorageError> {
        self.inner.close()
    }
}
