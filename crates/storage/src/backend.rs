//! What every storage backend does: one store a partition.

use crate::backup::StoreBackup;
use crate::error::StorageError;
use crate::identity::StoreIdentity;
use crate::seq::SeqSource;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys that are removed between two looks at a fold.
const DROP_BATCH: usize = 1000;

/// What [`ReadMode::Cached`] reads at once, in bytes. More takes too long to copy and to check.
pub const CACHED_READ_BYTES_MAX: usize = 256 << 10;

/// What a read may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Only what is in memory or in the page cache, and no more than [`CACHED_READ_BYTES_MAX`] of a file:
    /// [`StorageError::WouldBlock`] otherwise. For network threads.
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
    /// Its place in the store's append order: durable once [`Backend::is_synced`] says so of this.
    pub seq: u64,
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
    /// Fingerprint of the version, kept in the index (docs/design/replication.md §13).
    pub digest: u64,
    /// Unix seconds of the write, for expiry.
    pub tstamp_secs: u32,
    /// Unix seconds at which the version is absent by itself; 0: as the store is configured.
    pub expires_secs: u32,
    /// Whether [`HeadTerms`] finds index entries in the head.
    pub has_terms: bool,
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

/// Whether a storage key is of a class: of the buckets of one `n_val`.
pub type Class<'a> = dyn Fn(&[u8]) -> bool + Sync + 'a;

/// Which keys a fold visits: never more than it has to (docs/design/replication.md §1).
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// What the storage keys begin with.
    pub prefix: &'a [u8],
    /// The class that is asked for; none: all are.
    pub class: Option<&'a Class<'a>>,
}

impl<'a> Scope<'a> {
    /// Every key.
    pub const ALL: Self = Self { prefix: b"", class: None };

    /// Keys that begin with `prefix`.
    pub const fn prefix(prefix: &'a [u8]) -> Self {
        Self { prefix, class: None }
    }

    /// Whether a storage key is in it.
    pub fn includes(&self, key: &[u8]) -> bool {
        key.starts_with(self.prefix) && self.class.is_none_or(|class| class(key))
    }
}

/// How much of each version a fold hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its digest.
    Keys,
    /// Its head, too. Where the index has heads, bodies are not touched.
    Heads,
    /// All of it.
    Objects,
}

/// What a fold visits.
#[derive(Clone, Debug)]
pub struct FoldEntry {
    /// The storage key.
    pub key: Bytes,
    /// The version's digest.
    pub digest: u64,
    /// The version's place in the store's append order.
    pub seq: u64,
    /// What was asked for beyond that.
    pub stored: Option<Stored>,
    /// How the version was written: with [`Detail::Objects`], from stores on disk.
    pub attrs: Option<WriteAttrs>,
}

/// What a write says of a version beside its key, head, body and digest: with these, a version can be written elsewhere as it
/// was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteAttrs {
    /// Unix seconds of the write.
    pub tstamp_secs: u32,
    /// As the writer wanted it, whatever the store is configured to; 0: never.
    pub expires_secs: u32,
    /// Whether the head has index entries.
    pub has_terms: bool,
}

/// A part of the keys of one bucket, in order.
#[derive(Clone, Copy, Debug)]
pub struct KeyRange<'a> {
    /// What the storage keys of the bucket begin with.
    pub bucket: &'a [u8],
    /// The first key.
    pub from: Bound<&'a [u8]>,
    /// The last key.
    pub to: Bound<&'a [u8]>,
}

/// A part of the terms of one field of a bucket, in the order of terms and, for a term, of keys.
#[derive(Clone, Copy, Debug)]
pub struct TermRange<'a> {
    /// What the storage keys of the bucket begin with.
    pub bucket: &'a [u8],
    /// The field, with its `_bin` or `_int`.
    pub field: &'a [u8],
    /// The first term, in the form that [`HeadTerms`] hands out.
    pub from: &'a [u8],
    /// The last term.
    pub to: &'a [u8],
    /// Term and key where the page before ended.
    pub after: Option<(&'a [u8], &'a [u8])>,
}

/// One index entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermEntry {
    /// In the form that sorts bytewise.
    pub term: Bytes,
    /// The key within its bucket.
    pub key: Bytes,
}

/// Sizes and states of a store, for `vnode-status` and metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Of one of several backends: its name.
    pub name: String,
    /// `bitcask`, `leveled`, `leveldb`, `memory` or `multi`.
    pub backend: &'static str,
    /// Keys that have a value or an object tombstone.
    pub keys: u64,
    /// Bytes of current versions, as they lie on disk; for leveldb before its blocks are compressed.
    pub live_bytes: u64,
    /// Bytes of superseded ones that are still on disk.
    pub dead_bytes: u64,
    /// Files on disk.
    pub files: u64,
    /// Bytes that the in-memory index takes, keys included.
    pub index_bytes: u64,
    /// Bytes of the keys alone.
    pub key_bytes: u64,
    /// Bytes of puts since the start: keys, heads and bodies as they came.
    pub put_bytes: u64,
    /// Bytes written since the start: journal, ledger and what merging and compaction copied.
    pub bytes_written: u64,
    /// Bytes still to be read of the files that are to be merged; for leveldb those of new tables, which wait to be compacted
    /// with the older ones.
    pub merge_pending_bytes: u64,
    /// The last merge since the start; for leveldb the last compaction.
    pub last_merge: Option<LastMerge>,
    /// The order of keys on disk, where there is one.
    pub ledger: Option<LedgerStatus>,
    /// Merges finished since the start; for leveldb compactions.
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
    /// Of a store that consists of others: theirs.
    pub children: Vec<Status>,
}

impl Status {
    /// Bytes written for each byte put, since the start; none before the first put.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.put_bytes > 0).then(|| self.bytes_written as f64 / self.put_bytes as f64)
    }
}

/// A merge that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastMerge {
    /// Unix seconds of its end.
    pub ended_at_secs: u64,
    /// Bytes of the files that it took.
    pub bytes_before: u64,
    /// Bytes of those that it left in their place.
    pub bytes_after: u64,
}

/// Sizes of the order of keys on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStatus {
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Bytes that are in memory only.
    pub memory_bytes: u64,
    /// Bytes written since the start, compaction included.
    pub written_bytes: u64,
    /// Runs of tables that wait to be compacted: a read may have to look into each of them.
    pub first_level_tables: u64,
    /// Bytes of those.
    pub pending_bytes: u64,
}

/// A consistent view of a store's keys, unaffected by later writes. Dropping it releases what it holds back.
pub trait Snapshot: Send {
    /// The next entries of a fold, at most `count_max` of them; empty at the end.
    fn next(&mut self, scope: &Scope<'_>, detail: Detail, count_max: usize) -> Result<Vec<FoldEntry>, StorageError>;

    /// Keys of one bucket in order, at most `count_max` of them. Only on a view of [`Backend::ordered_snapshot`].
    fn keys_in_order(&mut self, range: &KeyRange<'_>, count_max: usize) -> Result<Vec<FoldEntry>, StorageError>;

    /// Index entries in order, at most `count_max` of them. Only on a view of [`Backend::ordered_snapshot`].
    fn terms_in_order(&mut self, range: &TermRange<'_>, count_max: usize) -> Result<Vec<TermEntry>, StorageError>;

    /// Whether some version in it may be absent by itself one day. True where that is not known.
    fn may_expire(&self) -> bool {
        true
    }

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

    /// Fails as a put of this key would that finds the store closed, closed to writes or poisoned. For a caller who has
    /// nothing to append because the version is there already.
    fn check_writable(&self, key: &[u8]) -> Result<(), StorageError>;

    /// Bytes of the current version of a key, as far as an index tells them without reading it; none when it does not. Waits
    /// for the disk.
    fn record_bytes(&self, _key: &[u8]) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// Appends a version. Returned means: the write call has returned, so it outlives the process, not yet the machine.
    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError>;

    /// Removes a key and whatever versions it had; `None` when there was none.
    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError>;

    /// Removes a key if it still holds the version with this digest: what was proven of a version is true of that one only
    /// (docs/design/replication.md §4). `None` when it does not.
    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError>;

    /// Waits until everything up to `seq` survives a loss of power. Blocks: not for network threads. One call serves
    /// all who wait at the same time.
    fn sync(&self, seq: u64) -> Result<(), StorageError>;

    /// Whether everything up to `seq` is known to survive a loss of power.
    fn is_synced(&self, seq: u64) -> bool;

    /// Everything up to here is known to survive a loss of power.
    fn synced_seq(&self) -> u64;

    /// The last append.
    fn last_seq(&self) -> u64;

    /// Refuses writes with [`StorageError::ClosedToWrites`] from now on, or takes them again; reads go on. What was under
    /// way has ended when this returns.
    fn close_to_writes(&self, closed: bool);

    /// Whether the store is configured to sync each write before it is acknowledged (`sync.strategy = o_sync`).
    fn sync_each_write(&self) -> bool;

    /// A view for folds.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError>;

    /// A view of one bucket that knows the order of its keys and index entries; `bucket` is what its storage keys begin with.
    /// May wait for that order to be made: not for network threads.
    fn ordered_snapshot(&self, bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError>;

    /// Sizes and states.
    fn status(&self) -> Status;

    /// Who this store is, and what its start knows of the end of the run before.
    fn identity(&self) -> StoreIdentity;

    /// Begins a backup; none when the store has no files. Waits for background work to pause: not for network threads.
    fn begin_backup(&self) -> Result<Option<Box<dyn StoreBackup + '_>>, StorageError> {
        Ok(None)
    }

    /// Whether nothing that was once synced is known to be missing. Not so: an absent key proves nothing until this
    /// store has been compared with another replica.
    fn complete(&self) -> bool {
        self.status().lost_ranges == 0
    }

    /// Notes, durably, that something is missing here which no file of this store shows: the content came from where
    /// `lost_ranges` places could not be read. [`complete`](Self::complete) is false from then on.
    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError>;

    /// Removes the keys of a scope; how many there were. In bounded memory, and not at once: others write meanwhile.
    fn drop_scope(&self, scope: &Scope<'_>) -> Result<u64, StorageError> {
        drop_each(&mut *self.snapshot()?, scope, |entry| self.delete_if(&entry.key, entry.digest))
    }

    /// Removes everything, files included. The store takes no calls afterwards.
    fn drop_partition(&self) -> Result<(), StorageError>;

    /// What time it is, in Unix seconds: what has ended by then is hidden. It does not turn the time back; that,
    /// and the time itself, only [`maintain`](Self::maintain) does, when it is the store's turn.
    fn tell_time(&self, now_secs: u64);

    /// Background work that is due: merging, syncing at an interval, expiry. Called from a maintenance thread every
    /// few hundred milliseconds; returns after a bounded slice of work. `now_secs` is Unix time.
    fn maintain(&self, now_secs: u64) -> Result<(), StorageError>;

    /// How often appends are to be synced (`sync.strategy = interval`); none where nobody has to call
    /// [`sync_if_due`](Self::sync_if_due).
    fn sync_interval(&self) -> Option<Duration> {
        None
    }

    /// Syncs what was appended if the interval is over. Does not wait for other background work, such as a merge.
    fn sync_if_due(&self, _now: Instant) -> Result<(), StorageError> {
        Ok(())
    }

    /// Whether so much has gathered in memory, or waits to be compacted, that a writer who may wait should
    /// [`catch_up`](Self::catch_up) before it adds to it.
    fn is_behind(&self) -> bool {
        false
    }

    /// Does work of [`maintain`](Self::maintain) that is overdue. Blocks: not for network threads.
    fn catch_up(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Refuses further writes with [`StorageError::Closed`], writes and syncs everything that was appended before, and
    /// closes the files. Others may write meanwhile: each of their writes is either refused or synced.
    fn close(&self) -> Result<(), StorageError>;
}

/// Removes what a view has of a scope; how many there were.
pub(crate) fn drop_each(
    view: &mut dyn Snapshot,
    scope: &Scope<'_>,
    remove: impl Fn(&FoldEntry) -> Result<Option<Appended>, StorageError>,
) -> Result<u64, StorageError> {
    let mut dropped = 0;
    loop {
        let batch = view.next(scope, Detail::Keys, DROP_BATCH)?;
        if batch.is_empty() {
            return Ok(dropped);
        }
        for entry in &batch {
            dropped += u64::from(remove(entry)?.is_some());
        }
    }
}

/// Opens stores; one per configured backend.
pub trait BackendFactory: Send + Sync {
    /// Opens, or creates, the store of a partition (0 … ring_size−1).
    fn open(&self, partition: u32) -> Result<Arc<dyn Backend>, StorageError> {
        self.open_in(partition, &SeqSource::default())
    }

    /// The same for a store that shares its append order with others.
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError>;

    /// `bitcask`, `memory`.
    fn name(&self) -> &'static str;
}
