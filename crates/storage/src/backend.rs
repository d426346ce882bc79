//! What every storage backend does: one store a partition.

use crate::error::StorageError;
use bytes::Bytes;
use std::sync::Arc;

/// What a read may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Only what is in memory or in the page cache: [`StorageError::WouldBlock`] otherwise. For network threads.
    Cached,
    /// Wait for the disk.
    Blocking,
}

/// One stored version of a key, as the layer above encoded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Clock and metadata.
    pub head: Bytes,
    /// The values; `None` when only the head was asked for.
    pub body: Option<Bytes>,
    /// The digest that came with the write.
    pub digest: u64,
}

/// A version of a key to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The storage key (`ombak_types::names::encode_storage_key`).
    pub key: &'a [u8],
    /// Clock and metadata.
    pub head: &'a [u8],
    /// The values, to be laid one after the other.
    pub body: &'a [&'a [u8]],
    /// Fingerprint of the version, kept in the index (design: replication rules §13).
    pub digest: u64,
    /// Unix seconds of the write, for expiry.
    pub tstamp_secs: u32,
    /// Unix seconds at which the version is absent by itself; 0: as the store is configured.
    pub expires_secs: u32,
}

/// Reads the index entries in a head, which is bytes to a store.
pub trait HeadTerms: Send + Sync {
    /// Hands over field and term of each, the term in a form that sorts bytewise.
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]));
}

/// For stores without secondary indexes.
#[derive(Clone, Copy, Debug)]
pub struct NoTerms;

impl HeadTerms for NoTerms {
    fn visit(&self, _head: &[u8], _visit: &mut dyn FnMut(&[u8], &[u8])) {}
}

/// The receipt of an append: the write call has returned when a caller holds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Digest of the version that this one replaced.
    pub previous: Option<u64>,
    /// This store's own append order.
    pub seq: u64,
}

/// What a fold visits.
#[derive(Clone, Debug)]
pub struct FoldEntry {
    /// The storage key.
    pub key: Bytes,
    /// The version's digest.
    pub digest: u64,
}

/// Sizes and states of a store, for `vnode-status` and metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// `bitcask` or `memory`.
    pub backend: &'static str,
    /// Keys that have a value or an object tombstone.
    pub keys: u64,
    /// Bytes of current versions.
    pub live_bytes: u64,
    /// Bytes of superseded ones that are still on disk.
    pub dead_bytes: u64,
    /// Files on disk.
    pub files: u64,
    /// Bytes that the in-memory index takes, keys included.
    pub index_bytes: u64,
    /// Bytes of the keys alone.
    pub key_bytes: u64,
    /// Bytes written since the start.
    pub bytes_written: u64,
    /// Merges finished since the start.
    pub merges: u64,
    /// Reads that found a version which does not match its checksum.
    pub read_errors: u64,
    /// Places on disk that were synced once and cannot be read any more: what lay there is unknown.
    pub lost_ranges: u64,
    /// Bytes that a loss of power or a kill left half written, found at the last start and ignored.
    pub torn_bytes: u64,
    /// Whether the disk was full at the last write: writes are refused until there is room.
    pub disk_full: bool,
    /// Why the store takes no writes any more, if so.
    pub poisoned: Option<String>,
}

/// A consistent view of a store's keys, unaffected by later writes. Dropping it releases what it holds back.
pub trait Snapshot: Send {
    /// The next entries whose storage key starts with `prefix`, at most `count_max` of them; empty at the end.
    fn next_keys(&mut self, prefix: &[u8], count_max: usize) -> Result<Vec<FoldEntry>, StorageError>;

    /// The version of a key that this view shows.
    fn read(&self, key: &[u8]) -> Result<Option<Stored>, StorageError>;
}

/// The store of one partition. All calls are safe from any thread; the caller makes sure that a read-modify-write of
/// one key is not interleaved with another (one writer per key).
pub trait Backend: Send + Sync {
    /// Current version of a key, head and body. An unreadable version is an error, never `None`.
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError>;

    /// Current version of a key without its body.
    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError>;

    /// Appends a version. Returned means: the write call has returned, so it outlives the process, not yet the machine.
    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError>;

    /// Removes a key and whatever versions it had; `None` when there was none.
    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError>;

    /// Waits until everything up to `seq` survives a loss of power. Blocks: not for network threads. One call serves
    /// all who wait at the same time.
    fn sync(&self, seq: u64) -> Result<(), StorageError>;

    /// Whether everything up to `seq` is known to survive a loss of power.
    fn is_synced(&self, seq: u64) -> bool;

    /// Whether the store is configured to sync each write before it is acknowledged (`sync.strategy = o_sync`).
    fn sync_each_write(&self) -> bool;

    /// A view for folds.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError>;

    /// Sizes and states.
    fn status(&self) -> Status;

    /// Whether nothing that was once synced is known to be missing. Not so: an absent key proves nothing until this
    /// store has been compared with another replica.
    fn complete(&self) -> bool {
        self.status().lost_ranges == 0
    }

    /// Removes everything, files included. The store takes no calls afterwards.
    fn drop_partition(&self) -> Result<(), StorageError>;

    /// Background work that is due: merging, syncing at an interval, expiry. Called from a maintenance thread every
    /// few hundred milliseconds; returns after a bounded slice of work. `now_secs` is Unix time.
    fn maintain(&self, now_secs: u64) -> Result<(), StorageError>;

    /// Writes and syncs what is pending and closes the files. Further writes are refused.
    fn close(&self) -> Result<(), StorageError>;
}

/// Opens stores; one per configured backend.
pub trait BackendFactory: Send + Sync {
    /// Opens, or creates, the store of a partition (0 … ring_size−1).
    fn open(&self, partition: u32) -> Result<Arc<dyn Backend>, StorageError>;

    /// `bitcask`, `memory`.
    fn name(&self) -> &'static str;
}
