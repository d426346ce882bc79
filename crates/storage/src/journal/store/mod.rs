//! The store of one partition: a journal and an index over it, behind the trait [`Backend`].

mod appends;
mod checkpoints;
mod closing;
mod core;
mod log_removal;
mod reads;
mod sealing;
mod syncs;
mod terms_check;

pub(crate) use self::core::Core;
pub(super) use self::core::{Files, Recovered};
pub(super) use reads::ORDERED_INDEX_SLICE;

use super::backup::JournalBackup;
use super::config::SyncStrategy;
use super::index::KeyIndex;
use super::policy::JournalPolicy;
use super::snapshot::JournalSnapshot;
use crate::backend::{Backend, ReadMode, Status, Stored, Write};
use crate::backup::StoreBackup;
use crate::drops::DropObserver;
use crate::error::StorageError;
use crate::feed::{ChangesQuery, ChangesSince, FeedCursor};
use crate::fold::{Expired, Snapshot};
use crate::identity::StoreIdentity;
use crate::openings::Openings;
use crate::receipt::Appended;
use crate::scrub::{ScrubCursor, ScrubLimits, ScrubStep};
use crate::terms_check::{TermCursor, TermStep};
use crate::unreadable::UnreadableObserver;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The store of one partition: a journal and an index over it.
pub(crate) struct Store<P: JournalPolicy> {
    pub(super) core: Arc<Core<P>>,
}

impl<P: JournalPolicy> Backend for Store<P> {
    fn get(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.core.get(key, mode, Expired::Hidden)
    }

    fn head(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.core.head(key, mode, Expired::Hidden)
    }

    fn get_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.core.get(key, mode, Expired::Kept)
    }

    fn head_with_expired(&self, key: &[u8], mode: ReadMode) -> Result<Option<Stored>, StorageError> {
        self.core.head(key, mode, Expired::Kept)
    }

    fn check_writable(&self, _key: &[u8]) -> Result<(), StorageError> {
        self.core.check_appendable()
    }

    fn record_bytes(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        let found = self.core.index.get(P::Index::key(key), ReadMode::Blocking)?;
        Ok(found.map(|found| u64::from(found.entry.position.size)))
    }

    fn known_digest(&self, key: &[u8]) -> Result<Option<u64>, StorageError> {
        let found = self.core.index.get(P::Index::key(key), ReadMode::Blocking)?;
        Ok(found.map(|found| found.entry.digest))
    }

    fn put(&self, write: &Write<'_>) -> Result<Appended, StorageError> {
        self.core.put(write)
    }

    fn delete(&self, key: &[u8]) -> Result<Option<Appended>, StorageError> {
        self.core.delete(key, |_| true, |_| {})
    }

    fn delete_if(&self, key: &[u8], digest: u64) -> Result<Option<Appended>, StorageError> {
        self.core.delete(key, |entry| entry.digest == digest, |_| {})
    }

    fn drop_if(&self, key: &[u8], digest: u64) -> Result<bool, StorageError> {
        let tell = |version| self.core.drops.dropped(key, version);
        Ok(self.core.delete(key, |entry| entry.digest == digest, tell)?.is_some())
    }

    fn observe_drops(&self, observer: Arc<dyn DropObserver>) -> bool {
        self.core.drops.set(observer)
    }

    fn observe_unreadable(&self, observer: Arc<dyn UnreadableObserver>) {
        self.core.unreadable.set(observer);
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

    fn found_seq(&self) -> u64 {
        self.core.writer.lock().seqs.found()
    }

    fn first_seq(&self) -> u64 {
        self.core.writer.lock().seqs.base() + 1
    }

    fn openings(&self) -> Openings {
        let of_this_run = self.core.writer.lock().seqs.opening();
        self.core.identity.openings(of_this_run)
    }

    fn close_to_writes(&self, closed: bool) {
        // Taking the lock waits for a write that is under way.
        let _writer = self.core.writer.lock();
        self.core.is_closed_to_writes.store(closed, Ordering::Release);
    }

    fn sync_each_write(&self) -> bool {
        self.core.shared.config.sync == SyncStrategy::OSync
    }

    fn removes_by_itself(&self) -> bool {
        self.core.shared.config.forgets_expired()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StorageError> {
        let secs_max = self.core.shared.config.snapshot_secs_max;
        Ok(Box::new(JournalSnapshot::begin(self.core.clone(), secs_max)?))
    }

    fn ordered_snapshot(&self, _bucket: &[u8]) -> Result<Box<dyn Snapshot>, StorageError> {
        while !self.core.build_ordered_index(ORDERED_INDEX_SLICE)? {}
        let secs_max = self.core.shared.config.ordered_snapshot_secs_max;
        Ok(Box::new(JournalSnapshot::begin(self.core.clone(), secs_max)?))
    }

    fn feed_cursor(&self) -> FeedCursor {
        self.core.feed_cursor()
    }

    fn changes_since(&self, query: &ChangesQuery<'_>) -> Result<ChangesSince, StorageError> {
        self.core.changes_since(query)
    }

    fn retain_removals(&self, after: Option<u64>) -> Result<(), StorageError> {
        self.core.retain_removals(after)
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
        P::is_behind(&self.core.index)
    }

    fn catch_up(&self) -> Result<(), StorageError> {
        self.core.catch_up()
    }

    fn bytes_to_scrub(&self) -> u64 {
        self.core.bytes_to_scrub()
    }

    fn scrub_step(&self, cursor: &ScrubCursor, limits: ScrubLimits<'_>) -> Result<ScrubStep, StorageError> {
        self.core.scrub_step(cursor, limits)
    }

    fn check_terms(&self, cursor: &TermCursor, count_max: usize) -> Result<TermStep, StorageError> {
        self.core.check_terms(cursor, count_max)
    }

    fn close(&self) -> Result<(), StorageError> {
        self.core.close()
    }
}
