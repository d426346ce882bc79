//! The interface of a storage backend: one store for each partition.
//!
//! **Expired versions.** A version that has expired is hidden: `get`, `head`, listings, index
//! queries and, by default, folds treat its key as absent. It stays in the store, clock included,
//! until somebody removes it with [`Backend::delete_if`]. A store that forgot it alone would let an
//! older copy return from another replica. Whoever removes versions like tombstones (the reaper of
//! the layer above) finds it with a fold that shows expired versions
//! ([`Expired::Kept`](crate::Expired)), and whoever merges copies reads it with
//! [`Backend::head_with_expired`]. Stores with a configured limit of age or size are the exception;
//! `crate::drops` says what they remove and why.

use crate::backup::StoreBackup;
use crate::drops::{DropObserver, drop_each};
use crate::error::StorageError;
use crate::feed::{ChangesQuery, ChangesSince, FeedCursor};
use crate::fold::{Scope, Snapshot};
use crate::identity::StoreIdentity;
use crate::openings::Openings;
use crate::receipt::Appended;
use crate::scrub::{ScrubCursor, ScrubLimits, ScrubStep};
use crate::seq::SeqSource;
use crate::terms_check::{TermCursor, TermStep};
use crate::unreadable::UnreadableObserver;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest read in bytes that [`ReadMode::Cached`] does. Longer ones take too long to copy and
/// to check.
pub const CACHED_READ_BYTES_MAX: usize = 256 << 10;

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Reads only what is in memory or in the page cache, and at most [`CACHED_READ_BYTES_MAX`] of
    /// a file. Anything else is [`StorageError::WouldBlock`]. For network threads.
    Cached,
    /// Waits for the disk.
    Blocking,
}

/// One stored version of a key, in the encoding of the layer above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Clock and metadata.
    pub head: Bytes,
    /// The values; `None` when only the head was asked for.
    pub body: Option<Bytes>,
    /// The digest that came with the write.
    pub digest: u64,
    /// The position of the version in the store's append order. The version is durable when
    /// [`Backend::is_synced`] is true for this number.
    pub seq: u64,
    /// Unix seconds of the write, for expiry by age ([`Write::tstamp_secs`]). None if the source
    /// does not know it: a whole version comes with it from every store.
    pub stored_secs: Option<u32>,
}

/// A version of a key that is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The storage key (`ombak_types::names::encode_storage_key`).
    pub key: &'a [u8],
    /// Clock and metadata.
    pub head: &'a [u8],
    /// The values; the store concatenates them.
    pub body: &'a [&'a [u8]],
    /// Fingerprint of the version; the index keeps it (docs/design/replication.md §13).
    pub digest: u64,
    /// Unix seconds of the write, for expiry by age. A copy of a version has the time of the
    /// version.
    pub tstamp_secs: u32,
    /// Unix seconds at which the version expires; 0 if the configuration of the store decides.
    pub expires_secs: u32,
    /// Whether the head has index entries that [`HeadTerms`] finds.
    pub has_terms: bool,
}

/// Reads the secondary index entries in a head. To a store, a head is opaque bytes.
pub trait HeadTerms: Send + Sync {
    /// Calls `visit` with the field and the term of each entry. The term is in a form that sorts
    /// bytewise.
    fn visit(&self, head: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]));
}

/// The [`HeadTerms`] of stores without secondary indexes.
#[derive(Clone, Copy, Debug)]
pub struct NoTerms;

impl HeadTerms for NoTerms {
    fn visit(&self, _head: &[u8], _visit: &mut dyn FnMut(&[u8], &[u8])) {}
}

/// Sizes and states of a store, for `vnode-status` and metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The name of the backend, if the node has several.
    pub name: String,
    /// `bitcask`, `leveled`, `leveldb`, `memory` or `multi`.
    pub backend: &'static str,
    /// Keys that have an object; a Riak tombstone counts as one.
    pub keys: u64,
    /// Bytes of the current versions as they lie on disk; for leveldb, before its blocks are
    /// compressed.
    pub live_bytes: u64,
    /// Bytes of superseded versions that are still on disk.
    pub dead_bytes: u64,
    /// Number of data files on disk.
    pub files: u64,
    /// Memory of the index in bytes, keys included.
    pub index_bytes: u64,
    /// Bytes of the keys alone.
    pub key_bytes: u64,
    /// Bytes of all puts since the start: keys, heads and bodies, before compression.
    pub put_bytes: u64,
    /// Bytes written to disk since the start: journal, ledger, and the copies of merging and
    /// compaction.
    pub bytes_written: u64,
    /// Bytes that are still to be read of the files that are to be merged. For leveldb, the bytes
    /// of new tables that wait to be compacted with the older ones.
    pub merge_pending_bytes: u64,
    /// The last merge since the start; for leveldb, the last compaction.
    pub last_merge: Option<LastMerge>,
    /// Sizes of the ordered index on disk, where the store has one.
    pub ledger: Option<LedgerStatus>,
    /// Merges finished since the start; for leveldb, compactions.
    pub merges: u64,
    /// Reads since the start that failed because a version did not match its checksum or its file
    /// could not be read.
    pub read_errors: u64,
    /// Ranges on disk that were synced once and cannot be read any more. What they held is unknown.
    pub lost_ranges: u64,
    /// A bound for what may have come back because something is lost: no version with a higher seq
    /// was replaced or removed by a record that was lost. `u64::MAX`: nobody knows more than that
    /// something is missing; 0: nothing is lost.
    pub lost_up_to: u64,
    /// Bytes of torn writes (left by a loss of power or a kill) that the last start found and
    /// ignored.
    pub torn_bytes: u64,
    /// Whether the disk was full at the last write. Writes are refused until there is room.
    pub disk_full: bool,
    /// Why the store takes no writes any more, if it is poisoned.
    pub poisoned: Option<String>,
    /// The status of each child, for a store that consists of several.
    pub children: Vec<Status>,
}

impl Status {
    /// Bytes written for each byte put since the start; none before the first put.
    pub fn write_amplification(&self) -> Option<f64> {
        (self.put_bytes > 0).then(|| self.bytes_written as f64 / self.put_bytes as f64)
    }
}

/// The sizes of a merge that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastMerge {
    /// Unix seconds of its end.
    pub ended_at_secs: u64,
    /// Bytes of its input files.
    pub bytes_before: u64,
    /// Bytes of its output files.
    pub bytes_after: u64,
}

/// Sizes of the ordered index on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStatus {
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Bytes that are only in memory.
    pub memory_bytes: u64,
    /// Bytes written since the start, compaction included.
    pub written_bytes: u64,
    /// Runs of tables that wait to be compacted. A read may have to look into each run.
    pub first_level_tables: u64,
    /// Bytes of these runs.
    pub pending_bytes: u64,
}

/// The store of one partition. All calls are safe from any thread. The caller makes sure that the
/// read-modify-write cycles of one key do not interleave (one writer for each key).
pub trait Backend: Send + Sync {
    /// The current version of a key with head and body. A version that cannot be read is an error,
    /// never `None`.
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError>;

    /// The current version of a key without its body.
    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError>;

    /// [`get`](Self::get) that also returns a version that has expired. A store that removes
    /// expired versions by itself has none to return.
    fn get_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError>;

    /// [`head`](Self::head) that also returns a version that has expired, as
    /// [`get_with_expired`](Self::get_with_expired) does.
    fn head_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError>;

    /// Fails as a put of this key would fail if the store is closed, closed to writes or poisoned.
    /// A caller uses this when it has nothing to append because the version is already there.
    fn check_writable(&self, key: &[u8]) -> Result<(), StorageError>;

    /// The record length in bytes of the current version of a key, if an index knows it without
    /// reading the record; otherwise none. Waits for the disk.
    fn record_bytes(&self, _key: &[u8]) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// The digest of the current version of a key, expired or not, if an index knows it without
    /// reading the record; otherwise none. Waits for the disk.
    fn known_digest(&self, _key: &[u8]) -> Result<Option<u64>, StorageError> {
        Ok(None)
    }

    /// Appends a version. When this returns, the write call has returned: the version survives a
    /// crash of the process, but not necessarily of the machine.
    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError>;

    /// Appends a version whose body is that of the current version, which has `kept_bytes`,
    /// followed by `write.body`. A store on disk does not write the kept bytes anew each time
    /// (`parted`). A version that was extended is replaced with
    /// [`put_over_extended`](Self::put_over_extended).
    fn extend(&self, write: &Write<'_>, kept_bytes: u64, mode: ReadMode) -> Result<Appended, StorageError> {
        extend_whole(self, write, kept_bytes, mode)
    }

    /// [`put`](Self::put) in place of a version that may have been extended, or that cannot be
    /// read, so that nothing of it stays. Waits for the disk if there are such versions.
    fn put_over_extended(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        self.put(write)
    }

    /// Removes a key and all of its versions, expired ones too; `None` when the key was not there.
    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError>;

    /// Removes a key if its current version, expired or not, has this digest; `None` when it has
    /// not. What the caller proved about a version holds for that version only
    /// (docs/design/replication.md §4).
    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError>;

    /// [`delete_if`](Self::delete_if) that tells the observer instead of giving a receipt; returns
    /// whether the version was removed.
    fn drop_if(&self, key: &[u8], digest: u64) -> Result<bool, StorageError>;

    /// Sets who learns of the entries that this store removes by itself; false if that was set
    /// before. Whoever opens a store calls this before the first write and the first
    /// [`maintain`](Self::maintain).
    fn observe_drops(&self, observer: Arc<dyn DropObserver>) -> bool;

    /// Sets who learns of versions that this store cannot read while it works by itself. A store
    /// that always reads for a caller has nothing to tell.
    fn observe_unreadable(&self, _observer: Arc<dyn UnreadableObserver>) {}

    /// Waits until everything up to `seq` survives a loss of power. Blocks: not for network
    /// threads. One fsync serves all callers that wait at the same time.
    fn sync(&self, seq: u64) -> Result<(), StorageError>;

    /// Whether everything up to `seq` is known to survive a loss of power.
    fn is_synced(&self, seq: u64) -> bool;

    /// The `seq` up to which everything is known to survive a loss of power.
    fn synced_seq(&self) -> u64;

    /// The `seq` of the last append that is there, or was there before a merge removed it; 0 if
    /// there was none. Later appends get higher numbers, and not always the next one: each start
    /// skips some.
    fn last_seq(&self) -> u64;

    /// The `seq` of the last append that this start has found; 0 if there was none.
    fn found_seq(&self) -> u64;

    /// The lowest `seq` that an append since this start can have. Between [`Self::found_seq`] and
    /// this number there are none.
    fn first_seq(&self) -> u64;

    /// Which of the numbers that this store has given are lost, this start included. The history
    /// belongs to the id of the store: a store with a new id begins with none. It knows nothing of
    /// numbers above [`Self::last_seq`]. Not for each request: copies up to 64 pairs of numbers.
    fn openings(&self) -> Openings;

    /// Refuses writes with [`StorageError::ClosedToWrites`] from now on (`true`), or takes them
    /// again (`false`). Reads go on. Writes that were under way have ended when this returns.
    fn close_to_writes(&self, closed: bool);

    /// Whether the store is configured to sync each write before it is acknowledged (`sync.strategy
    /// = o_sync`).
    fn sync_each_write(&self) -> bool;

    /// Whether the configuration of this store makes it remove versions by itself, because of their
    /// age or of its own size (`crate::drops`).
    fn removes_by_itself(&self) -> bool {
        false
    }

    /// A snapshot for folds.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError>;

    /// A snapshot of one bucket with an order of its keys and index entries. `bucket` is the prefix
    /// of the bucket's storage keys. May wait until the ordered index is built: not for network
    /// threads.
    fn ordered_snapshot(&self, bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError>;

    /// The cursor of a consumer of the change feed that has seen everything up to now. A consumer
    /// that begins anew takes it before it folds over everything.
    fn feed_cursor(&self) -> FeedCursor;

    /// The changes after a cursor ([`crate::feed`]). Waits until background work pauses, and for a
    /// sync if the query asks for it: not for network threads.
    fn changes_since(&self, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError>;

    /// Keeps what shows removals to consumers of the change feed whose cursors are at `after` or
    /// later; none: there are no consumers. Whoever opens a store for consumers calls this before
    /// the first [`maintain`](Self::maintain), and again when the cursors have moved. The caller
    /// bounds how far a consumer may lag: what is kept takes room on the disk. Blocks.
    fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError>;

    /// Sizes and states.
    fn status(&self) -> Status;

    /// The identity of this store, and what its start knows about the end of the previous run.
    fn identity(&self) -> StoreIdentity;

    /// Begins a backup; none when the store has no files. Waits until background work pauses: not
    /// for network threads.
    fn begin_backup(&self) -> Result<Option<Box<dyn StoreBackup + '_>>, StorageError> {
        Ok(None)
    }

    /// Whether nothing that was once synced is known to be missing. If false, an absent key proves
    /// nothing until this store has been compared with another replica.
    fn complete(&self) -> bool {
        self.status().lost_ranges == 0
    }

    /// Records durably that something is missing here which no file of this store shows: the
    /// content was copied from a source with `lost_ranges` unreadable places. From then on
    /// [`complete`](Self::complete) is false.
    fn note_loss(&self, lost_ranges: u64) -> Result<(), StorageError>;

    /// Removes the keys of a scope, expired versions included, and returns how many there were.
    /// Uses bounded memory. Not atomic: other writes run meanwhile. The observer learns of each.
    fn drop_scope(&self, scope: &Scope<'_>) -> Result<u64, StorageError> {
        drop_each(&mut *self.snapshot()?, scope, |entry| self.drop_if(&entry.key, entry.digest))
    }

    /// Removes everything, files included. The store takes no calls afterwards.
    fn drop_partition(&self) -> Result<(), StorageError>;

    /// Tells the store the time in Unix seconds. Versions that have expired by then are hidden.
    /// This never sets the clock of the store back; only [`maintain`](Self::maintain) does.
    fn tell_time(&self, now_secs: u64);

    /// Does background work that is due: merging, syncing at an interval, removal of versions that
    /// are older than the configured age. A maintenance thread calls this every few hundred
    /// milliseconds. It returns after a bounded amount of work. `now_secs` is Unix time.
    fn maintain(&self, now_secs: u64) -> Result<(), StorageError>;

    /// How often appends are to be synced (`sync.strategy = interval`). None if
    /// [`sync_if_due`](Self::sync_if_due) need not be called.
    fn sync_interval(&self) -> Option<Duration> {
        None
    }

    /// Syncs the appends if the interval is over. Does not wait for other background work, such as
    /// a merge.
    fn sync_if_due(&self, _now: Instant) -> Result<(), StorageError> {
        Ok(())
    }

    /// Whether so much data has gathered in memory, or waits to be compacted, that a writer that
    /// may block should call [`catch_up`](Self::catch_up) before it adds more.
    fn is_behind(&self) -> bool {
        false
    }

    /// Does overdue work of [`maintain`](Self::maintain). Blocks: not for network threads.
    fn catch_up(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Bytes that a round of scrubbing reads: what the store has on disk; 0 if it has nothing
    /// there.
    fn bytes_to_scrub(&self) -> u64 {
        0
    }

    /// Reads and checks what lies on the disk, from a place of a round of scrubbing
    /// ([`crate::scrub`]). Reads and writes go on, and so do merges. An error says that the step
    /// could not be done, and nothing about what lies there. Blocks: not for network threads.
    fn scrub_step(&self, _cursor: &ScrubCursor, _limits: ScrubLimits<'_>) -> Result<ScrubStep, StorageError> {
        Ok(ScrubStep::nothing())
    }

    /// Compares index entries with the objects that justify them, from a place of the walk on, and
    /// mends what differs. It looks at no more than `count_max` keys or entries, which is at least
    /// one. Stores without index entries have nothing to do. Reads and writes go on. Fails while
    /// the store takes no writes. Blocks: not for network threads.
    fn check_terms(&self, _cursor: &TermCursor, _count_max: usize) -> Result<TermStep, StorageError> {
        Ok(TermStep::nothing())
    }

    /// Refuses further writes with [`StorageError::Closed`], syncs everything that was appended
    /// before, and closes the files. Other threads may write meanwhile: each of their writes is
    /// either refused or synced.
    fn close(&self) -> Result<(), StorageError>;
}

/// [`Backend::extend`] that writes the whole body.
pub(crate) fn extend_whole<B: Backend + ?Sized>(
    store: &B,
    write: &Write<'_>,
    kept_bytes: u64,
    mode: ReadMode,
) -> Result<Appended, StorageError> {
    let kept = store.get_with_expired(write.key, mode)?.and_then(|found| found.body);
    let kept = kept.filter(|body| body.len() as u64 == kept_bytes);
    let kept = kept.ok_or(StorageError::Incomplete("the version to extend is not the one that was read"))?;
    let mut body: Vec<&[u8]> = Vec::with_capacity(1 + write.body.len());
    body.push(&kept);
    body.extend_from_slice(write.body);
    store.put_over_extended(&Write { body: &body, ..*write })
}

/// Opens the stores of one configured backend.
pub trait BackendFactory: Send + Sync {
    /// Opens or creates the store of a partition (0 … ring_size−1).
    fn open(&self, partition: u32) -> Result<Arc<dyn Backend>, StorageError> {
        self.open_in(partition, &SeqSource::default())
    }

    /// Opens or creates a store that draws its sequence numbers from the same source as other
    /// stores of the partition.
    fn open_in(&self, partition: u32, seqs: &SeqSource) -> Result<Arc<dyn Backend>, StorageError>;

    /// The kind of backend, as in `storage_backend`: `bitcask`, `leveled`, `leveldb`, `memory` or
    /// `multi`.
    fn name(&self) -> &'static str;
}
